"""Executions: what belongs to which, and how they end."""

import asyncio
import threading

import mesedi
import pytest
from mesedi._crashes import crash_signature

from tests.sdk.conftest import configure


def runs(server):
    """The executions in the order of their starts: (start, end) bodies."""
    assert mesedi.flush(5) == 0
    return [(run.get("POST"), run.get("PATCH")) for run in server.executions.values()]


def homes(server):
    """Which execution each metric went to."""
    return {event["payload"]["metric_type"]: event["execution_id"] for event in server.events}


def emit(metric):
    mesedi.emit_eval_score("judge", metric, 0.5)


def test_events_belong_to_the_execution_around_them_in_order(client, server):
    with mesedi.execution() as run:
        emit("first")
        emit("second")

    ((start, end),) = runs(server)
    assert start["execution_id"] == run.id
    assert start["status"] == "started"
    assert end["status"] == "completed"
    assert [(e["execution_id"], e["sequence"]) for e in server.events] == [(run.id, 1), (run.id, 2)]
    assert [request.path for request in server.requests] == [
        "/executions",
        "/events",
        f"/executions/{run.id}",
    ]


def test_the_start_says_started_however_short_the_run(client, server):
    for _ in range(40):
        with mesedi.execution():
            pass

    assert {start["status"] for start, _ in runs(server)} == {"started"}


def test_an_event_outside_makes_an_execution_of_its_own(client, server):
    emit("alone")
    emit("apart")

    assert [end["status"] for _, end in runs(server)] == ["completed", "completed"]
    assert set(homes(server).values()) == set(server.executions)


def test_an_execution_id_attaches_to_an_earlier_execution(client, server):
    with mesedi.execution():
        mesedi.emit_eval_score("judge", "late", 0.5, execution_id="exec-of-yesterday")

    runs(server)
    assert homes(server) == {"late": "exec-of-yesterday"}
    assert "exec-of-yesterday" not in server.executions


def test_a_nested_execution_tells_its_parent(client, server):
    with mesedi.execution() as outer:
        emit("before")
        with mesedi.execution() as inner:
            emit("inside")
        emit("after")

    starts = {start["execution_id"]: start for start, _ in runs(server)}
    assert "parent_execution_id" not in starts[outer.id]
    assert starts[inner.id]["parent_execution_id"] == outer.id
    assert homes(server) == {"before": outer.id, "inside": inner.id, "after": outer.id}


def test_labels_come_from_configure_and_from_the_execution(server, monkeypatch):
    monkeypatch.setenv("MESEDI_ENVIRONMENT", "staging")
    mesedi.configure("mesedi_sk_x", server.url, release="1.2")
    with mesedi.execution("exec-mine", tenant_id="t-7", release="1.3"):
        pass

    ((start, _),) = runs(server)
    labels = {name: start[name] for name in ("release", "environment", "tenant_id")}
    assert labels == {"release": "1.3", "environment": "staging", "tenant_id": "t-7"}
    assert start["execution_id"] == "exec-mine"


@pytest.mark.parametrize(
    ("error", "status", "signature"),
    [
        (ValueError("text"), "crashed", "ValueError:test_executions.py:fail"),
        (SystemExit(3), "crashed", "SystemExit:test_executions.py:fail"),
        (SystemExit(0), "completed", None),
        (KeyboardInterrupt(), "halted", "halt:cancelled"),
        (asyncio.CancelledError(), "halted", "halt:cancelled"),
    ],
)
def test_an_exception_ends_the_execution_and_goes_on(client, server, error, status, signature):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught, mesedi.execution():
        fail()

    ((_, end),) = runs(server)
    assert caught.value is error
    assert (end["status"], end.get("crash_signature")) == (status, signature)


def test_a_crash_has_one_name_wherever_and_whenever_it_is_deployed(tmp_path):
    source = "def fetch():\n    return {}['missing']\n"
    names = set()
    for folder, padding in (("one", ""), ("two", "# a new line\n\n")):
        scope = {}
        code = compile(padding + source, str(tmp_path / folder / "retrieval.py"), "exec")
        exec(code, scope)
        with pytest.raises(KeyError) as caught:
            scope["fetch"]()
        names.add(crash_signature(caught.value))

    assert names == {"KeyError:retrieval.py:fetch"}


def test_a_crash_inside_a_library_is_named_by_the_caller_s_own_code():
    import json

    def parse():
        json.loads("{")

    with pytest.raises(ValueError) as caught:
        parse()

    assert crash_signature(caught.value) == "JSONDecodeError:test_executions.py:parse"


def test_wrap_makes_an_execution_of_each_call(client, server):
    @mesedi.wrap(tenant_id="t")
    def work(x, *, y):
        """Documented."""
        emit(f"call {x}{y}")
        return x + y

    results = [work(1, y=2), work(3, y=4)]

    assert results == [3, 7]
    assert work.__doc__ == "Documented."
    assert [(s["tenant_id"], e["status"]) for s, e in runs(server)] == [("t", "completed")] * 2
    assert len(set(homes(server).values())) == 2


def test_a_wrapped_function_raises_its_own_error(client, server):
    @mesedi.wrap
    def work():
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        work()

    ((_, end),) = runs(server)
    assert end["crash_signature"] == "LookupError:test_executions.py:work"


def test_wrapped_coroutines_stay_apart_while_they_interleave(client, server):
    turn = {}

    @mesedi.wrap
    async def work(name):
        emit(f"{name} before")
        turn[name].set()
        await asyncio.gather(*(event.wait() for event in turn.values()))
        emit(f"{name} after")
        return mesedi.current_execution().id

    async def main():
        turn.update({name: asyncio.Event() for name in "abc"})
        return await asyncio.gather(*(work(name) for name in "abc"))

    ids = asyncio.run(main())

    assert [end["status"] for _, end in runs(server)] == ["completed"] * 3
    expected = {
        f"{n} {when}": i for n, i in zip("abc", ids, strict=True) for when in ("before", "after")
    }
    assert homes(server) == expected


def test_a_cancelled_coroutine_is_halted_and_stays_cancelled(client, server):
    started = asyncio.Event()

    @mesedi.wrap
    async def work():
        started.set()
        await asyncio.Event().wait()

    async def main():
        task = asyncio.ensure_future(work())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    ((_, end),) = runs(server)
    assert (end["status"], end["crash_signature"]) == ("halted", "halt:cancelled")


def test_a_wrapped_generator_lasts_until_it_is_exhausted(client, server):
    @mesedi.wrap
    def stream():
        emit("inside 1")
        sent = yield 1
        emit(f"inside {sent}")
        yield 2
        return "done"

    def consume():
        steps = stream()
        got = [next(steps)]
        assert mesedi.current_execution() is None
        emit("between")
        got.append(steps.send("two"))
        with pytest.raises(StopIteration) as stop:
            next(steps)
        return got, stop.value.value

    assert consume() == ([1, 2], "done")
    runs(server)
    where = homes(server)
    assert where["inside 1"] == where["inside two"] != where["between"]
    assert [run["PATCH"]["status"] for run in server.executions.values()] == ["completed"] * 2


def test_a_wrapped_generator_sees_what_is_thrown_in(client, server):
    @mesedi.wrap
    def stream():
        try:
            yield 1
        except KeyError:
            yield "caught"
        raise ValueError

    steps = stream()
    next(steps)

    assert steps.throw(KeyError()) == "caught"
    with pytest.raises(ValueError):
        next(steps)
    ((_, end),) = runs(server)
    assert end["crash_signature"] == "ValueError:test_executions.py:stream"


def test_a_generator_closed_early_is_completed_and_cleaned_up(client, server):
    cleaned = []

    @mesedi.wrap
    def stream():
        try:
            yield 1
            yield 2
        finally:
            cleaned.append(mesedi.current_execution())

    steps = stream()
    next(steps)
    steps.close()

    ((_, end),) = runs(server)
    assert end["status"] == "completed"
    assert cleaned[0] is not None


def test_a_wrapped_async_generator_behaves_like_the_plain_one(client, server):
    async def plain_stream():
        emit(f"inside {mesedi.current_execution() is not None}")
        try:
            sent = yield 1
        except KeyError:
            sent = "caught"
        yield sent
        raise ValueError

    async def consume(stream, how):
        steps = stream()
        got = [await steps.asend(None)]
        resume = steps.asend("sent") if how == "send" else steps.athrow(KeyError())
        got.append(await resume)
        got.append(mesedi.current_execution())
        with pytest.raises(ValueError):
            await steps.asend(None)
        return got

    for how in ("send", "throw"):
        bare = asyncio.run(consume(plain_stream, how))
        assert asyncio.run(consume(mesedi.wrap(plain_stream), how)) == bare

    crashed = [end for _, end in runs(server) if end["status"] == "crashed"]
    assert len(crashed) == 2
    assert "inside True" in homes(server)


def test_an_async_generator_closed_early_is_completed(client, server):
    @mesedi.wrap
    async def stream():
        yield 1
        yield 2

    async def main():
        steps = stream()
        await steps.asend(None)
        await steps.aclose()

    asyncio.run(main())

    ((_, end),) = runs(server)
    assert end["status"] == "completed"


def test_async_with_works_like_with(client, server):
    async def main():
        async with mesedi.execution() as run:
            emit("inside")
        return run.id

    run_id = asyncio.run(main())

    assert len(runs(server)) == 1
    assert homes(server) == {"inside": run_id}


def test_carry_takes_the_execution_into_a_thread(client, server):
    with mesedi.execution() as run:
        threads = [
            threading.Thread(target=mesedi.carry(emit), args=("carried",)),
            threading.Thread(target=emit, args=("plain",)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    runs(server)
    where = homes(server)
    assert where["carried"] == run.id
    assert where["plain"] != run.id


def test_an_execution_over_a_second_configure_is_closed(client, server):
    from tests.sdk.conftest import configure

    with mesedi.execution() as run:
        configure(server.url)
        emit("later")

    runs(server)
    assert set(server.executions[run.id]) >= {"POST", "PATCH"}
    assert mesedi.stats().sent == 1
    assert mesedi.stats().executions.sent == 2


def test_without_a_configuration_the_pipeline_runs_on_and_the_loss_is_told(caplog):
    with mesedi.execution():
        emit("lost")
        emit("too")

    assert mesedi.flush(1) == 0
    assert mesedi.stats().dropped == {"not configured": 2}
    assert [record.message for record in caplog.records] == [
        "mesedi is not configured: events are dropped. Set MESEDI_API_KEY"
    ]


def test_the_environment_configures(server, monkeypatch):
    monkeypatch.setenv("MESEDI_API_KEY", " mesedi_sk_from_env\n")
    monkeypatch.setenv("MESEDI_BASE_URL", server.url + "/")

    emit("first")

    assert len(runs(server)) == 1
    assert server.requests[0].headers["Authorization"] == "Bearer mesedi_sk_from_env"


@pytest.mark.parametrize(
    "wrong",
    [
        {"api_key": None},
        {"api_key": "sk_other"},
        {"api_key": "mesedi_sk_two\nlines"},
        {"api_key": "mesedi_sk_é"},
        {"base_url": "ftp://host"},
        {"base_url": "https://"},
        {"base_url": "http://host:port"},
        {"batch_size": 0},
        {"timeout": 0},
    ],
)
def test_configure_says_what_is_wrong(wrong):
    with pytest.raises(mesedi.ConfigurationError) as caught:
        mesedi.configure(**{"api_key": "mesedi_sk_x", **wrong})

    assert "two" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": 0},
        {"timeout": "10"},
        {"flush_interval_ms": -1},
        {"flush_interval_ms": float("nan")},
        {"flush_interval_ms": "250"},
        {"exit_timeout": -0.1},
        {"exit_timeout": float("nan")},
        {"max_backoff": float("nan")},
        {"max_backoff": -1},
        {"batch_size": True},
        {"max_event_bytes": float("nan")},
    ],
)
def test_a_number_that_cannot_be_used_is_refused_and_the_client_before_stays(server, wrong):
    before = configure(server.url)

    with pytest.raises(mesedi.ConfigurationError, match=next(iter(wrong)).removesuffix("_ms")):
        mesedi.configure("mesedi_sk_test", server.url, **wrong)

    mesedi.emit_eval_score("judge", "tone", 0.5)
    assert before.flush(5) == 0
    assert len(server.stored) == 1
