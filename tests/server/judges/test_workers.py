"""Real workers and a judge that is slow: detection and pages go on, nothing is asked twice."""

import os
import signal

import pytest

from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.judges.asking import PASSAGE, SECRET, fitting, judge_server, prompts, until
from tests.server.judges.dying import give_up_what_was_under_way
from tests.server.live import judge_worker_process, worker_process

ENVIRONMENT = {"MESEDI_SECRET_KEY": SECRET, "MESEDI_PRIVATE_JUDGES": "1"}


@pytest.fixture
def held_up():
    """A judge that answers nothing until it is let."""

    def respond(handler):
        while not handler.server.stopping.wait(0.02):
            if handler.server.is_let:
                fitting(handler)
                return

    with judge_server(respond) as server:
        server.is_let = False
        yield server


def send(judged, execution_id: str, text: str) -> None:
    """Send a failing execution with an answer; the worker examines it."""
    client = judged.tenant.ingest
    payload = {
        "answer_id": "a",
        "question": "How much?",
        "answer": text,
        "context": {"passages": [PASSAGE]},
    }
    client.post("/executions", make_execution(execution_id))
    events = [
        make_event(execution_id, "answer", payload=payload),
        make_score(0.1, execution_id=execution_id),
    ]
    client.post("/events", events)
    client.patch(f"/executions/{execution_id}", make_close())


def failing(judged) -> int:
    groups = judged.tenant.read.get("/failure-groups").json["failure_groups"]
    return sum(group["occurrence_count"] for group in groups if group["evaluator_id"] == "ragas")


def test_a_judge_that_does_not_answer_delays_no_detection_and_no_page(
    judged, settings, staff, held_up
):
    judged.set_judge(held_up.url, answers="failing", concurrency=2)
    with worker_process(settings), judge_worker_process(settings, **ENVIRONMENT) as judge_worker:
        send(judged, "exec-0", "Take 0 mg.")
        until(lambda: held_up.asked, 30)
        for number in range(1, 6):
            send(judged, f"exec-{number}", f"Take {number} mg.")
        until(lambda: failing(judged) == 6)
        page = staff.browser("viewer").open(f"/p/{judged.tenant.project.project_id}/settings/judge")
        assert page.status == 200
        assert judged.outcomes() == []

        os.killpg(judge_worker.pid, signal.SIGKILL)
        judge_worker.wait()
    lost = judged.statuses()["running"]
    assert 1 <= lost <= 2
    give_up_what_was_under_way(judged)
    held_up.is_let = True
    with judge_worker_process(settings, **ENVIRONMENT):
        until(lambda: judged.waiting() == 0, 30)

    assert set(prompts(held_up).values()) == {1}
    assert len(held_up.asked) == 6
    assert judged.statuses() == {"unknown_outcome": lost, "response_saved": 6 - lost}
    assert sorted(judged.outcomes()) == ["met"] * (6 - lost) + ["unknown_outcome"] * lost


def test_a_worker_that_is_told_to_stop_waits_for_the_call_under_way(judged, settings, held_up):
    judged.set_judge(held_up.url)
    judged.give("exec-1", text="Take 1 mg.")
    judged.give("exec-2", text="Take 2 mg.")
    with judge_worker_process(settings, **ENVIRONMENT) as judge_worker:
        until(lambda: held_up.asked, 30)
        judge_worker.terminate()
        with pytest.raises(Exception, match="timed out"):
            judge_worker.wait(1)
        held_up.is_let = True
        assert judge_worker.wait(20) == 0

    assert len(held_up.asked) == 1
    assert judged.statuses() == {"response_saved": 1}
