"""Reading a batch of events: two readers, one answer."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesedi_server.errors import RefusedError
from mesedi_server.schemas import events
from mesedi_server.schemas.events import MAX_EVENTS, MAX_NAME_BYTES, EventRow
from tests.factories import make_event, make_score

NAMES = st.sampled_from(["exec-1", "evt-1", "é" * 128, "é" * 129, "", " ", "x" * 257, "\ufffd"])
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)
TIMES = st.sampled_from(
    [
        "2026-12-01T12:00:00Z",
        "2026-12-01T12:00:00",
        "2026-12-01T12:00:00.1+16:30",
        "2026-12-01",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
        "soon",
        "",
    ]
)
SCORES = st.fixed_dictionaries(
    {},
    optional={
        "evaluator_id": NAMES | VALUES,
        "metric_type": NAMES | VALUES,
        "score": VALUES,
        "passed": VALUES,
        "higher_is_better": VALUES,
        "scale": st.lists(VALUES, max_size=3) | VALUES,
        "reason": VALUES,
    },
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "event_id": NAMES | VALUES,
        "execution_id": NAMES | VALUES,
        "event_type": st.sampled_from(["eval_score", "checkpoint", "dlp_scan_result"]) | VALUES,
        "sequence": VALUES,
        "timestamp": TIMES | VALUES,
        "duration_ms": VALUES,
        "payload": SCORES | VALUES,
        "unknown": VALUES,
    },
)
GOOD = SCORES.map(lambda payload: make_event("exec-1", "eval_score", payload=payload))


def rows(batch: events.Batch) -> list:
    return json.loads(events.encode_rows(batch.rows))


# Of good ones alone, which the fast reader really reads, or of any.
BATCHES = st.lists(GOOD, min_size=1, max_size=4) | st.lists(EVENTS | GOOD | VALUES, min_size=1)


@settings(max_examples=80)
@given(BATCHES, st.booleans())
def test_the_fast_reader_and_the_careful_one_agree(values, is_ascii):
    body = json.dumps(values, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")

    fast, careful = events.read(body), events.read_carefully(body)

    assert rows(fast) == rows(careful)
    assert fast.refusals == careful.refusals
    assert len(fast.rows) + len(fast.refusals) == len(values)


@settings(max_examples=40)
@given(st.lists(EVENTS | GOOD, min_size=1, max_size=5), st.integers(0, 5))
def test_an_event_that_cannot_be_read_changes_nothing_for_the_others(values, place):
    text = [json.dumps(value) for value in values]
    place = min(place, len(text))
    text.insert(place, '{"event_id":"evt-deep","payload":' + "[" * 100 + "]" * 100 + "}")

    alone = events.read(json.dumps(values).encode())
    among = events.read(f"[{','.join(text)}]".encode())

    assert rows(among) == rows(alone)
    others = [refusal for refusal in among.refusals if refusal.index != place]
    assert [refusal.reason for refusal in others] == [r.reason for r in alone.refusals]
    assert len(others) == len(among.refusals) - 1


@pytest.mark.parametrize("read", [events.read, events.read_carefully])
def test_the_columns_of_a_score_are_what_detectors_read(read):
    event = make_score(0.42, False, pair="ragas/faithfulness", higher_is_better=None)

    (row,) = read(json.dumps([event]).encode()).rows

    assert row == EventRow(
        event_id=event["event_id"],
        execution_id="exec-1",
        event_type="eval_score",
        sequence=event["sequence"],
        timestamp=datetime.fromisoformat(event["timestamp"]),
        payload=event["payload"],
        evaluator_id="ragas",
        metric_type="faithfulness",
        score=0.42,
        passed=False,
        higher_is_better=True,
    )


@pytest.mark.parametrize("read", [events.read, events.read_carefully])
@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ({"score": None}, {}),
        ({"score": 1}, {"score": 1.0}),
        ({"score": -0.0015}, {"score": -0.0015}),
        ({"score": 10**400}, {}),
        ({"passed": None}, {}),
        ({"passed": True}, {"passed": True}),
        ({"metric_type": None}, {"metric_type": ""}),
        ({"metric_type": " Tone "}, {"metric_type": " Tone "}),
        ({"evaluator_id": " Judge "}, {"evaluator_id": " Judge "}),
        ({"higher_is_better": False}, {"higher_is_better": False}),
        ({"scale": None}, {}),
        ({"scale": [1, 5]}, {"scale_min": 1.0, "scale_max": 5.0}),
    ],
)
def test_a_field_is_read_as_its_rule_says(read, fields, columns):
    """Rules of detectors.md, "Reading one event's payload" and "Ingest of eval_score"."""
    event = make_score(score=None, **fields) if "score" not in fields else make_score(**fields)

    (row,) = rows(read(json.dumps([event]).encode()))

    plain = {"evaluator_id": "ragas", "metric_type": "faithfulness", "higher_is_better": True}
    names = ("evaluator_id", "metric_type", "score", "passed", "higher_is_better")
    names += ("scale_min", "scale_max")
    assert {name: row[name] for name in names if name in row} == plain | columns


@pytest.mark.parametrize("read", [events.read, events.read_carefully])
def test_a_name_of_256_bytes_fits_and_one_more_does_not(read):
    fits, exceeds = "é" * (MAX_NAME_BYTES // 2), "é" * (MAX_NAME_BYTES // 2) + "x"
    names = [{"event_id": name} for name in (fits, exceeds)]
    names += [{"execution_id": name} for name in (fits, exceeds)]

    batch = read(json.dumps([make_event(**name) for name in names]).encode())

    assert [refusal.index for refusal in batch.refusals] == [1, 3]


@pytest.mark.parametrize("read", [events.read, events.read_carefully])
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"[]", 400), (b"{}", 400), (b"", 400), (b"[" + b"{}," * MAX_EVENTS + b"{}]", 413)],
)
def test_a_body_that_is_no_batch_is_refused_as_a_whole(read, body, status):
    with pytest.raises(RefusedError) as refused:
        read(body)

    assert refused.value.status == status


def test_a_time_is_stored_in_utc():
    (row,) = events.read(
        json.dumps([make_event(timestamp="2026-12-01T12:00:00+16:30")]).encode()
    ).rows

    assert row.timestamp == datetime(2026, 11, 30, 19, 30, tzinfo=UTC)
    assert row.timestamp.utcoffset().total_seconds() == 0
