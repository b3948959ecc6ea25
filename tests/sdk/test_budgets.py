"""Budgets and halts: the one way in which the SDK may raise into its host, when asked to."""

import asyncio
import threading

import mesedi
import pytest
from mesedi import Budget, MesediHalt
from mesedi._budgets import Meter

from tests.sdk.conftest import configure
from tests.sdk.ingest import eventually, free_port


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def ending(server):
    assert mesedi.flush(5) == 0
    (run,) = server.executions.values()
    return run["PATCH"]["status"], run["PATCH"].get("crash_signature")


def halts_of(run):
    with pytest.raises(MesediHalt) as halted:
        run()
    return halted.value.trigger


def test_a_limit_is_reached_when_it_is_used_up():
    clock = Clock()
    meter = Meter(Budget(max_wall_clock_seconds=10), clock=clock)

    clock.now = 9.99
    meter.step()
    clock.now = 10.0

    assert halts_of(meter.step) == "wall_clock"


@pytest.mark.parametrize(
    ("budget", "spent", "trigger"),
    [
        (Budget(max_tokens_in=10), (9, 100), None),
        (Budget(max_tokens_in=10), (10, 0), "token_total"),
        (Budget(max_tokens_out=10), (0, 10), "token_total"),
        (Budget(max_steps=0), (0, 0), "step_count"),
        (Budget(), (10**9, 10**9), None),
    ],
)
def test_tokens_and_steps_have_limits_of_their_own(budget, spent, trigger):
    meter = Meter(budget)

    meter.spend(*spent)

    if trigger is None:
        meter.step()
    else:
        assert halts_of(meter.step) == trigger


def test_steps_are_counted_at_the_halt_safe_points(client, server):
    def work():
        with mesedi.execution(budget=Budget(max_steps=4)):
            mesedi.emit_eval_score("judge", "tone", 0.5)
            mesedi.record_answer("q", "a")
            mesedi.emit_event("custom")
            mesedi.checkpoint("here")
            mesedi.validator_result("citations", passed=False)
            mesedi.checkpoint("never")

    assert halts_of(work) == "step_count"
    assert ending(server) == ("halted", "halt:step_count")
    kinds = [event["event_type"] for event in server.events]
    assert kinds == ["eval_score", "answer", "custom", "checkpoint", "validator_result"]


def test_whole_results_halt_too_and_are_not_swallowed(client, server):
    rows = [{"faithfulness": 0.5}] * 10

    with pytest.raises(MesediHalt), mesedi.execution(budget=Budget(max_steps=3)):
        mesedi.emit_ragas(rows)

    assert mesedi.flush(5) == 0
    assert len(server.scores) == 3


def test_the_tokens_of_model_calls_are_spent(client, server):
    def work():
        with mesedi.execution(budget=Budget(max_tokens_out=100)):
            for _ in range(10):
                mesedi.emit_event("llm_call", {"input_tokens": 5, "output_tokens": 40})

    assert halts_of(work) == "token_total"
    assert ending(server) == ("halted", "halt:token_total")
    assert len(server.events) == 3


def test_without_a_budget_nothing_is_raised(client, server):
    with mesedi.execution():
        for _ in range(1000):
            mesedi.checkpoint("again")

    assert ending(server) == ("completed", None)


def test_a_wrapped_call_whose_budget_ends_answers_none(client, server):
    @mesedi.wrap(budget=Budget(max_steps=1))
    def agent():
        while True:
            mesedi.checkpoint("again")

    assert agent() is None
    assert ending(server) == ("halted", "halt:step_count")


def test_every_kind_of_wrapped_function_ends_quietly(client, server):
    budget = Budget(max_steps=2)

    @mesedi.wrap(budget=budget)
    async def coroutine():
        while True:
            mesedi.checkpoint("again")

    @mesedi.wrap(budget=budget)
    def generator():
        while True:
            mesedi.checkpoint("again")
            yield 1

    @mesedi.wrap(budget=budget)
    async def async_generator():
        while True:
            mesedi.checkpoint("again")
            yield 1

    async def main():
        return await coroutine(), [item async for item in async_generator()]

    assert asyncio.run(main()) == (None, [1, 1])
    assert list(generator()) == [1, 1]
    assert mesedi.flush(5) == 0
    assert {run["PATCH"]["status"] for run in server.executions.values()} == {"halted"}


def test_the_budget_around_counts_what_happens_inside(client, server):
    @mesedi.wrap(budget=Budget(max_steps=2))
    def inner():
        mesedi.checkpoint("inner")
        mesedi.checkpoint("inner")
        mesedi.checkpoint("too much")

    def outer():
        with mesedi.execution(budget=Budget(max_steps=3)):
            assert inner() is None
            inner()

    assert halts_of(outer) == "step_count"
    assert mesedi.flush(5) == 0
    assert len(server.events) == 3
    assert {run["PATCH"]["status"] for run in server.executions.values()} == {"halted"}


def test_the_server_s_halt_ends_the_execution_at_its_next_safe_point(client, server):
    def work():
        with mesedi.execution("exec-remote", budget=Budget(max_steps=10**9)):
            server.wait_for(lambda: "exec-remote" in server.listeners)
            server.halt("exec-remote", "too expensive")
            eventually(lambda: not server.listeners)
            pause = threading.Event()
            while True:
                mesedi.checkpoint("still here")
                pause.wait(0.01)

    with pytest.raises(MesediHalt) as halted:
        work()

    assert (halted.value.trigger, halted.value.reason) == ("remote_signal", "too expensive")
    assert ending(server) == ("halted", "halt:remote_signal")


def listening():
    return [thread for thread in threading.enumerate() if thread.name == "mesedi-halt"]


def test_the_stream_ends_with_the_execution(client, server):
    with mesedi.execution("exec-short", budget=Budget()):
        server.wait_for(lambda: server.listeners)
        assert len(listening()) == 1

    eventually(lambda: not listening())


def test_no_more_than_four_executions_listen_and_the_others_run_on(client, server):
    runs = [mesedi.execution(f"exec-{n}", budget=Budget(max_steps=1)) for n in range(6)]
    for run in runs:
        run.start()
    server.wait_for(lambda: len(server.listeners) == 4)

    assert len(listening()) == 4
    for run in runs:
        run.end(None)
    eventually(lambda: not listening())


@pytest.mark.parametrize("status", [401, 404])
def test_a_server_without_streams_changes_nothing(client, server, status):
    server.halt_status = status

    with mesedi.execution(budget=Budget(max_steps=10)):
        eventually(lambda: not listening())
        mesedi.checkpoint("here")

    assert ending(server) == ("completed", None)


def test_a_dead_server_changes_nothing():
    configure(f"http://127.0.0.1:{free_port()}")

    with mesedi.execution(budget=Budget(max_steps=10)):
        mesedi.checkpoint("here")

    eventually(lambda: not listening())


def test_who_wants_no_stream_gets_none(client, server):
    with mesedi.execution(budget=Budget(max_steps=10, remote_halt=False)):
        mesedi.checkpoint("here")
        assert not listening()


def test_a_wrapped_call_says_its_agent_and_its_mode(client, server):
    @mesedi.wrap(agent_name="planner", execution_mode=" Replay ", tenant_id="acme")
    def agent():
        mesedi.checkpoint("here")

    agent()

    assert mesedi.flush(5) == 0
    told = [(event["event_type"], event["payload"], event["sequence"]) for event in server.events]
    assert told[:2] == [
        ("agent_declaration", {"agent_name": "planner"}, 1),
        ("environment_declaration", {"mode": "replay"}, 2),
    ]
    (run,) = server.executions.values()
    assert run["POST"]["tenant_id"] == "acme"
