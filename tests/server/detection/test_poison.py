"""An execution that cannot be examined holds up no other."""

import logging
from datetime import timedelta

import pytest
from sqlalchemy import text

from mesedi_server import examination
from mesedi_server.tasks.detect import examine_all
from tests.factories import TOO_DEEP, make_score
from tests.server.detection.pipelines import make_check

# Damage that the door keeps out, but a restored backup or somebody's own SQL may bring.
NO_PYTHON_TIME = "timestamp = 'infinity'"
NO_PYTHON_PAYLOAD = f"payload = payload || jsonb_build_object('deep', {TOO_DEEP})"
DAMAGES = [NO_PYTHON_TIME, NO_PYTHON_PAYLOAD]


@pytest.fixture
def spoil(pipeline):
    def do(execution_id, damage):
        with pipeline.connection() as connection:
            connection.execute(
                text(
                    f"UPDATE events SET {damage} WHERE event_type = 'validator_result' AND execution_pk ="
                    " (SELECT pk FROM executions WHERE project_pk = :project AND execution_id = :name)"
                ),
                {"project": pipeline.project.pk, "name": execution_id},
            )

    return do


def fail(pipeline, *names):
    for name in names:
        pipeline.send(
            make_score(0.2, execution_id=name), make_check() | {"execution_id": name}, settle_s=0
        )
        pipeline.close(name)


@pytest.mark.parametrize("damage", DAMAGES, ids=["no Python time", "too deep"])
def test_its_neighbours_are_examined_and_it_is_put_off(pipeline, spoil, damage, caplog):
    fail(pipeline, "exec-1", "exec-bad", "exec-2")
    spoil("exec-bad", damage)

    examined = examine_all(pipeline.database, settle_s=0)

    assert examined == 3
    assert pipeline.members().keys() == {"exec-1", "exec-2"}
    bad = pipeline.execution("exec-bad")
    assert bad.examined_at is None
    assert bad.detect_due_at - bad.closed_at > timedelta(minutes=59)
    [said] = [r for r in caplog.records if r.name == "mesedi_server.examination"]
    assert (said.levelno, "exec-bad" in said.getMessage()) == (logging.ERROR, True)


def test_nothing_of_its_examination_is_left(pipeline, spoil):
    fail(pipeline, "exec-bad")
    spoil("exec-bad", NO_PYTHON_PAYLOAD)

    examine_all(pipeline.database, settle_s=0)

    assert pipeline.groups() == []
    assert pipeline.rollups("exec-bad") == []


def test_several_are_put_off_each(pipeline, spoil):
    bad = [f"bad-{number}" for number in range(3)]
    fail(pipeline, "exec-1", *bad, "exec-2")
    for name, damage in zip(bad, [*DAMAGES, NO_PYTHON_PAYLOAD], strict=True):
        spoil(name, damage)

    examine_all(pipeline.database, settle_s=0)

    assert pipeline.members().keys() == {"exec-1", "exec-2"}
    assert all(pipeline.execution(name).detect_due_at is not None for name in bad)
    assert examine_all(pipeline.database, settle_s=0) == 0


def test_more_than_a_batch_behind_it_is_examined(pipeline, spoil):
    fail(pipeline, "exec-bad")
    spoil("exec-bad", NO_PYTHON_PAYLOAD)
    names = [f"exec-{number}" for number in range(examination.BATCH + 20)]
    pipeline.send(*(make_score(0.2, execution_id=name) for name in names), settle_s=0)

    examine_all(pipeline.database, settle_s=0)

    assert pipeline.group().occurrence_count == len(names)


def test_it_is_examined_once_it_is_repaired(pipeline, spoil):
    fail(pipeline, "exec-bad")
    spoil("exec-bad", NO_PYTHON_TIME)
    examine_all(pipeline.database, settle_s=0)

    spoil("exec-bad", "timestamp = now()")
    pipeline.let_pass(seconds=3601)
    examine_all(pipeline.database, settle_s=0)

    assert pipeline.members().keys() == {"exec-bad"}
    assert pipeline.execution("exec-bad").detect_due_at is None
