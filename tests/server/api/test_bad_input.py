"""Bad input: each kind has one stated answer, none is a 500, and none loses its neighbours."""

import gzip
import json
import zlib

import pytest
from backports import zstd

from mesedi_server.api.bodies import MAX_BRACKETS, MAX_BYTES, MAX_FRAMES
from mesedi_server.schemas.events import MAX_EVENTS, MAX_NAME_BYTES, MAX_PAYLOAD_BYTES
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant

GIGABYTE = 1_000_000_000
ID_OF_10_KB = "x" * 10_000
NESTED = "[" * 10_000 + "]" * 10_000


def batch_around(text: str) -> bytes:
    """A batch with the JSON text of one event between two good ones."""
    first, last = (
        json.dumps(make_event(event_id=event_id, sequence=sequence))
        for event_id, sequence in (("evt-before", 1), ("evt-after", 3))
    )
    return f"[{first},{text},{last}]".encode()


def event_text(payload: str = "{}", **fields) -> str:
    """One event as JSON text, with the text of its payload put in as it is."""
    plain = {"event_id": "evt-odd", "sequence": 2, "payload": "PAYLOAD"}
    return json.dumps(make_event(**plain | fields)).replace('"PAYLOAD"', payload)


def score_text(**fields: str) -> str:
    """The text of an eval_score whose fields are JSON texts."""
    plain = {"evaluator_id": '"judge"', "metric_type": '"tone"', "score": "0.9"}
    payload = ",".join(f'"{name}":{value}' for name, value in (plain | fields).items())
    return event_text(f"{{{payload}}}", event_type="eval_score")


def stored_events(tenant: Tenant, execution_id: str = "exec-1") -> dict[str, dict]:
    """Read an execution back, and give its events by id."""
    response = tenant.read.get(f"/executions/{execution_id}")
    assert response.status_code == 200, response.data[:500]
    return {event["event_id"]: event for event in response.json["events"]}


def refuse_constant(token: str) -> None:
    raise AssertionError(f"{token} is no JSON")


STORED = {
    "NUL in a text": (event_text(r'{"a":"x\u0000y"}'), {"a": "x\ufffdy"}),
    "NUL in a key": (event_text(r'{"x\u0000y":1}'), {"x\ufffdy": 1}),
    "a lone high surrogate": (event_text(r'{"a":"x\ud800y"}'), {"a": "x\ufffdy"}),
    "a lone low surrogate": (event_text(r'{"a":"x\udc00y"}'), {"a": "x\ufffdy"}),
    "a lone surrogate in a key": (event_text(r'{"x\ud800y":1}'), {"x\ufffdy": 1}),
    "a proper pair of surrogates": (event_text(r'{"a":"\ud83d\ude00"}'), {"a": "\U0001f600"}),
    "a number of 5,000 digits": (event_text('{"a":%s}' % ("9" * 5000)), {"a": None}),
    "a number of 40 digits": (event_text('{"a":%s}' % ("9" * 40)), {"a": int("9" * 40)}),
    "a fraction of 5,000 digits": (event_text('{"a":0.%s}' % ("1" * 5000)), {"a": 1 / 9}),
    "1e400": (event_text('{"a":1e400,"b":-1e400}'), {"a": None, "b": None}),
    "1e-400": (event_text('{"a":1e-400}'), {"a": 0}),
    "bare NaN and infinities": (
        event_text('{"a":NaN,"b":[Infinity,-Infinity]}'),
        {"a": None, "b": [None, None]},
    ),
    "a payload that is null": (event_text("null"), None),
    "a payload that is a text": (event_text('"plan"'), "plan"),
    "a payload that is a list": (event_text("[1]"), [1]),
    "60 levels": (event_text("[" * 60 + "]" * 60), json.loads("[" * 60 + "]" * 60)),
    "a key twice": (event_text('{"a":1,"a":2}'), {"a": 2}),
    "brackets in a text": (event_text(r'{"a":"]}[{\"],\\"}'), {"a": r"]}[{" + '"],' + "\\"}),
}


@pytest.mark.parametrize("case", STORED)
def test_an_odd_payload_is_stored_as_text_that_every_reader_can_read(tenant, case):
    text, payload = STORED[case]

    response = tenant.ingest.post("/events", batch_around(text))

    assert (response.status_code, response.json["accepted"]) == (200, 3)
    assert response.json["errors"] == []
    events = stored_events(tenant)
    assert list(events) == ["evt-before", "evt-odd", "evt-after"]
    assert events["evt-odd"]["payload"] == payload


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("2026-12-01T12:00:00", "2026-12-01T12:00:00Z"),
        ("2026-12-01T12:00:00.5", "2026-12-01T12:00:00.500000Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("2106-02-07T06:28:16Z", "2106-02-07T06:28:16Z"),
        ("2026-12-01T12:00:00.123456789Z", "2026-12-01T12:00:00.123457Z"),
        ("2026-12-01T12:00:00+16:30", "2026-11-30T19:30:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_a_time_of_any_age_is_stored_in_utc(tenant, sent, shown):
    response = tenant.ingest.post("/events", batch_around(event_text(timestamp=sent)))

    assert response.json["accepted"] == 3
    assert stored_events(tenant)["evt-odd"]["timestamp"] == shown


def test_an_event_without_a_time_gets_the_time_of_its_arrival(tenant):
    response = tenant.ingest.post("/events", batch_around(event_text(timestamp=None)))

    assert response.json["accepted"] == 3
    event = stored_events(tenant)["evt-odd"]
    assert event["timestamp"] == event["received_at"]


def test_an_unknown_event_type_is_stored(tenant):
    response = tenant.ingest.post(
        "/events", batch_around(event_text(event_type="something new \N{SNOWMAN}"))
    )

    assert response.json["accepted"] == 3
    assert stored_events(tenant)["evt-odd"]["event_type"] == "something new \N{SNOWMAN}"


_LONGER = f"is longer than {MAX_NAME_BYTES} bytes"
_MISSING = "is missing or empty"
REFUSED = {
    "event_id of 10 kB": (event_text().replace("evt-odd", ID_OF_10_KB), f"event_id {_LONGER}"),
    "event_id of 257 bytes": (event_text().replace("evt-odd", "é" * 129), f"event_id {_LONGER}"),
    "execution_id of 10 kB": (event_text(execution_id=ID_OF_10_KB), f"execution_id {_LONGER}"),
    "event_type of 10 kB": (event_text(event_type=ID_OF_10_KB), f"event_type {_LONGER}"),
    "empty event_id": (event_text().replace("evt-odd", ""), f"event_id {_MISSING}"),
    "event_id null": (event_text().replace('"evt-odd"', "null"), "event_id"),
    "event_id a number": (event_text().replace('"evt-odd"', "7"), "event_id"),
    "no event_id": (event_text().replace('"event_id"', '"id"'), f"event_id {_MISSING}"),
    "empty execution_id": (event_text(execution_id=""), f"execution_id {_MISSING}"),
    "no execution_id": (event_text().replace('"execution_id"', '"x"'), f"execution_id {_MISSING}"),
    "empty event_type": (event_text(event_type=""), f"event_type {_MISSING}"),
    "no event_type": (event_text().replace('"event_type"', '"x"'), f"event_type {_MISSING}"),
    "NUL in an id": (event_text(execution_id="a\0b"), "execution_id has a NUL"),
    "a lone surrogate in an id": (event_text(execution_id="a\ud800"), "execution_id has a NUL"),
    "a reserved type": (event_text(event_type="dlp_scan_result"), "is reserved"),
    "10,000 brackets": (event_text(NESTED), "nested deeper than 64 levels"),
    "10,000 objects": (
        event_text('{"a":' * 10_000 + "1" + "}" * 10_000),
        "nested deeper than 64 levels",
    ),
    "65 levels": (event_text("[" * 65 + "]" * 65), "nested deeper than 64 levels"),
    "brackets in place of an event": (NESTED, "nested deeper than 64 levels"),
    "a number in place of an event": ("7", "Expected"),
    "null in place of an event": ("null", "Expected"),
    "a list in place of an event": ("[]", "Expected"),
    "a time that is none": (event_text(timestamp="yesterday"), "timestamp"),
    "a time as a number": (event_text(timestamp=1_796_083_200), "timestamp"),
    "a time after the year 9999": (
        event_text(timestamp="9999-12-31T23:59:59-05:00"),
        "timestamp is not within the years 1 to 9999",
    ),
    "a time before the year 1": (
        event_text(timestamp="0001-01-01T00:00:00+05:00"),
        "timestamp is not within the years 1 to 9999",
    ),
    "a sequence beyond 64 bits": (event_text(sequence=2**63), "sequence"),
    "a sequence as a text": (event_text(sequence="2"), "sequence"),
    "a duration beyond 64 bits": (event_text(duration_ms=-(2**63) - 1), "duration_ms"),
    "a payload of over 2 MiB": (
        event_text(json.dumps("x" * (MAX_PAYLOAD_BYTES - 1))),
        f"payload is larger than {MAX_PAYLOAD_BYTES} bytes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_event_is_refused_alone_and_told_by_its_place(tenant, case):
    text, reason = REFUSED[case]

    response = tenant.ingest.post("/events", batch_around(text))

    assert response.status_code == 200
    answer = response.json
    assert (answer["ok"], answer["accepted"], answer["rejected"]) == (True, 2, 1)
    (error,) = answer["errors"]
    assert error["index"] == 1
    assert reason in error["reason"]
    assert list(stored_events(tenant)) == ["evt-before", "evt-after"]


def test_the_refusal_names_the_event_where_it_has_a_name(tenant):
    response = tenant.ingest.post("/events", [make_event(event_id="evt-x", timestamp="never")])

    assert response.json["errors"][0]["event_id"] == "evt-x"


REFUSED_SCORES = {
    "no evaluator": score_text(evaluator_id="null"),
    "an empty evaluator": score_text(evaluator_id='""'),
    "a blank evaluator": score_text(evaluator_id='" \\t"'),
    "an evaluator that is a number": score_text(evaluator_id="7"),
    "an evaluator of 257 bytes": score_text(evaluator_id=f'"{"x" * 257}"'),
    "a metric of 257 bytes": score_text(metric_type=f'"{"x" * 257}"'),
    "a metric that is a list": score_text(metric_type="[]"),
    "a score that is a text": score_text(score='"0.9"'),
    "a score that is a bool": score_text(score="true"),
    "a score that is a list": score_text(score="[0.9]"),
    "a score that is an object": score_text(score='{"value":0.9}'),
    "passed as a text": score_text(passed='"false"'),
    "passed as a number": score_text(passed="0"),
    "higher_is_better as a text": score_text(higher_is_better='"no"'),
    "a scale that is a number": score_text(scale="10"),
    "a scale upside down": score_text(scale="[10,0]"),
    "a scale of one point": score_text(scale="[1,1]"),
    "a scale with a text": score_text(scale='[0,"10"]'),
    "a scale without an end": score_text(scale="[0,NaN]"),
    "a payload that is no object": event_text("[]", event_type="eval_score"),
    "a payload that is null": event_text("null", event_type="eval_score"),
}


@pytest.mark.parametrize("case", REFUSED_SCORES)
def test_a_score_that_no_detector_could_read_is_refused_alone(tenant, case):
    response = tenant.ingest.post("/events", batch_around(REFUSED_SCORES[case]))

    answer = response.json
    assert (response.status_code, answer["accepted"], answer["rejected"]) == (200, 2, 1)
    assert (answer["errors"][0]["index"], answer["errors"][0]["event_id"]) == (1, "evt-odd")
    assert list(stored_events(tenant)) == ["evt-before", "evt-after"]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("NaN", None),
        ("Infinity", None),
        ("-Infinity", None),
        ("null", None),
        ("1e400", None),
        ("9" * 400, None),
        ("-0.0015", -0.0015),
        ("1.0000000000000002", 1.0000000000000002),
        ("8", 8),
    ],
)
def test_a_score_of_any_size_is_stored(tenant, sent, shown):
    response = tenant.ingest.post("/events", batch_around(score_text(score=sent)))

    assert response.json["accepted"] == 3
    stored = stored_events(tenant)["evt-odd"]["payload"]["score"]
    assert stored == (int(sent) if sent.startswith("99") else shown)


def test_a_good_score_keeps_its_digits_beside_one_that_is_not_a_number(tenant):
    large = event_text('{"at_ns":1733011200000000001}')
    not_a_number = json.dumps(make_score(float("nan")))

    response = tenant.ingest.post("/events", batch_around(f"{large},{not_a_number}"))

    assert response.json["accepted"] == 4
    assert stored_events(tenant)["evt-odd"]["payload"] == {"at_ns": 1733011200000000001}


NOT_TAKEN = {
    "no JSON": b"not json",
    "half of it": b'[{"event_id":"evt-1",',
    "a comma too many": b"[{},]",
    "two values": b"[{}] []",
    "nothing": b"",
    "blanks": b"  \n",
    "a byte order mark": b"\xef\xbb\xbf[]",
    "UTF-16": "[{}]".encode("utf-16"),
    "an object in place of the array": json.dumps(make_event()).encode(),
    "a text in place of the array": b'"events"',
    "an empty array": b"[]",
    "an end that does not come": b'[{"a":"' + b'\\"' * 1_000_000,
}


@pytest.mark.parametrize("case", NOT_TAKEN)
def test_a_body_that_is_no_batch_is_400_with_the_reason(tenant, case):
    response = tenant.ingest.post("/events", NOT_TAKEN[case])

    assert response.status_code == 400
    assert response.json["ok"] is False
    assert response.json["error"]


@pytest.mark.parametrize(
    "mimetype", ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream"]
)
def test_another_content_type_is_415(tenant, mimetype):
    response = tenant.ingest.post("/events", [make_event()], Content_Type=mimetype)

    assert response.status_code == 415
    assert mimetype in response.json["error"]


@pytest.mark.parametrize(
    "mimetype", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/x+json"]
)
def test_json_by_another_name_is_taken(tenant, mimetype):
    response = tenant.ingest.post("/events", [make_event()], Content_Type=mimetype)

    assert response.json["accepted"] == 1


def test_another_charset_is_415(tenant):
    response = tenant.ingest.post(
        "/events", [make_event()], Content_Type="application/json; charset=latin-1"
    )

    assert response.status_code == 415


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd, gzip", "x"])
def test_another_encoding_is_415(tenant, encoding):
    response = tenant.ingest.post("/events", [make_event()], Content_Encoding=encoding)

    assert response.status_code == 415
    assert encoding in response.json["error"]


COMPRESSED = {
    "zstd": zstd.compress,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_compressed_body_is_decoded(tenant, encoding):
    body = COMPRESSED[encoding](json.dumps([make_event(), make_event()]).encode())

    response = tenant.ingest.post("/events", body, Content_Encoding=encoding)

    assert response.json["accepted"] == 2


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_a_body_of_two_frames_is_read_as_one(tenant, encoding):
    compress = COMPRESSED[encoding]
    first, second = (json.dumps(make_event()).encode() for _ in range(2))

    response = tenant.ingest.post(
        "/events",
        compress(b"[" + first) + compress(b"," + second + b"]"),
        Content_Encoding=encoding,
    )

    assert response.json["accepted"] == 2


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
@pytest.mark.parametrize("damage", ["cut", "noise", "plain", "noise at the end"])
def test_a_damaged_body_is_400(tenant, encoding, damage):
    plain = json.dumps([make_event()] * 100).encode()
    whole = COMPRESSED[encoding](plain)
    body = {
        "cut": whole[:-5],
        "noise": whole[:20] + bytes(20) + whole[40:],
        "plain": plain,
        "noise at the end": whole + b"noise",
    }[damage]

    response = tenant.ingest.post("/events", body, Content_Encoding=encoding)

    assert response.status_code == 400
    assert encoding in response.json["error"]


def bomb(encoding: str) -> bytes:
    """A gigabyte of zeros in zstd, a tenth of it in gzip, which packs no denser than 1000 to 1."""
    packer = zlib.compressobj(9, wbits=31) if encoding == "gzip" else zstd.ZstdCompressor()
    size = GIGABYTE // 10 if encoding == "gzip" else GIGABYTE
    parts = [packer.compress(bytes(10_000_000)) for _ in range(size // 10_000_000)]
    return b"".join([*parts, packer.flush()])


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_a_bomb_is_413_whatever_its_header_claims(tenant, encoding):
    body = bomb(encoding)

    response = tenant.ingest.post("/events", body, Content_Encoding=encoding)

    assert len(body) < 110_000
    assert response.status_code == 413
    assert str(MAX_BYTES) in response.json["error"]


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_a_body_of_a_million_empty_frames_is_413(tenant, encoding):
    body = COMPRESSED[encoding](b"") * 1_000_000

    response = tenant.ingest.post("/events", body, Content_Encoding=encoding)

    assert response.status_code == 413
    assert str(MAX_FRAMES) in response.json["error"]


@pytest.mark.parametrize(
    "text",
    [b"[" * 20_000_000, b"[" + b"{}," * 10_000_000 + b"{}]", b'[{"payload":[' + b"[]," * 9**7],
)
def test_a_body_of_nothing_but_brackets_is_413(tenant, text):
    response = tenant.ingest.post("/events", zstd.compress(text), Content_Encoding="zstd")

    assert response.status_code == 413
    assert str(MAX_BRACKETS) in response.json["error"]


def test_a_body_over_the_limit_is_413_before_it_is_read(tenant):
    response = tenant.ingest.post("/events", b"[" + b" " * MAX_BYTES)

    assert response.status_code == 413
    assert response.json["ok"] is False


def test_a_body_of_30_mb_loses_only_the_event_that_is_too_large(tenant):
    body = batch_around(event_text(json.dumps("x" * 30_000_000)))

    response = tenant.ingest.post("/events", body)

    assert (response.json["accepted"], response.json["rejected"]) == (2, 1)
    assert "payload is larger" in response.json["errors"][0]["reason"]
    assert list(stored_events(tenant)) == ["evt-before", "evt-after"]


def test_a_body_of_30_mb_that_needs_the_careful_reader_loses_no_more(tenant):
    large = event_text(json.dumps("\n" * 14_000_000 + "\x00"))

    response = tenant.ingest.post("/events", batch_around(large))

    assert (response.json["accepted"], response.json["rejected"]) == (2, 1)


def test_a_payload_of_2_mib_is_stored_whole(tenant):
    text = "x" * (MAX_PAYLOAD_BYTES - 2)

    response = tenant.ingest.post("/events", batch_around(event_text(json.dumps(text))))

    assert response.json["accepted"] == 3
    assert stored_events(tenant)["evt-odd"]["payload"] == text


def test_10_000_events_fit_in_a_batch_and_one_more_does_not(tenant):
    events = [make_event() for _ in range(MAX_EVENTS)]

    taken = tenant.ingest.post("/events", events)
    refused = tenant.ingest.post("/events", [*events, make_event()])

    assert taken.json["accepted"] == MAX_EVENTS
    assert refused.status_code == 413
    assert str(MAX_EVENTS) in refused.json["error"]


def test_the_limit_of_events_holds_where_one_of_them_is_not_a_number(tenant):
    body = b"[" + b"NaN," * MAX_EVENTS + b"1]"

    response = tenant.ingest.post("/events", body)

    assert response.status_code == 413


def test_when_every_event_is_refused_the_answer_says_so_of_each(tenant):
    response = tenant.ingest.post("/events", [make_event(event_id=""), make_event(event_id=None)])

    assert (response.status_code, response.json["accepted"]) == (200, 0)
    assert [error["index"] for error in response.json["errors"]] == [0, 1]
    assert tenant.read.get("/executions").json["executions"] == []


ODD_FOR_DETECTORS = [
    make_event(event_type="validator_result", payload=payload)
    for payload in (
        None,
        [],
        "text",
        {"passed": False},
        {"name": "\0\ud800", "passed": False},
        {"name": "x" * 100_000, "passed": False, "category": "y" * 100_000, "severity": 7},
        {"name": "many", "passed": False, "message": {"a": [1]}},
    )
] + [
    make_event(event_type="human_intervention", payload=payload)
    for payload in (
        None,
        {"response_kind": "timeout", "request_id": 7},
        {"response_kind": "rejected", "decided_at": "9999-12-31T23:59:59-12:00"},
        {"response_kind": "edited", "decided_at": "soon"},
        {"sla_seconds": 1, "wait_duration_ms": 10**40},
        {"sla_seconds": 10**4000, "wait_duration_ms": 1},
    )
] + [
    make_score(8),
    make_score(1e308, pair="ragas/relevance"),
    make_score(-1e308, pair="ragas/relevance"),
    make_score(0.1, pair="judge/\u202e", reason={"text": ["\ud800"]}),
    make_score(5e-324, scale=[-1e308, 1e308], pair="judge/scaled"),
    make_score(10**400, False, pair="judge/huge"),
]  # fmt: skip


def test_an_examination_takes_whatever_was_stored(tenant, database):
    tenant.ingest.post("/executions", make_execution())
    stored = tenant.ingest.post("/events", ODD_FOR_DETECTORS)
    tenant.ingest.patch("/executions/exec-1", make_close("crashed", crash_signature="\0" * 9000))

    examine_all(database)

    assert stored.json["errors"] == []
    content = tenant.read.get("/executions/exec-1").json
    assert content["execution"]["examined_at"] is not None
    classes = {group["failure_class"] for group in content["failure_groups"]}
    assert classes >= {"grounding_failure", "validator_failures", "hitl_timeout", "crashes"}
    for group in tenant.read.get("/failure-groups?limit=200").json["failure_groups"]:
        assert tenant.read.get(f"/failure-groups/{group['group_id']}").status_code == 200
        assert tenant.read.get(f"/failure-groups/{group['group_id']}/executions").json["count"] == 1


def test_what_is_stored_is_answered_as_strict_json(tenant):
    tenant.ingest.post("/events", batch_around(score_text(score="NaN")))

    text = tenant.read.get("/executions/exec-1").data

    assert json.loads(text, parse_constant=refuse_constant)["events"]


BAD_EXECUTIONS = {
    "no JSON": (b"{", 400, "not JSON"),
    "an array": (b"[]", 400, "JSON object"),
    "nothing": (b"", 400, "execution_id"),
    "no id": ({}, 400, "execution_id"),
    "an id that is null": (make_execution(None), 400, "execution_id"),
    "an empty id": (make_execution(""), 400, "execution_id"),
    "an id of 10 kB": (make_execution(ID_OF_10_KB), 400, "execution_id"),
    "an id with NUL": (make_execution("a\0b"), 400, "execution_id"),
    "an id with a lone surrogate": (make_execution("a\ud800"), 400, "execution_id"),
    "an id that is a number": (make_execution(7), 400, "execution_id"),
    "a status that is a number": (make_execution(status=7), 400, "status"),
    "a status of 10 kB": (make_execution(status=ID_OF_10_KB), 400, "status"),
    "a time that is none": (make_execution(started_at="soon"), 400, "started_at"),
    "a time after the year 9999": (
        make_execution(started_at="9999-12-31T23:59:59-05:00"),
        400,
        "started_at",
    ),
    "tokens beyond 64 bits": (make_execution(total_tokens_in=2**63), 400, "total_tokens_in"),
    "a duration of 5,000 digits": (
        b'{"execution_id":"exec-1","duration_ms":%s}' % (b"9" * 5000),
        200,
        "",
    ),
    "a duration that is a text": (make_execution(duration_ms="7"), 400, "duration_ms"),
    "a cost that is a text": (make_execution(estimated_cost_usd="much"), 400, "estimated_cost_usd"),
    "10,000 brackets": (b'{"execution_id":"exec-1","x":%s}' % NESTED.encode(), 400, "nested"),
    "another project's id": (make_execution(project_id="proj-other"), 403, "project_id"),
}


@pytest.mark.parametrize("case", BAD_EXECUTIONS)
def test_a_bad_execution_is_refused_with_the_field_and_the_reason(tenant, case):
    body, status, reason = BAD_EXECUTIONS[case]

    response = tenant.ingest.post("/executions", body)

    assert response.status_code == status
    assert reason in response.json.get("error", "")
    assert tenant.read.get("/executions").status_code == 200


ODD_EXECUTIONS = {
    "an unknown field": ({"unknown": [1]}, {}),
    "every optional field null": (
        dict.fromkeys(("status", "started_at", "ended_at", "duration_ms", "tenant_id", "release")),
        {"status": "started", "ended_at": None, "duration_ms": None, "tenant_id": None},
    ),
    "an empty status": ({"status": ""}, {"status": "started"}),
    "an unknown status": ({"status": "resting"}, {"status": "resting"}),
    "a time without a zone": (
        {"started_at": "2026-12-01T12:00:00"},
        {"started_at": "2026-12-01T12:00:00Z"},
    ),
    "a time in nanoseconds": (
        {"started_at": "2026-12-01T12:00:00.123456789Z"},
        {"started_at": "2026-12-01T12:00:00.123456Z"},
    ),
    "a time in 1970": (
        {"started_at": "1970-01-01T00:00:00Z"},
        {"started_at": "1970-01-01T00:00:00Z"},
    ),
    "a time in 2106": (
        {"started_at": "2106-02-07T06:28:16Z"},
        {"started_at": "2106-02-07T06:28:16Z"},
    ),
    "a zone beyond PostgreSQL's": (
        {"started_at": "2026-12-01T12:00:00+16:30"},
        {"started_at": "2026-11-30T19:30:00Z"},
    ),
    "NUL in a text": ({"tenant_id": "a\0b"}, {"tenant_id": "a\ufffdb"}),
    "a lone surrogate": ({"crash_signature": "\ud800"}, {"crash_signature": "\ufffd"}),
    "a cost that is not a number": (
        {"estimated_cost_usd": float("nan")},
        {"estimated_cost_usd": None},
    ),
    "a cost that is infinite": ({"estimated_cost_usd": float("inf")}, {"estimated_cost_usd": None}),
    "the key's own project": ({"project_id": ""}, {}),
}


@pytest.mark.parametrize("case", ODD_EXECUTIONS)
def test_an_odd_execution_is_stored(tenant, case):
    fields, shown = ODD_EXECUTIONS[case]

    response = tenant.ingest.post("/executions", make_execution(**fields))

    assert response.status_code == 200
    execution = tenant.read.get("/executions/exec-1").json["execution"]
    assert {name: execution[name] for name in shown} == shown
    assert tenant.read.get("/executions").json["count"] == 1


BAD_PATCHES = {
    "no JSON": (b"{", "not JSON"),
    "an array": (b"[]", "JSON object"),
    "nothing": (b"", "status"),
    "no status": ({}, "status"),
    "a status that is null": ({"status": None}, "status"),
    "an unknown status": ({"status": "resting"}, "status"),
    "a time before the year 1": (make_close(ended_at="0001-01-01T00:00:00+05:00"), "ended_at"),
    "a duration that is a text": (make_close(duration_ms="7"), "duration_ms"),
    "tokens that are a fraction": (make_close(total_tokens_in=1.5), "total_tokens_in"),
}


@pytest.mark.parametrize("case", BAD_PATCHES)
def test_a_bad_patch_is_400_and_changes_nothing(tenant, case):
    body, reason = BAD_PATCHES[case]
    tenant.ingest.post("/executions", make_execution())

    response = tenant.ingest.patch("/executions/exec-1", body)

    assert response.status_code == 400
    assert reason in response.json["error"]
    execution = tenant.read.get("/executions/exec-1").json["execution"]
    assert (execution["status"], execution["closed_at"]) == ("started", None)


@pytest.mark.parametrize("bad_id", [ID_OF_10_KB, "%00", "a%ffb", "%ed%a0%80"])
@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/executions/{}", "read"),
        ("PATCH", "/executions/{}", "ingest"),
        ("GET", "/executions/{}/halt-stream", "ingest"),
        ("POST", "/executions/{}/halt", "admin"),
        ("GET", "/failure-groups/{}", "read"),
        ("POST", "/failure-groups/{}/resolve", "admin"),
        ("GET", "/me/detector-thresholds/{}", "read"),
        ("GET", "/executions?q={}", "read"),
        ("GET", "/executions?cursor={}", "read"),
        ("GET", "/failure-groups?q={}", "read"),
        ("GET", "/failure-groups?release={}&environment={}&evaluator={}", "read"),
        ("DELETE", "/me/detector-thresholds/grounding_failure/mean_floor?reason={}", "admin"),
    ],
)
def test_an_address_that_names_nothing_is_never_a_fault(tenant, method, path, scope, bad_id):
    body = make_close() if method == "PATCH" else None

    response = getattr(tenant, scope).send(method, path.replace("{}", bad_id), body)

    assert response.status_code in (200, 204, 400, 404)


@pytest.mark.parametrize("name", ["%00", "a%00b", "%ed%a0%80"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/failure-groups/{}"),
        ("GET", "/failure-groups/{}/executions"),
        ("GET", "/failure-groups/{}/history"),
        ("POST", "/failure-groups/{}/resolve"),
        ("POST", "/failure-groups/{}/ignore"),
        ("POST", "/failure-groups/{}/over-strict"),
        ("GET", "/executions/{}"),
        ("DELETE", "/api-keys/{}"),
    ],
)
def test_what_no_database_can_hold_is_unknown(tenant, method, path, name):
    response = tenant.admin.send(method, path.replace("{}", name))

    assert response.status_code == 404


def test_an_id_with_slashes_is_no_other_id(tenant):
    ids = {"a//b", "a/b", "a/", "a"}
    for execution_id in ids:
        response = tenant.ingest.patch(f"/executions/{execution_id}", make_close())
        assert (response.status_code, response.json["execution_id"]) == (200, execution_id)

    shown = tenant.read.get("/executions").json["executions"]

    assert {row["execution_id"] for row in shown} == ids


@pytest.mark.parametrize("path", ["/executions/", "//executions", "/events/", "/failure-groups//"])
def test_no_address_is_answered_with_a_redirect_that_the_sdk_would_take_for_a_success(tenant, path):
    response = tenant.admin.post(path, make_execution())

    assert response.status_code in (404, 405)


def test_another_schema_version_is_400(tenant):
    response = tenant.ingest.post("/events", [make_event()], X_Mesedi_Schema_Version="2")

    assert response.status_code == 400
    assert "X-Mesedi-Schema-Version" in response.json["error"]
