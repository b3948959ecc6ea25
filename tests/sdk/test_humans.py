"""A human in the loop."""

import json

import mesedi
import pytest
from mesedi import HumanInterventionHandle

from tests.sdk.conftest import configure
from tests.sdk.ingest import Reply, free_port


def calls(server, execution_id):
    """What the server heard of an execution, in its order."""
    told = []
    for request in server.requests:
        if request.path == "/events":
            told += [
                "decision" if "response_kind" in event["payload"] else "question"
                for event in request.body
                if event["execution_id"] == execution_id
            ]
        elif execution_id in (request.path.rpartition("/")[2], request.body.get("execution_id")):
            told.append(request.body["status"])
    return told


def test_the_question_is_sent_when_it_is_asked_and_the_decision_when_it_falls(client, server):
    with mesedi.execution("exec-1"):
        handle = mesedi.request_human_intervention(
            "Send the refund?", sla_seconds=60, metadata={"ticket": 9}
        )
        assert mesedi.flush(5) == 0
        assert calls(server, "exec-1") == ["started", "question", "awaiting_human"]
        handle.complete("approved", {"amount": 10}, decided_by="ann")

    assert mesedi.flush(5) == 0
    assert calls(server, "exec-1")[3:] == ["decision", "started", "completed"]
    asked, decided = (event["payload"] for event in server.events)
    assert asked == {
        "request_id": handle.request_id,
        "question": "Send the refund?",
        "requested_at": handle.requested_at,
        "sla_seconds": 60,
        "metadata": {"ticket": 9},
    }
    assert decided["wait_duration_ms"] >= 0
    assert decided == asked | {
        "response_kind": "approved",
        "decided_at": decided["decided_at"],
        "wait_duration_ms": decided["wait_duration_ms"],
        "response_payload": {"amount": 10},
        "decided_by": "ann",
    }
    assert server.events[1]["duration_ms"] == decided["wait_duration_ms"]


def test_two_questions_have_places_of_their_own_in_the_execution(client, server):
    with mesedi.execution():
        for kind in ("rejected", "timeout"):
            mesedi.request_human_intervention("Sure?").complete(kind)

    assert mesedi.flush(5) == 0
    assert [event["sequence"] for event in server.events] == [1, 2, 3, 4]


def test_the_answer_may_be_learnt_in_another_process(client, server):
    with mesedi.execution("exec-1"):
        handle = mesedi.request_human_intervention("Sure?", metadata={"a": [1]})
    stored = json.dumps(handle.to_dict())

    again = HumanInterventionHandle.from_dict({**json.loads(stored), "of a later version": 1})
    again.complete("edited")

    assert again == handle
    assert mesedi.flush(5) == 0
    assert server.events[1]["execution_id"] == "exec-1"
    assert server.events[1]["payload"]["response_kind"] == "edited"


def test_a_decision_that_is_told_twice_is_stored_once(client, server):
    with mesedi.execution():
        handle = mesedi.request_human_intervention("Sure?")
        handle.complete("approved")
        handle.complete("rejected")

    assert mesedi.flush(5) == 0
    decisions = [event["payload"].get("response_kind") for event in server.events]
    assert decisions == [None, "approved"]


def test_a_question_outside_any_execution_has_one_that_ends_with_the_decision(client, server):
    handle = mesedi.request_human_intervention("Sure?")
    HumanInterventionHandle.from_dict(handle.to_dict()).complete("approved")

    assert mesedi.flush(5) == 0
    assert calls(server, handle.execution_id) == [
        "started",
        "question",
        "awaiting_human",
        "decision",
        "completed",
    ]


def test_pause_and_resume_keep_their_place_in_the_order(client, server):
    with mesedi.execution("exec-1"):
        mesedi.pause_for_human()
        mesedi.resume_for_agent()
    mesedi.pause_for_human("exec-2")

    assert mesedi.flush(5) == 0
    assert calls(server, "exec-1") == ["started", "awaiting_human", "started", "completed"]
    assert calls(server, "exec-2") == ["awaiting_human"]


def test_a_pause_outside_any_execution_is_counted(client, server):
    mesedi.pause_for_human()

    assert mesedi.stats().dropped == {"no execution": 1}


@pytest.mark.parametrize("status", [503, 409, 500])
def test_a_server_in_trouble_does_not_break_the_agent(client, server, status):
    server.rule = lambda request: Reply(status) if request.method == "PATCH" else None

    with mesedi.execution("exec-1"):
        handle = mesedi.request_human_intervention("Sure?")
        handle.complete("approved")
        mesedi.checkpoint("went on")

    server.rule = lambda _request: None
    assert mesedi.flush(5) == 0
    assert [event["event_type"] for event in server.events][-1] == "checkpoint"


def test_a_dead_server_does_not_break_the_agent():
    configure(f"http://127.0.0.1:{free_port()}")

    with mesedi.execution():
        handle = mesedi.request_human_intervention("Sure?")
        handle.complete("approved")

    assert mesedi.stats().pending == 2


def test_no_configuration_does_not_break_the_agent(monkeypatch):
    handle = mesedi.request_human_intervention("Sure?")
    handle.complete("approved")

    assert mesedi.stats().lost >= 2


class Unprintable:
    def __str__(self):
        raise RuntimeError


def test_nothing_that_is_asked_or_answered_raises(client, server):
    handle = mesedi.request_human_intervention(Unprintable(), metadata=[1, 2])
    handle.complete(Unprintable(), {"odd": Unprintable()})
    HumanInterventionHandle.from_dict({}).complete("approved")

    assert mesedi.flush(5) == 0
    assert len(server.events) == 3


def test_a_human_may_be_asked_when_the_budget_is_used_up(client, server):
    with mesedi.execution(budget=mesedi.Budget(max_steps=0)):
        mesedi.request_human_intervention("Go on?").complete("rejected")

    assert mesedi.flush(5) == 0
    assert len(server.events) == 2
