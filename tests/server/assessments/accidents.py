"""Workers that assess while accidents happen to them: each answer is assessed exactly once."""

import random
import time
from contextlib import closing
from pathlib import Path

from mesedi_server.config import Settings
from mesedi_server.store.database import Database
from mesedi_server.tasks import celery_app
from mesedi_server.tasks.wakeups import waker_for
from tests.factories import make_score
from tests.server.assessments.answering import assess_everything, make_answer
from tests.server.assessments.witness import Witness, witnessed
from tests.server.detection.accidents import Scene
from tests.server.detection.pipelines import make_pipeline, wrong_numbers
from tests.server.detection.workers import Worker, running

EXECUTIONS_A_ROUND = 400
TEXTS = {"Take 5 mg [1].": "met", "about 5 mg": "needs_review", "9 kg [3]": "violated"}
ANSWERS = len(TEXTS)

_ASSESSED = "SELECT count(*) FROM assessments"
_WAITING = "SELECT count(*) FROM assessment_work"
_DUE = "SELECT count(*) FROM executions WHERE detect_due_at IS NOT NULL"
# What one transaction writes is there together, or not at all.
_HALF_DONE = """
SELECT count(*) FROM executions x
WHERE x.examined_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM assessment_work w WHERE w.execution_pk = x.pk)
    AND (SELECT count(*) FROM assessments a WHERE a.execution_pk = x.pk)
        <> (SELECT count(*) FROM events e WHERE e.execution_pk = x.pk AND e.event_type = 'answer')
"""
_OUTCOMES = "SELECT answer_id, outcome, count(*) FROM assessments GROUP BY 1, 2"
_SCORES = """
SELECT metric_type, score, count(*) FROM events WHERE evaluator_id = 'mesedi/grounding' GROUP BY 1, 2
"""


def go_through(
    database_url: str, broker_url: str, log: Path, *, rounds: int, dice: random.Random
) -> None:
    """Let an accident happen in each round, while answers are assessed; then let all come to an end."""
    celery = celery_app.create(Settings(database_url=database_url, broker_url=broker_url))
    with closing(Database(database_url, connections=4)) as database:
        scene = Scene(
            make_pipeline(database),
            Worker(database_url, broker_url, log, MESEDI_WORKER_PROCESSES="2"),
            celery,
            waker_for(celery).wake,
            dice,
        )
        assess_everything(scene.pipeline)
        with witnessed(scene.pipeline) as witness, running(scene.worker):
            _act(scene, rounds)
            _check_the_end(scene, rounds, witness)


def _act(scene: Scene, rounds: int) -> None:
    accidents = [scene.kill_the_worker, scene.kill_the_worker, scene.cut_its_connections]
    accidents += [scene.flush_the_broker]
    for number in range(rounds):
        before = scene.scalar(_ASSESSED)
        _send(scene, number)
        scene.wake()
        scene.worker.until(lambda before=before: scene.scalar(_ASSESSED) > before)
        # Not to wait for anything: the accident is to happen somewhere in the next transactions.
        time.sleep(scene.dice.uniform(0, 0.3))
        accidents[number % len(accidents)]()
        assert scene.scalar(_HALF_DONE) == 0
    total = rounds * EXECUTIONS_A_ROUND * ANSWERS
    scene.worker.until(lambda: scene.scalar(_ASSESSED) == total)
    scene.worker.until(lambda: scene.scalar(_WAITING) + scene.scalar(_DUE) == 0)


def _send(scene: Scene, number: int) -> None:
    names = [f"exec-{number}-{index}" for index in range(EXECUTIONS_A_ROUND)]
    for name in names:
        answers = [make_answer(text, text, name) for text in TEXTS]
        scene.pipeline.send(make_score(0.2, execution_id=name), *answers, settle_s=0)
        scene.pipeline.close(name)


def _check_the_end(scene: Scene, rounds: int, witness: Witness) -> None:
    executions = rounds * EXECUTIONS_A_ROUND
    assert scene.scalar(_HALF_DONE) == 0
    assert wrong_numbers(scene.pipeline.database) == []
    with scene.pipeline.connection() as connection:
        outcomes = {tuple(row) for row in connection.exec_driver_sql(_OUTCOMES)}
        scores = {tuple(row) for row in connection.exec_driver_sql(_SCORES)}
    assert outcomes == {(text, outcome, executions) for text, outcome in TEXTS.items()}
    assert scores == {
        ("quantity_traceability", 1.0, executions),
        ("quantity_traceability", 0.0, executions * 2),
        ("citation_resolution", 1.0, executions),
        ("citation_resolution", 0.0, executions),
    }
    told = witness.told()
    assert len(told) == len(set(told)) == executions * ANSWERS
