"""Workers that examine while accidents happen to them: nothing is lost, nothing counts twice."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from celery import Celery

from mesedi_server.config import Settings
from mesedi_server.store.database import Database
from mesedi_server.tasks import celery_app
from mesedi_server.tasks.wakeups import waker_for
from tests.factories import make_score
from tests.server.detection.pipelines import (
    Pipeline,
    make_check,
    make_decision,
    make_pipeline,
    wrong_numbers,
)
from tests.server.detection.workers import Worker, running

EXECUTIONS_A_ROUND = 1200
METRICS = 7
SPIKE = "hitl_rejection_spike:rejected"

_EXAMINED = "SELECT count(*) FROM executions WHERE examined_at IS NOT NULL"
_HALF_DONE = """
SELECT count(*) FROM executions x
WHERE (x.examined_at IS NOT NULL) <> EXISTS (SELECT FROM occurrences o
        JOIN failure_groups g ON g.pk = o.group_pk
        WHERE o.execution_pk = x.pk AND g.failure_class <> 'hitl_rejection_spike')
    OR (x.examined_at IS NOT NULL) <> EXISTS (SELECT FROM score_rollups r WHERE r.execution_pk = x.pk)
    OR x.examined_at IS NULL AND x.detect_due_at IS NULL
"""
_WORKERS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
"""


@dataclass(frozen=True)
class Scene:
    """Due executions, a worker that examines them, and what may befall it."""

    pipeline: Pipeline
    worker: Worker
    celery: Celery
    wake: Callable[[], None]
    dice: random.Random

    def kill_the_worker(self) -> None:
        self.worker.kill()
        self.wake()
        self.worker.start()

    def cut_its_connections(self) -> None:
        self.scalar(_WORKERS)
        self.wake()

    def flush_the_broker(self) -> None:
        self.celery.control.purge()
        self.wake()

    def scalar(self, statement: str) -> int:
        with self.pipeline.connection() as connection:
            return connection.exec_driver_sql(statement).scalar_one()


def go_through(
    database_url: str, broker_url: str, log: Path, *, rounds: int, dice: random.Random
) -> None:
    """Let an accident happen in each round, in the middle of examinations; then let all come to an end."""
    with closing(Database(database_url, connections=4)) as database:
        _act(database, database_url, broker_url, log, rounds, dice)


def _act(
    database: Database,
    database_url: str,
    broker_url: str,
    log: Path,
    rounds: int,
    dice: random.Random,
) -> None:
    celery = celery_app.create(Settings(database_url=database_url, broker_url=broker_url))
    scene = Scene(
        make_pipeline(database),
        Worker(database_url, broker_url, log, MESEDI_WORKER_PROCESSES="2"),
        celery,
        waker_for(celery).wake,
        dice,
    )
    accidents = [scene.kill_the_worker, scene.kill_the_worker, scene.cut_its_connections]
    accidents += [scene.flush_the_broker]
    with running(scene.worker):
        for number in range(rounds):
            _make_due(scene.pipeline, number)
            scene.wake()
            _until_it_is_busy(scene)
            accidents[number % len(accidents)]()
            _check_meanwhile(scene)
        scene.worker.until(lambda: scene.scalar(_EXAMINED) == rounds * EXECUTIONS_A_ROUND)
        _check_the_end(scene, rounds)


def _make_due(pipeline: Pipeline, number: int) -> None:
    names = [f"exec-{number}-{index}" for index in range(EXECUTIONS_A_ROUND)]
    sent = list(_failures(names))
    for start in range(0, len(sent), 1000):
        pipeline.send(*sent[start : start + 1000], settle_s=0)
    with pipeline.connection() as connection:
        connection.exec_driver_sql(
            "UPDATE executions SET closed_at = now(), detect_due_at = now()"
            " WHERE execution_id = ANY (%(names)s)",
            {"names": names},
        )


def _failures(names: list[str]) -> Iterator[dict]:
    for index, name in enumerate(names):
        yield make_score(0.2, pair=f"judge/{index % METRICS}", execution_id=name)
        if index % 3 == 0:
            yield make_check(f"check-{index % 5}") | {"execution_id": name}
        if index % 100 == 0:
            yield make_decision("rejected", name)


def _until_it_is_busy(scene: Scene) -> None:
    before = scene.scalar(_EXAMINED)
    scene.worker.until(lambda: scene.scalar(_EXAMINED) > before)
    # Not to wait for anything: the accident is to happen somewhere in the next batch.
    time.sleep(scene.dice.uniform(0, 0.2))


def _check_meanwhile(scene: Scene) -> None:
    assert scene.scalar(_HALF_DONE) == 0
    assert wrong_numbers(scene.pipeline.database) == []


def _check_the_end(scene: Scene, rounds: int) -> None:
    _check_meanwhile(scene)
    counts = {g.signature: g.occurrence_count for g in scene.pipeline.groups()}
    for metric in range(METRICS):
        of_metric = len(range(metric, EXECUTIONS_A_ROUND, METRICS))
        assert counts[f"grounding_failure:judge:{metric}"] == rounds * of_metric
    decided = rounds * len(range(0, EXECUTIONS_A_ROUND, 100))
    # The look after an examination may have been cut off; beat looks every thirty seconds.
    scene.worker.until(lambda: scene.pipeline.group(SPIKE).occurrence_count == decided)
    assert all(scene.pipeline.kinds(signature) == ["first_seen"] for signature in counts)
