"""Bodies that are one object, and what is said of them."""

from datetime import UTC, datetime

import pytest
from marshmallow import Schema, ValidationError, fields

from mesedi_server.errors import RefusedError
from mesedi_server.schemas.bodies import load, read_object
from mesedi_server.schemas.group_states import MAX_REASON_BYTES, clean
from mesedi_server.schemas.times import UtcTime


class Nested(Schema):
    inner = fields.Nested(Schema.from_dict({"number": fields.Integer(required=True)}))
    at = UtcTime()


@pytest.mark.parametrize("body", [b"", b" \n", b"{}"])
def test_an_empty_body_is_an_empty_object(body):
    assert read_object(body) == {}


@pytest.mark.parametrize("body", [b"[]", b"1", b'"a"', b"null"])
def test_another_value_than_an_object_is_refused(body):
    with pytest.raises(RefusedError, match="JSON object"):
        read_object(body)


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (b'{"a":NaN}', {"a": None}),
        (rb'{"a":"\u0000"}', {"a": "\ufffd"}),
        (rb'{"a":"\ud800"}', {"a": "\ufffd"}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":1733011200000000001,"b":NaN}', {"a": 1733011200000000001, "b": None}),
    ],
)
def test_json_as_clients_really_send_it_is_read(body, content):
    assert read_object(body, is_finite=True) == content


@pytest.mark.parametrize(
    ("text", "number"),
    [("NaN", "nan"), ("-Infinity", "-inf"), ("1e400", "inf"), ("9" * 5000, "inf")],
)
def test_what_is_no_number_is_not_taken_for_null_unless_that_is_wanted(text, number):
    body = f'{{"a":{text},"b":null}}'.encode()

    assert str(read_object(body)["a"]) == number
    assert read_object(body, is_finite=True) == {"a": None, "b": None}


def test_a_fault_is_told_with_the_way_to_it():
    with pytest.raises(RefusedError, match="inner: number: Missing data"):
        load(Nested(), {"inner": {}})


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-12-01T12:00:00Z", datetime(2026, 12, 1, 12, tzinfo=UTC)),
        ("2026-12-01T12:00:00", datetime(2026, 12, 1, 12, tzinfo=UTC)),
        ("2026-12-01T12:00:00+16:30", datetime(2026, 11, 30, 19, 30, tzinfo=UTC)),
        ("2026-12-01T12:00:00.123456789Z", datetime(2026, 12, 1, 12, 0, 0, 123456, tzinfo=UTC)),
    ],
)
def test_a_time_is_given_in_utc(text, time):
    loaded = load(Nested(), {"at": text})["at"]

    assert loaded == time
    assert loaded.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    ["9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01", "soon", "", 1_796_083_200, None, {}],
)
def test_another_time_is_refused(value):
    with pytest.raises(ValidationError):
        UtcTime().deserialize(value)


@pytest.mark.parametrize(
    ("reason", "cleaned"),
    [
        (None, None),
        ("", None),
        (" \x00\x07 ", None),
        ("  fixed\tin\r\nv2 ", "fixed\tin\r\nv2"),
        ("a\x1b[31mb\x9f", "a[31mb"),
        ("x" * 600, "x" * MAX_REASON_BYTES),
        ("xé" * 200, ("xé" * 200)[:341]),
    ],
)
def test_a_reason_is_trimmed_cleaned_and_cut(reason, cleaned):
    assert clean(reason) == cleaned
    assert len((cleaned or "").encode()) <= MAX_REASON_BYTES
