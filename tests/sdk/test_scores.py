"""What a call to an emitter puts on the wire."""

import decimal
import enum
import json
import math

import mesedi
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mesedi._plain import plain
from mesedi._readings import read_score, read_verdict


class Wrapped:
    """What numpy's and torch's scalars have in common."""

    def __init__(self, held):
        self._held = held

    def item(self):
        return self._held


class Result:
    """What Ragas' MetricResult does to those who touch it carelessly."""

    def __init__(self, value):
        self.value = value

    def __bool__(self):
        raise TypeError

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        return getattr(self.value, name)

    def __copy__(self):
        raise RecursionError

    __deepcopy__ = __reduce__ = __copy__


class Grade(enum.Enum):
    GOOD = 0.8


def sent(server):
    assert mesedi.flush(5) == 0
    return server.scores


@pytest.mark.parametrize(
    ("given_score", "score"),
    [
        (0.42, 0.42),
        (0, 0.0),
        (1, 1.0),
        (True, 1.0),
        (7.5, 7.5),
        (-0.0015, -0.0015),
        (1.0000000000000002, 1.0000000000000002),
        ("0.9", 0.9),
        (" 0.9 ", 0.9),
        (decimal.Decimal("0.25"), 0.25),
        (Wrapped(0.5), 0.5),
        (Result(0.5), 0.5),
        (Result(Wrapped(0.5)), 0.5),
        (Grade.GOOD, 0.8),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (-math.inf, None),
        ("nan", None),
        ("N/A", None),
        ("B", None),
        ("", None),
        (Wrapped(math.nan), None),
        (Result(None), None),
        (Result(["b", "a"]), None),
        ([0.5], None),
        ({"score": 0.5}, None),
        (10**400, None),
        (object(), None),
    ],
)
def test_a_score_is_a_finite_number_or_unmeasured_never_0(client, server, given_score, score):
    mesedi.emit_eval_score("judge", "metric", given_score)

    (payload,) = sent(server)
    assert payload["score"] == score
    assert "passed" not in payload


@pytest.mark.parametrize(
    ("word", "higher_is_better", "score", "passed"),
    [
        ("pass", True, 1.0, True),
        ("FAIL", True, 0.0, False),
        ("fail", False, 0.0, False),
        ("yes", True, 1.0, True),
        ("no", True, 0.0, False),
        ("yes", False, 1.0, None),
        ("B", True, None, None),
    ],
)
def test_a_word_is_a_verdict_only_where_it_says_so(
    client, server, word, higher_is_better, score, passed
):
    mesedi.emit_eval_score("judge", "metric", word, higher_is_better=higher_is_better)

    (payload,) = sent(server)
    assert (payload["score"], payload.get("passed")) == (score, passed)
    assert payload["metadata"] == {"label": word}


@pytest.mark.parametrize(
    ("given_verdict", "passed"),
    [
        (True, True),
        (False, False),
        (None, None),
        (1, True),
        (0, False),
        ("true", True),
        ("false", False),
        ("Failed", False),
        ("perhaps", None),
        (0.5, None),
        (Wrapped(False), False),
        (object(), None),
    ],
)
def test_a_verdict_has_three_states_and_false_as_text_is_false(
    client, server, given_verdict, passed
):
    mesedi.emit_eval_score("judge", "metric", 0.5, given_verdict)

    (payload,) = sent(server)
    assert payload.get("passed") is passed


def test_a_verdict_stands_without_a_number(client, server):
    mesedi.emit_eval_score("judge", "metric", math.nan, passed=False)

    (payload,) = sent(server)
    assert payload["score"] is None
    assert payload["passed"] is False


def test_the_names_of_the_reference_work_too(client, server):
    mesedi.emit_eval_score(
        evaluator_id="ragas/faithfulness",
        metric_type="faithfulness",
        score=0.42,
        passed=False,
        threshold=0.7,
        higher_is_better=True,
        reason="two of five claims unsupported",
        confidence=0.9,
    )
    mesedi.emit_eval_score("ragas", "faithfulness", 0.42, False, 0.7, True, "because", 0.9)

    by_name, by_place = sent(server)
    assert by_name == {
        "evaluator_id": "ragas/faithfulness",
        "metric_type": "faithfulness",
        "score": 0.42,
        "passed": False,
        "threshold": 0.7,
        "higher_is_better": True,
        "reason": "two of five claims unsupported",
        "confidence": 0.9,
    }
    expected = {**by_name, "evaluator_id": "ragas", "reason": "because"}
    assert by_place == expected


def test_zeros_are_sent(client, server):
    mesedi.emit_eval_score("judge", "metric", 0.0, threshold=0.0, confidence=0.0)

    (payload,) = sent(server)
    assert (payload["score"], payload["threshold"], payload["confidence"]) == (0.0, 0.0, 0.0)


def test_scale_answer_status_and_metadata_travel(client, server):
    mesedi.emit_eval_score(
        "judge",
        "rubric",
        4,
        scale=(1, 5),
        answer_id="ans-1",
        status="scored",
        metadata={"model": "m", "seen": {1}},
    )

    (payload,) = sent(server)
    assert payload["scale"] == [1, 5]
    assert payload["answer_id"] == "ans-1"
    assert payload["status"] == "scored"
    assert payload["metadata"] == {"model": "m", "seen": [1]}


def test_a_reason_of_megabytes_is_cut_and_marked(client, server):
    mesedi.emit_eval_score("judge", "metric", 0.1, reason="x" * 3_000_000)

    (payload,) = sent(server)
    assert len(payload["reason"]) < 10_000
    assert payload["reason"].endswith("...[mesedi:truncated]")


def test_text_that_is_no_unicode_arrives(client, server):
    mesedi.emit_eval_score("judge", "日本 😀", 0.1, reason="lone \ud800 surrogate")

    (payload,) = sent(server)
    assert payload["metric_type"] == "日本 😀"
    assert payload["reason"] == "lone ? surrogate"


@pytest.mark.parametrize(
    "call",
    [
        mesedi.emit_eval_score,
        lambda: mesedi.emit_eval_score("", "metric", 0.5),
        lambda: mesedi.emit_eval_score("  ", "metric", 0.5),
        lambda: mesedi.emit_eval_score("judge", "metric", 0.5, treshold=0.4),
        lambda: mesedi.emit_eval_score("judge", "metric", 0.5, metadata=[1]),
        lambda: mesedi.emit_eval_score("judge", "metric", 0.5, scale=7),
        mesedi.emit_event,
        lambda: mesedi.record_answer("q", "a", 7),
        lambda: mesedi.emit_ragas(None),
        lambda: mesedi.emit_promptfoo(7),
    ],
)
def test_a_wrong_call_does_not_raise_and_is_counted(client, server, caplog, call):
    call()

    assert mesedi.flush(5) == 0
    stats = mesedi.stats()
    assert sum(stats.dropped.values()) + len(server.stored) == 1
    assert not stats.complete or server.stored


def test_a_payload_is_copied_at_the_call(client, server):
    metadata = {"list": [1, 2]}
    with mesedi.execution():
        mesedi.emit_event("custom", metadata)
        mesedi.emit_eval_score("judge", "metric", 0.5, metadata=metadata)
        metadata["list"].append(3)
        metadata["later"] = True

    mesedi.flush(5)
    (event,) = server.of_type("custom")
    assert event["payload"] == {"list": [1, 2]}
    assert server.scores[0]["metadata"] == {"list": [1, 2]}


def test_an_object_without_json_is_named_by_its_type_and_never_by_its_repr(client, server):
    class Secret:
        def __repr__(self):
            raise AssertionError("nobody may look")

    mesedi.emit_event("custom", {"thing": Secret(), "number": math.nan, "bytes": b"abc"})

    mesedi.flush(5)
    (event,) = server.of_type("custom")
    assert event["payload"]["thing"].endswith("Secret>")
    assert event["payload"]["number"] is None
    assert event["payload"]["bytes"] == "<3 bytes>"


def test_record_answer_sends_the_evidence_and_tells_its_id(client, server):
    class Document:
        page_content = "from a retriever"
        id = "doc-7"

    with mesedi.execution():
        answer_id = mesedi.record_answer("q?", "a.", ["one", Document(), {"text": "two"}])
        mesedi.emit_eval_score("judge", "metric", 0.5, answer_id=answer_id)

    mesedi.flush(5)
    (answer,) = server.of_type("answer")
    assert answer["payload"] == {
        "answer_id": answer_id,
        "question": "q?",
        "answer": "a.",
        "context": {
            "excerpts": ["one", {"id": "doc-7", "text": "from a retriever"}, {"text": "two"}]
        },
    }
    assert server.scores[0]["answer_id"] == answer_id


@pytest.mark.parametrize(
    ("contexts", "context"),
    [
        (None, None),
        ([], {"excerpts": []}),
        ("one", {"excerpts": ["one"]}),
        ({"documents": ["d"]}, {"documents": ["d"]}),
    ],
)
def test_nothing_found_is_told_from_nothing_known(client, server, contexts, context):
    mesedi.record_answer("q", "a", contexts)

    mesedi.flush(5)
    (answer,) = server.of_type("answer")
    assert answer["payload"]["context"] == context


def test_validator_and_checkpoint_have_the_reference_s_payloads(client, server):
    with mesedi.execution():
        mesedi.validator_result("citations", False, "claim 3", "critical", "missing")
        mesedi.validator_result("length", "true", severity="loud")
        mesedi.checkpoint("retrieved", count=3)

    mesedi.flush(5)
    first, second = (event["payload"] for event in server.of_type("validator_result"))
    assert first == {
        "name": "citations",
        "passed": False,
        "severity": "critical",
        "message": "claim 3",
        "category": "missing",
    }
    assert second == {"name": "length", "passed": True, "severity": "error"}
    (checkpoint,) = server.of_type("checkpoint")
    assert checkpoint["payload"] == {"name": "retrieved", "metadata": {"count": 3}}


_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.decimals()
    | st.builds(object),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
)


# The time of a first example is the machine's, not ours.
_brief = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_brief
@given(_anything)
def test_a_copy_is_always_strict_json(value):
    copy, size = plain(value)

    assert json.loads(json.dumps(copy, allow_nan=False)) == copy
    assert size > 0


def test_a_copy_of_what_holds_itself_ends():
    loop = {}
    loop["again"] = loop
    loop["twice"] = [loop, loop]

    copy, _ = plain(loop)

    json.dumps(copy)


@_brief
@given(_anything)
def test_reading_never_raises_and_never_answers_what_is_no_number(value):
    reading = read_score(value)
    verdict = read_verdict(value)

    assert reading.score is None or math.isfinite(reading.score)
    assert verdict in (True, False, None)


@pytest.mark.parametrize("scale", [(0, 0), (10, 0), (0, None), (0, float("nan")), (1,), "ab"])
def test_a_scale_that_is_none_is_left_out_and_the_score_kept(client, server, scale):
    mesedi.emit_eval_score("judge", "quality", 8, scale=scale)

    assert mesedi.flush(5) == 0
    (score,) = server.scores
    assert score["score"] == 8
    assert "scale" not in score
