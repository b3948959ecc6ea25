"""What a caller hands over may be anything: nothing of it reaches the caller again, or stops what others sent."""

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
