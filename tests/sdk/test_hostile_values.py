"""What a caller hands over may be anything: nothing of it reaches the caller again, or stops what others sent."""

import time

import mesedi
import pytest

from tests.sdk.conftest import configure


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise OSError(name)

    def __str__(self):
        raise OSError

    __repr__ = __str__


def nested(levels):
    value = {}
    for _ in range(levels):
        value = {"in": value}
    return value


def test_an_id_that_no_address_can_hold_does_not_stop_the_others(server, client):
    with mesedi.execution("x\ud800"):
        mesedi.emit_eval_score("judge", "tone", 0.1)
    with mesedi.execution("healthy"):
        mesedi.emit_eval_score("judge", "tone", 0.2)

    assert mesedi.flush(timeout=10) == 0
    assert server.executions["healthy"]["PATCH"]["status"] == "completed"
    assert len(server.stored) == 2


@pytest.mark.parametrize("make", [lambda: 10**5000, Hostile, lambda: nested(5000)])
@pytest.mark.parametrize("name", ["release", "environment", "tenant_id", "parent_execution_id"])
def test_a_label_that_cannot_be_printed_raises_nothing(server, client, name, make):
    with mesedi.execution("labelled", **{name: make()}):
        mesedi.emit_eval_score("judge", "tone", 0.1)

    assert mesedi.flush(timeout=10) == 0
    assert len(server.stored) == 1


@pytest.mark.parametrize("trouble", [SystemExit, KeyboardInterrupt, ValueError])
def test_a_hook_that_raises_anything_drops_its_events_alone(server, trouble):
    def hook(event):
        if event["payload"]["score"] < 0.5:
            raise trouble
        return event

    configure(server.url, before_send=hook)
    mesedi.emit_eval_score("judge", "tone", 0.1, execution_id="exec-1")
    mesedi.emit_eval_score("judge", "tone", 0.9, execution_id="exec-1")

    assert mesedi.flush(timeout=10) == 0
    assert [event["payload"]["score"] for event in server.stored.values()] == [0.9]


def test_a_hook_that_answers_a_hostile_payload_drops_that_event_alone(server):
    def hook(event):
        return {"payload": Hostile()} if event["payload"]["score"] < 0.5 else event

    configure(server.url, before_send=hook)
    mesedi.emit_eval_score("judge", "tone", 0.1, execution_id="exec-1")
    mesedi.emit_eval_score("judge", "tone", 0.9, execution_id="exec-1")

    assert mesedi.flush(timeout=10) == 0
    assert 0.9 in [
        event["payload"].get("score")
        for event in server.stored.values()
        if isinstance(event["payload"], dict)
    ]


class Unprintable(str):
    """A text that cannot be asked for."""

    __slots__ = ()

    def __str__(self):
        raise ValueError

    __repr__ = __str__


class Undecided:
    """As an array of several numbers: neither true nor false."""

    def __bool__(self):
        raise ValueError


def endless():
    while True:
        yield "a passage"


@pytest.mark.parametrize(
    "make_side",
    [
        lambda: {"reason": Hostile()},
        lambda: {"reason": Unprintable("x")},
        lambda: {"answer_id": Hostile()},
        lambda: {"status": Hostile()},
        lambda: {"metadata": Hostile()},
        lambda: {"metadata": {"a": Hostile(), "b": Unprintable("x")}},
        lambda: {"metadata": 3},
        lambda: {"scale": 5},
        lambda: {"scale": Hostile()},
        lambda: {"scale": endless()},
        lambda: {"threshold": Hostile()},
        lambda: {"confidence": Hostile()},
        lambda: {"higher_is_better": Undecided()},
        lambda: {"passed": Hostile()},
        lambda: {"metric": Hostile()},
    ],
)
def test_a_bad_side_field_costs_the_field_and_not_the_score(server, client, make_side):
    mesedi.emit_eval_score(**{"evaluator": "judge", "metric": "tone", "score": 0.1, **make_side()})
    mesedi.emit_eval_score(
        **{"evaluator": "judge", "metric": "tone", "score": "weak", **make_side()}
    )

    assert mesedi.flush(timeout=10) == 0
    assert [score["score"] for score in server.scores] == [0.1, None]
    assert mesedi.stats().lost == 0


@pytest.mark.parametrize(
    "make_contexts",
    [lambda: 3, Hostile, lambda: [Hostile(), "good"], endless, lambda: [1.5] * 10**6],
)
def test_a_bad_context_costs_no_answer_and_no_time(server, client, make_contexts):
    contexts = make_contexts()
    begun = time.monotonic()
    mesedi.record_answer("question", "answer", contexts, execution_id="exec-1")
    took = time.monotonic() - begun

    assert mesedi.flush(timeout=10) == 0
    (event,) = server.stored.values()
    assert event["payload"]["answer"] == "answer"
    assert took < 0.5


def test_other_events_survive_bad_side_fields_too(server, client):
    mesedi.validator_result(
        "check", Hostile(), message=Hostile(), severity=["x"], category=Hostile()
    )
    mesedi.emit_event("llm_call", Hostile())
    mesedi.checkpoint("place", detail=Hostile())

    assert mesedi.flush(timeout=10) == 0
    assert len(server.stored) == 3
