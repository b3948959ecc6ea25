"""Trouble that passes: 503 with `Retry-After`, never 4xx, since clients drop what was refused."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import make_url

from mesedi_server.app import create_app
from tests.factories import make_close, make_event, make_execution
from tests.server.conftest import database_of
from tests.server.live import free_port
from tests.server.proxy import Proxy
from tests.server.tenants import Caller, Tenant, new_tenant

SDK_GIVES_UP_S = 10.0
PROBE_GIVES_UP_S = 4.0
PATIENCE_S = 20.0

REQUESTS = {
    "POST /executions": ("ingest", "POST", "/executions", make_execution()),
    "POST /events": ("ingest", "POST", "/events", [make_event()]),
    "PATCH": ("ingest", "PATCH", "/executions/exec-1", make_close()),
    "halt": ("admin", "POST", "/executions/exec-1/halt", {}),
    "an execution": ("read", "GET", "/executions/exec-1", None),
    "executions": ("read", "GET", "/executions", None),
    "groups": ("read", "GET", "/failure-groups", None),
    "stats": ("read", "GET", "/stats", None),
    "a threshold": (
        "admin",
        "PUT",
        "/me/detector-thresholds/grounding_failure/mean_floor",
        {"value": 0.4},
    ),
}


def send(tenant: Tenant, name: str):
    scope, *request = REQUESTS[name]
    return getattr(tenant, scope).send(*request)


def assert_passing(response) -> None:
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.json["ok"] is False
    assert response.json["error"]


@pytest.fixture
def application(settings):
    """Makes applications with settings of their own."""
    with ExitStack() as stack:

        def make(**changes):
            made = create_app(replace(settings, **changes))
            stack.callback(database_of(made).close)
            return made

        yield make


@pytest.fixture
def proxy(module_database_url) -> Iterator[Proxy]:
    road = Proxy(module_database_url)
    yield road
    road.close()


@pytest.fixture
def behind(proxy, application) -> Tenant:
    """A project whose application reaches its database through the proxy."""
    app = application(database_url=proxy.url)
    return new_tenant(app, database_of(app))


@pytest.mark.parametrize("name", REQUESTS)
def test_while_the_database_is_away_every_call_is_503(behind, proxy, name):
    send(behind, "POST /executions")
    proxy.refuse()

    assert_passing(send(behind, name))


def test_when_the_database_is_back_everything_goes_on_and_nothing_was_half_done(behind, proxy):
    writes = ["POST /executions", "POST /events", "PATCH"]
    for name in writes:
        proxy.refuse()
        assert_passing(send(behind, name))
        proxy.resume()
        assert send(behind, name).status_code == 200

    content = send(behind, "an execution").json
    assert content["execution"]["status"] == "completed"
    assert len(content["events"]) == 1


def test_a_key_that_cannot_be_checked_is_503_and_not_401(behind, proxy):
    proxy.refuse()

    assert_passing(Caller(behind.read.app, f"mesedi_sk_{'x' * 43}").get("/executions"))


def test_a_port_that_nobody_listens_on_is_503(application, tenant):
    app = application(database_url=f"postgresql://mesedi@127.0.0.1:{free_port()}/mesedi")

    assert_passing(Caller(app, tenant.ingest.key).post("/events", [make_event()]))


def test_connections_that_the_server_ended_cost_a_retry_at_most(tenant, database):
    for name in ("POST /executions", "POST /events"):
        send(tenant, name)
        end_connections(database)

        statuses = [send(tenant, name).status_code for _ in range(3)]

        assert statuses[0] in (200, 503)
        assert statuses[1:] == [200, 200]


def end_connections(database) -> None:
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_statement_that_is_cancelled_is_503(tenant, database):
    with ThreadPoolExecutor() as threads, locked(database):
        waiting = threads.submit(send, tenant, "POST /events")
        cancel_waiting(database)

        assert_passing(waiting.result(PATIENCE_S))


def locked(database) -> ExitStack:
    """Hold the executions so that nobody else can read or write them."""
    with ExitStack() as stack:
        connection = stack.enter_context(database.transaction())
        connection.exec_driver_sql("LOCK TABLE executions")
        return stack.pop_all()


def cancel_waiting(database) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        with database.transaction() as connection:
            cancelled = connection.exec_driver_sql(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ).all()
        if cancelled:
            return
    raise AssertionError("no statement waits for a lock")


def test_what_waits_too_long_for_a_lock_or_a_connection_is_503_in_time(
    tenant, database, application
):
    small = application(web_threads=1)
    crowded = new_tenant(small, database_of(small))
    crowded.ingest.post("/events", [make_event()])  # the key is known from now on
    names = ["POST /executions", "POST /events", "PATCH", "an execution"]

    with ThreadPoolExecutor() as threads, locked(database), ExitStack() as taken:
        for _ in range(3):
            taken.enter_context(database_of(small).transaction())
        begun_at = time.monotonic()
        waiting = [threads.submit(send, tenant, name) for name in names]
        waiting.append(threads.submit(send, crowded, "POST /events"))
        responses = [one.result(PATIENCE_S) for one in waiting]
        took_s = time.monotonic() - begun_at

    for response in responses:
        assert_passing(response)
    assert took_s < SDK_GIVES_UP_S
    assert [send(tenant, name).status_code for name in names] == [200] * 4


def test_readiness_says_that_the_database_is_away_and_health_does_not_ask(behind, proxy):
    ready = behind.read.get("/ready")
    proxy.refuse()

    away, health = behind.read.get("/ready"), behind.read.get("/health")

    assert (ready.status_code, ready.json["ok"]) == (200, True)
    assert all(check["ok"] for check in ready.json["checks"].values())
    assert (away.status_code, away.json["ok"]) == (503, False)
    for name in ("database_read", "database_write"):
        assert away.json["checks"][name]["ok"] is False
        assert away.json["checks"][name]["reason"]
    assert health.status_code == 200


def test_readiness_writes_for_real(database_url, application):
    name = make_url(database_url).database
    with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')

    checks = Caller(application(database_url=database_url), None).get("/ready").json["checks"]

    assert checks["database_read"]["ok"] is True
    assert checks["database_write"]["ok"] is False


def libpq_url(database_url: str) -> str:
    return make_url(database_url).set(drivername="postgresql").render_as_string(False)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where connections are taken, and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("kind", ["closed", "silent"])
def test_without_a_broker_everything_is_stored_and_answered_at_once(application, silent_port, kind):
    port = free_port() if kind == "closed" else silent_port
    app = application(broker_url=f"redis://127.0.0.1:{port}/0")
    tenant = new_tenant(app, database_of(app))

    for name in ("POST /executions", "POST /events", "PATCH", "an execution"):
        begun_at = time.monotonic()
        response = send(tenant, name)
        took_s = time.monotonic() - begun_at

        assert response.status_code == 200
        assert took_s < 1
    assert response.json["execution"]["detect_due_at"] is not None


@pytest.mark.parametrize("kind", ["closed", "silent"])
def test_readiness_says_that_the_broker_is_away_and_that_is_no_reason_to_stop(
    application, silent_port, kind
):
    port = free_port() if kind == "closed" else silent_port
    caller = Caller(application(broker_url=f"redis://127.0.0.1:{port}/0"), None)

    begun_at = time.monotonic()
    response = caller.get("/ready")

    assert (response.status_code, response.json["ok"]) == (200, True)
    assert response.json["checks"]["broker"]["ok"] is False
    assert time.monotonic() - begun_at < PROBE_GIVES_UP_S


def test_a_halt_stream_outlives_a_database_that_is_away_for_a_while(behind, proxy):
    send(behind, "POST /executions")
    response = behind.ingest.get("/executions/exec-1/halt-stream")
    frames = iter(response.response)
    heard = [next(frames)]
    listener = threading.Thread(target=lambda: heard.extend(frames), daemon=True)

    proxy.refuse()
    listener.start()
    assert proxy.has_refused.wait(PATIENCE_S)
    proxy.resume()
    send(behind, "halt")
    listener.join(PATIENCE_S)

    response.close()
    assert [frame.partition(b"\n")[0] for frame in heard] == [
        b": subscribed execution=exec-1",
        b"event: halt",
    ]
