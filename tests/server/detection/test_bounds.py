"""How much one examination takes up, and when a worker first looks."""

import time

from celery.contrib.testing.worker import start_worker

from mesedi_server import examination
from mesedi_server.tasks import celery_app, detect
from tests.factories import make_close, make_score

PATIENCE_S = 20.0


def close_with_scores(tenant, name: str, scores: int) -> None:
    tenant.ingest.post("/events", [make_score(0.2, execution_id=name) for _ in range(scores)])
    tenant.ingest.patch(f"/executions/{name}", make_close())


def examined(tenant) -> set[str]:
    executions = tenant.read.get("/executions").json["executions"]
    return {one["execution_id"] for one in executions if one["examined_at"]}


def test_a_claim_is_bounded_by_its_events_and_the_rest_stays_due(tenant, database, monkeypatch):
    monkeypatch.setattr(examination, "MAX_EVENTS", 10)
    for name, scores in (("exec-1", 6), ("exec-2", 4), ("exec-3", 1), ("exec-4", 30)):
        close_with_scores(tenant, name, scores)

    taken = []
    while examination.examine_due(database, settle_s=0):
        taken.append(examined(tenant))

    assert taken == [
        {"exec-1", "exec-2"},
        {"exec-1", "exec-2", "exec-3"},
        {"exec-1", "exec-2", "exec-3", "exec-4"},
    ]


def test_one_task_examines_all_that_is_due_though_claims_are_short(tenant, database, monkeypatch):
    monkeypatch.setattr(examination, "MAX_EVENTS", 1)
    for number in range(5):
        close_with_scores(tenant, f"exec-{number}", 2)

    assert detect.examine_all(database, settle_s=0) == 5


def test_a_worker_looks_once_when_it_starts_without_beat(tenant, settings, database):
    close_with_scores(tenant, "exec-1", 1)
    celery = celery_app.create(settings)
    detect.register(celery, settings, database)
    detect.look_at_start(celery)

    with start_worker(celery, perform_ping_check=False, pool="solo"):
        give_up_at = time.monotonic() + PATIENCE_S
        while not examined(tenant) and time.monotonic() < give_up_at:
            time.sleep(0.05)

    assert examined(tenant) == {"exec-1"}
