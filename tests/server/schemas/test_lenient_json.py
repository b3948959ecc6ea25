"""The careful reader of JSON."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesedi_server.schemas import lenient_json
from mesedi_server.schemas.lenient_json import (
    MAX_DEPTH,
    MAX_DIGITS,
    NotAnArrayError,
    NotJsonError,
    TooDeepError,
    elements,
    parse,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
# Marks and escapes, which the cutter could take for what they are not.
TRICKY = st.text(st.sampled_from('[]{},:"\\\n\t é\N{SNOWMAN}'))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS | TRICKY,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | TRICKY, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.lists(VALUES, max_size=6), st.booleans(), st.sampled_from([None, 0, 3]))
def test_the_elements_of_an_array_are_those_that_python_reads(values, is_ascii, indent):
    text = json.dumps(values, ensure_ascii=is_ascii, indent=indent).encode()

    assert [json.loads(element) for element in elements(text)] == values


@given(VALUES, st.booleans())
def test_a_value_is_read_as_python_reads_it(value, is_ascii):
    assert parse(json.dumps(value, ensure_ascii=is_ascii).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_told_not_to_be(noise):
    for text in (noise, b"[" + noise + b"]", b'["' + noise):
        with suppress(NotJsonError, TooDeepError):
            list(map(parse, elements(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NaN", None),
        ("[Infinity,-Infinity]", [None, None]),
        ("1e400", None),
        ("-1e400", None),
        ("1e-400", 0.0),
        ("9" * MAX_DIGITS, int("9" * MAX_DIGITS)),
        ("-" + "9" * MAX_DIGITS, -int("9" * MAX_DIGITS)),
        ("9" * (MAX_DIGITS + 1), None),
        ("1733011200000000001", 1733011200000000001),
        (r'"a\u0000b"', "a\ufffdb"),
        (r'"a\ud800b"', "a\ufffdb"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'{"a\u0000":"\udfff"}', {"a\ufffd": "\ufffd"}),
        (" [ ] ", []),
    ],
)
def test_what_json_or_postgresql_cannot_hold_is_replaced(text, value):
    assert parse(text.encode()) == value


def test_bytes_that_are_not_utf_8_are_replaced():
    assert parse(b'"a\xffb"') == "a\ufffdb"


@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_64_levels_are_read_and_65_are_too_deep(bracket):
    def nested(levels: int) -> bytes:
        opening = '{"a":' if bracket == "{}" else "["
        return (opening * levels + "1" + bracket[1] * levels).encode()

    assert parse(nested(MAX_DEPTH))
    with pytest.raises(TooDeepError, match="64 levels"):
        parse(nested(MAX_DEPTH + 1))


def test_brackets_in_a_text_are_no_levels():
    text = "[{" * 1000

    assert parse(json.dumps([text]).encode()) == [text]


@pytest.mark.parametrize("text", ["", " ", "nul", "[1,]", "{", '"a', "1 2", "'a'", '"\n"', "\x00"])
def test_what_is_no_json_is_told(text):
    with pytest.raises(NotJsonError):
        parse(text.encode())


@pytest.mark.parametrize(
    "text",
    ["[", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1,,2]", "[1]2", "[1]]", "[{]", "[1}]", "]", "nul"],
)
def test_what_is_no_array_of_json_is_told(text):
    with pytest.raises(NotJsonError):
        list(map(parse, elements(text.encode())))


@pytest.mark.parametrize("text", ["{}", "1", '"[]"', "null"])
def test_json_that_is_no_array_is_told_apart(text):
    with pytest.raises(NotAnArrayError):
        list(elements(text.encode()))


def test_an_element_that_is_too_deep_does_not_hide_its_neighbours():
    deep = "[" * 10_000 + "]" * 10_000

    found = list(elements(f'[1,{deep},{{"a":[2]}}]'.encode()))

    assert (found[0], found[2]) == (b"1", b'{"a":[2]}')
    with pytest.raises(TooDeepError):
        parse(found[1])


def test_the_elements_are_cut_one_at_a_time():
    endless = b"[" + b"1," * 5_000_000

    first = next(elements(endless))

    assert first == b"1"


@pytest.mark.parametrize(
    "text",
    [
        b'["' + b'\\"' * 500_000,
        b'["' + b"\\" * 1_000_000,
        b"[" + b'"' * 1_000_001,
        b"[" + b'"",' * 50_000,
        b"[" + b'"a' * 500_001,
    ],
    ids=["quotes", "backslashes", "empty texts", "many elements", "texts without commas"],
)
def test_a_text_without_an_end_is_read_in_one_pass(text):
    # A second pass from each quote would take hours.
    with pytest.raises(NotJsonError):
        list(map(parse, elements(text)))


def test_nothing_that_is_read_is_not_finite():
    values = parse(b"[1e308,1e309,-1e309,NaN,0.1]")

    assert all(value is None or math.isfinite(value) for value in values)


def test_storable_leaves_what_is_storable():
    value = {"a": ["b", 1, None, {"c": "\N{SNOWMAN}"}]}

    assert lenient_json.storable(value) == value
