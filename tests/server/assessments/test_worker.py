"""Assessing by real workers: after an examination, and through accidents."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mesedi_server.store.database import Database
from tests.factories import make_close, make_score
from tests.server.assessments import accidents
from tests.server.assessments.answering import (
    assess,
    assess_everything,
    assessed,
    make_answer,
    settle,
)
from tests.server.assessments.witness import witnessed
from tests.server.detection.pipelines import Pipeline, make_pipeline, wrong_numbers
from tests.server.detection.workers import Worker, running

_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@pytest.fixture
def crowd(module_database_url):
    """A pipeline with a connection for everybody."""
    database = Database(module_database_url, connections=12)
    yield make_pipeline(database)
    database.close()


def test_a_failing_answer_is_assessed_after_its_examination(tenant, database, settings, tmp_path):
    pipeline = Pipeline(database, tenant.project)
    worker = Worker(settings.database_url, settings.broker_url, tmp_path / "log")

    with running(worker):
        tenant.ingest.post("/events", [make_score(0.2), make_answer("9 kg")])
        tenant.ingest.patch("/executions/exec-1", make_close())
        worker.until(lambda: assessed(pipeline))
        # Beat finds it, too: nobody is woken for an answer that comes later.
        tenant.ingest.post("/events", [make_answer("5 mg")])
        worker.until(lambda: assessed(pipeline)["a"].outcome == "met")

    assert worker.said() == ""


def test_scores_that_come_back_are_examined_at_once(tenant, database, settings, tmp_path):
    """Without waiting for beat, which looks every five seconds."""
    pipeline = Pipeline(database, tenant.project)
    assess_everything(pipeline)
    worker = Worker(settings.database_url, settings.broker_url, tmp_path / "log")
    waits = []

    with running(worker):
        for number in range(5):
            name = f"exec-{number}"
            sent = [make_score(0.9, execution_id=name), make_answer("9 kg", execution_id=name)]
            tenant.ingest.post("/events", sent)
            tenant.ingest.patch(f"/executions/{name}", make_close())
            waits.append(worker.until(lambda seen=number + 1: traced(tenant) == seen))

    # The first one waits for the worker's start; of the others, not all may be lucky.
    assert sorted(waits[1:])[1] < 2.5


def traced(tenant):
    groups = tenant.read.get("/failure-groups").json["failure_groups"]
    return sum(g["event_count"] for g in groups if g["evaluator_id"] == "mesedi/grounding")


def test_many_workers_assess_each_answer_once(crowd):
    """While clients send, and others examine; some answers are changed, as those before are being assessed."""
    assess_everything(crowd)
    before = scalar(crowd, _DEADLOCKS)
    is_over = threading.Event()

    def send(client):
        for number in range(40):
            names = [f"exec-{client}-{number}-{index}" for index in range(3)]
            for name in names:
                crowd.send(make_score(0.2, execution_id=name), make_answer(execution_id=name))
            for name in reversed(names):
                crowd.close(name)
            crowd.send(*(make_answer("9 kg", execution_id=name) for name in names))

    def work():
        while not is_over.is_set():
            assess(crowd)
            crowd.examine(settle_s=0)

    with witnessed(crowd) as witness, ThreadPoolExecutor() as pool:
        workers = [pool.submit(work) for _ in range(4)]
        clients = [pool.submit(send, client) for client in range(3)]
        for client in clients:
            client.result()
        is_over.set()
        for worker in workers:
            worker.result()
        settle(crowd)
        told = witness.told()

    names = [f"exec-{c}-{n}-{i}" for c in range(3) for n in range(40) for i in range(3)]
    assert all(assessed(crowd, name)["a"].outcome == "violated" for name in names)
    assert len(told) == len(set(told))
    assert wrong_numbers(crowd.database, crowd.project.pk) == []
    assert scalar(crowd, _DEADLOCKS) == before


def scalar(pipeline, statement):
    with pipeline.connection() as connection:
        return connection.exec_driver_sql(statement).scalar_one()


def test_accidents_lose_no_answer_and_assess_none_twice(database_url, broker_url, tmp_path):
    accidents.go_through(
        database_url, broker_url, tmp_path / "log", rounds=6, dice=random.Random(7)
    )
