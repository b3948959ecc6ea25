"""Executions that a project does not keep any longer: deleted whole, and counted out of their groups."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from mesedi_server.store import projects, retention, tables
from mesedi_server.store.tables import events, executions, halts, occurrences, score_rollups
from mesedi_server.tasks import celery_app, sweep
from tests.factories import make_score
from tests.server.detection.pipelines import (
    FAITHFULNESS,
    make_check,
    make_decision,
    make_pipeline,
    wrong_numbers,
)

OWNED = (events, score_rollups, occurrences)


@pytest.fixture(autouse=True)
def recounted(database):
    yield
    assert wrong_numbers(database) == []
    with database.transaction() as connection:
        connection.execute(update(tables.projects).values(retention_days=None))


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def keep(pipeline, days: int | None) -> None:
    with pipeline.connection() as connection:
        projects.change(connection, pipeline.project.pk, {"retention_days": days}, actor="us")


def sweep_up(pipeline) -> int:
    return sweep.delete_old_executions(pipeline.database, run_s=60)


def left(pipeline) -> list[str]:
    """Ids of the project's executions."""
    with pipeline.connection() as connection:
        x = executions.c
        statement = select(x.execution_id).where(x.project_pk == pipeline.project.pk)
        return sorted(connection.execute(statement).scalars())


def rows(pipeline) -> list[int]:
    """How many rows each table has of the project."""
    with pipeline.connection() as connection:
        return [
            connection.execute(
                select(func.count()).where(table.c.project_pk == pipeline.project.pk)
            ).scalar_one()
            for table in OWNED
        ]


def test_by_default_everything_is_kept(pipeline):
    pipeline.run("exec-1", make_score(0.2), started_at=days_ago(3000))

    assert sweep_up(pipeline) == 0
    assert left(pipeline) == ["exec-1"]


def test_what_started_before_the_time_that_is_kept_is_deleted(pipeline):
    for name, age in (("exec-old", 31), ("exec-edge", 29.99), ("exec-new", 0)):
        pipeline.run(name, make_score(0.2), started_at=days_ago(age))
    keep(pipeline, 30)

    deleted = sweep_up(pipeline)

    assert deleted == 1
    assert left(pipeline) == ["exec-edge", "exec-new"]
    assert pipeline.group().occurrence_count == 2
    assert rows(pipeline) == [2, 2, 2]


def test_nothing_of_a_deleted_execution_is_left(pipeline):
    sent = [make_score(0.2), make_check(), make_decision("timeout")]
    pipeline.run("exec-1", *sent, started_at=days_ago(31))
    pk = pipeline.execution().pk
    with pipeline.connection() as connection:
        connection.execute(halts.insert().values(execution_pk=pk, reason="r", requested_by="us"))
    keep(pipeline, 30)

    sweep_up(pipeline)

    assert rows(pipeline) == [0, 0, 0]
    with pipeline.connection() as connection:
        assert connection.execute(select(halts).where(halts.c.execution_pk == pk)).all() == []


def test_a_group_stays_with_its_history_when_all_its_executions_are_gone(pipeline):
    pipeline.run("exec-1", make_score(0.2), started_at=days_ago(31))
    pipeline.change(FAITHFULNESS, "resolved")
    keep(pipeline, 30)

    sweep_up(pipeline)

    assert pipeline.group().occurrence_count == 0
    assert pipeline.group().state == "resolved"
    assert pipeline.kinds() == ["first_seen", "resolved"]


def test_members_of_a_spike_are_counted_out_too(pipeline):
    names = [f"exec-{number}" for number in range(5)]
    for name in names:
        pipeline.post(name, started_at=days_ago(31))
    pipeline.send(*(make_decision("rejected", name) for name in names))
    for name in names:
        pipeline.close(name)
    pipeline.examine()
    spike = "hitl_rejection_spike:rejected"
    assert pipeline.group(spike).occurrence_count == 5
    keep(pipeline, 30)

    sweep_up(pipeline)

    assert pipeline.group(spike).occurrence_count == 0


def test_more_than_a_batch_is_deleted_in_one_run(pipeline, monkeypatch):
    monkeypatch.setattr(sweep, "BATCH", 3)
    for number in range(10):
        pipeline.run(f"exec-{number}", make_score(0.2), started_at=days_ago(31 + number))
    keep(pipeline, 35)

    assert sweep_up(pipeline) == 6
    assert left(pipeline) == [f"exec-{number}" for number in range(4)]


def test_the_oldest_go_first(pipeline):
    for number in range(4):
        pipeline.run(f"exec-{number}", started_at=days_ago(31 + number))
    keep(pipeline, 30)

    with pipeline.connection() as connection:
        project = projects.get(connection, pipeline.project.pk)
        retention.delete_old(connection, project, sweep.CLASSES, limit=2)

    assert left(pipeline) == ["exec-0", "exec-1"]


def test_the_task_of_the_worker_does_it(pipeline, settings):
    pipeline.run("exec-1", started_at=days_ago(31))
    keep(pipeline, 30)
    celery = celery_app.create(settings)
    sweep.register(celery, pipeline.database)

    celery.tasks[celery_app.DELETE_OLD]()

    assert left(pipeline) == []


def test_a_run_without_time_deletes_nothing(pipeline):
    pipeline.run("exec-1", started_at=days_ago(31))
    keep(pipeline, 30)

    assert sweep.delete_old_executions(pipeline.database, run_s=0) == 0
    assert left(pipeline) == ["exec-1"]


def test_an_execution_that_is_being_examined_is_left_for_the_next_time(pipeline):
    pipeline.run("exec-1", started_at=days_ago(31))
    keep(pipeline, 30)
    with pipeline.connection() as examining:
        claimed = select(executions.c.pk).where(executions.c.project_pk == pipeline.project.pk)
        examining.execute(claimed.with_for_update(key_share=True))

        assert sweep_up(pipeline) == 0

    assert sweep_up(pipeline) == 1


def test_another_project_keeps_its_own(pipeline, database):
    other = make_pipeline(database)
    for one in (pipeline, other):
        one.run("exec-1", make_score(0.2), started_at=days_ago(31))
    keep(pipeline, 30)

    sweep_up(pipeline)

    assert left(pipeline) == []
    assert left(other) == ["exec-1"]
    assert other.group().occurrence_count == 1


def test_a_late_event_of_a_deleted_execution_makes_a_new_one(pipeline):
    pipeline.run("exec-1", make_score(0.2), started_at=days_ago(31))
    keep(pipeline, 30)
    sweep_up(pipeline)

    pipeline.send(make_score(0.9))

    assert sweep_up(pipeline) == 0
    assert left(pipeline) == ["exec-1"]


def test_retention_that_is_switched_off_again_deletes_nothing(pipeline):
    pipeline.run("exec-1", started_at=days_ago(31))
    keep(pipeline, 30)
    keep(pipeline, None)

    assert sweep_up(pipeline) == 0
