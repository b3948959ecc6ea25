"""`mesedi-server worker` for real: its own process, a real broker, beat."""

import random
import time

import pytest

from mesedi_server.app import create_app
from mesedi_server.config import Settings
from mesedi_server.runtime import runtime
from mesedi_server.tasks import celery_app
from tests.factories import make_close, make_score
from tests.server.detection import accidents
from tests.server.detection.workers import PATIENCE_S, Worker, running
from tests.server.tenants import Caller

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(scope="module")
def worker(settings, tmp_path_factory):
    log = tmp_path_factory.mktemp("worker") / "log"
    return Worker(settings.database_url, settings.broker_url, log)


@pytest.fixture
def started(worker):
    with running(worker):
        yield worker


def fail(caller, name, pair="ragas/faithfulness"):
    """Send a failing score and close, through the API; return when that was."""
    sent = caller.post("/events", [make_score(0.2, pair=pair, execution_id=name)])
    closed = caller.patch(f"/executions/{name}", make_close())
    assert (sent.status_code, closed.status_code) == (200, 200)
    return time.monotonic()


def is_examined(tenant, name):
    return tenant.read.get(f"/executions/{name}").json["execution"]["examined_at"] is not None


def groups(tenant):
    found = tenant.read.get("/failure-groups").json["failure_groups"]
    return {group["metric_type"]: group["event_count"] for group in found}


def test_a_failing_execution_is_in_its_group_within_two_seconds_of_its_close(tenant, started):
    fail(tenant.ingest, "exec-0")
    started.until(lambda: is_examined(tenant, "exec-0"))
    waits = []

    for number in range(5):
        closed_at = fail(tenant.ingest, f"exec-{number + 1}", f"ragas/metric-{number}")
        started.until(lambda metric=f"metric-{number}": groups(tenant).get(metric) == 1)
        waits.append(time.monotonic() - closed_at)

    # Beat alone would take five seconds at worst; of five, three may not all be lucky.
    assert sorted(waits)[2] < 2.0
    assert started.said() == ""


def test_a_late_score_is_examined_when_its_moment_has_passed(tenant, started):
    fail(tenant.ingest, "exec-1")
    started.until(lambda: groups(tenant) == {"faithfulness": 1})

    tenant.ingest.post("/events", [make_score(1.0, execution_id="exec-1")])

    assert started.until(lambda: groups(tenant) == {}) > 1.5


def test_what_a_lost_wake_up_left_is_swept_up(app, settings, tenant, worker):
    """One wake-up never reached a broker, the other was flushed with it before any worker ran."""
    cut_off = create_app(Settings(database_url=settings.database_url, broker_url=NOWHERE))
    fail(Caller(cut_off, tenant.ingest.key), "exec-cut-off")
    with cut_off.app_context():
        runtime().database.close()
    fail(tenant.ingest, "exec-flushed")
    celery = celery_app.create(settings)
    deadline = time.monotonic() + PATIENCE_S
    while not celery.control.purge():
        assert time.monotonic() < deadline, "no wake-up was sent"

    with running(worker):
        worker.until(
            lambda: is_examined(tenant, "exec-cut-off") and is_examined(tenant, "exec-flushed")
        )

    assert groups(tenant) == {"faithfulness": 2}


def test_accidents_lose_nothing_and_double_nothing(database_url, broker_url, tmp_path):
    accidents.go_through(
        database_url, broker_url, tmp_path / "log", rounds=8, dice=random.Random(7)
    )
