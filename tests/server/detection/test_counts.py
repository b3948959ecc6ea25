"""Counts by day and week: those of a recount, whoever writes, and in whatever zone the days are."""

from datetime import UTC, date, datetime, timedelta

import pytest
from alembic import command
from sqlalchemy import delete, insert, update

from mesedi_server import migrating
from mesedi_server.errors import RefusedError
from mesedi_server.store import moving_days, projects, tables, trends
from mesedi_server.store.database import savepoint
from mesedi_server.store.failure_groups import STATES, GroupFilter
from mesedi_server.store.ranking import biggest
from mesedi_server.store.trends import BINS, Bin, Slice
from mesedi_server.tasks import celery_app, moving
from tests.factories import make_score
from tests.server.detection.pipelines import Pipeline, make_pipeline, wrong_numbers

PAIR = ("ragas", "faithfulness")
# Noon in London, when it is 02:00 of the next day on Kiritimati and 01:00 on Niue.
NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def recounted(database):
    yield
    assert wrong_numbers(database) == []


def receive(pipeline: Pipeline, execution_id: str, at: datetime, score=0.1, **facts) -> None:
    """Let an execution with one score be received at some time, and examine it."""
    pipeline.post(execution_id, **facts)
    own = tables.executions.c.project_pk == pipeline.project.pk
    named = tables.executions.c.execution_id == execution_id
    with pipeline.connection() as connection:
        connection.execute(update(tables.executions).where(own, named).values(received_at=at))
    pipeline.send(make_score(score, execution_id=execution_id))
    pipeline.close(execution_id)
    pipeline.examine()


def want(pipeline: Pipeline, zone: str) -> None:
    with pipeline.connection() as connection:
        projects.change(connection, pipeline.project.pk, {"time_zone": zone}, actor="us")


def move_to(pipeline: Pipeline, zone: str) -> None:
    want(pipeline, zone)
    moving.move_all(pipeline.database, run_s=60)


def move_a_step(pipeline: Pipeline, executions: int) -> bool:
    with pipeline.connection() as connection:
        return moving_days.move(connection, pipeline.project.pk, limit=executions)


def project_now(pipeline: Pipeline) -> projects.Project:
    with pipeline.connection() as connection:
        return projects.get(connection, pipeline.project.pk)


def days(pipeline: Pipeline, first: date, number: int, **origin) -> list[int]:
    """The occurrences of the group on so many days."""
    span = [first + timedelta(days=place) for place in range(number)]
    pk = pipeline.group().pk
    with pipeline.connection() as connection:
        return trends.of_groups(connection, [pk], span, **origin)[pk]


def interactions(pipeline: Pipeline, first: date, number: int) -> list[int]:
    span = [first + timedelta(days=place) for place in range(number)]
    with pipeline.connection() as connection:
        counts = trends.interactions(connection, pipeline.project.pk, [PAIR], span)
    return counts[PAIR]


def ranked(pipeline: Pipeline, **wanted) -> list[tuple[str, int]]:
    """The groups of a slice with their numbers, as the list has them."""
    with pipeline.connection() as connection:
        found = biggest(
            connection,
            pipeline.project.pk,
            GroupFilter(states=STATES),
            Slice(**wanted),
            offset=0,
            limit=100,
        )
    return [(one.group.metric_type, one.occurrences) for one in found]


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", date(2026, 6, 15)),
        ("Pacific/Kiritimati", date(2026, 6, 16)),
        ("Pacific/Niue", date(2026, 6, 15)),
        ("Asia/Kathmandu", date(2026, 6, 15)),
        ("Etc/GMT+12", date(2026, 6, 15)),
        ("Etc/GMT-14", date(2026, 6, 16)),
    ],
)
def test_an_occurrence_counts_on_the_day_that_it_is_in_the_projects_zone(pipeline, zone, day):
    move_to(pipeline, zone)

    receive(pipeline, "exec-1", NOON)

    assert days(pipeline, day, 1) == [1]
    assert interactions(pipeline, day, 1) == [1]
    assert days(pipeline, day - timedelta(days=5), 5) == [0] * 5


def test_a_change_of_the_zone_moves_what_was_counted(pipeline):
    receive(pipeline, "exec-1", NOON)
    receive(pipeline, "exec-2", NOON, score=0.9)

    move_to(pipeline, "Pacific/Kiritimati")

    assert days(pipeline, date(2026, 6, 15), 2) == [0, 1]
    assert interactions(pipeline, date(2026, 6, 15), 2) == [0, 2]


def test_a_change_of_the_zone_counts_nothing_in_the_request(pipeline):
    receive(pipeline, "exec-1", NOON)

    want(pipeline, "Pacific/Kiritimati")

    assert days(pipeline, date(2026, 6, 15), 2) == [1, 0]
    assert project_now(pipeline).are_days_moving


def test_a_move_goes_on_step_by_step_while_others_count(pipeline, database):
    for number in range(3):
        receive(pipeline, f"exec-{number}", NOON)
    want(pipeline, "Pacific/Kiritimati")

    move_a_step(pipeline, 2)
    assert days(pipeline, date(2026, 6, 15), 2) == [1, 2]
    assert wrong_numbers(database) == []

    # Moved already, not yet moved, and new: each is counted where it belongs.
    for name in ("exec-0", "exec-2"):
        pipeline.send(*(make_score(1.0, execution_id=name) for _ in range(5)), debounce_s=0)
    pipeline.examine()
    receive(pipeline, "exec-3", NOON)
    assert days(pipeline, date(2026, 6, 15), 2) == [1, 1]
    assert wrong_numbers(database) == []

    moving.move_all(database, run_s=60, step=1)
    assert days(pipeline, date(2026, 6, 15), 2) == [0, 2]
    assert interactions(pipeline, date(2026, 6, 15), 2) == [0, 4]
    assert not project_now(pipeline).are_days_moving


def test_a_release_that_comes_late_meets_a_move(pipeline, database):
    names = ("exec-1", "exec-2")
    for name in names:
        pipeline.send(make_score(0.1, execution_id=name), settle_s=0)
        pipeline.close(name)
    pipeline.examine()
    want(pipeline, "Pacific/Kiritimati")
    move_a_step(pipeline, 1)

    for name in names:
        pipeline.post(name, release="r1")
    pipeline.examine()

    assert sum(days(pipeline, datetime.now(UTC).date(), 2, release="r1")) == 2
    assert wrong_numbers(database) == []
    moving.move_all(database, run_s=60)


def test_who_changes_the_zone_again_meanwhile_gets_the_last_one(pipeline, database):
    for number in range(3):
        receive(pipeline, f"exec-{number}", NOON)
    want(pipeline, "Pacific/Kiritimati")
    move_a_step(pipeline, 1)

    want(pipeline, "UTC")

    assert project_now(pipeline).are_days_moving
    moving.move_all(database, run_s=60, step=2)
    assert days(pipeline, date(2026, 6, 15), 2) == [3, 0]
    assert not project_now(pipeline).are_days_moving


def test_a_run_that_has_no_time_left_leaves_the_rest_to_the_next_one(pipeline, database):
    receive(pipeline, "exec-1", NOON)
    want(pipeline, "Pacific/Kiritimati")

    moving.move_all(database, run_s=0)

    assert project_now(pipeline).are_days_moving
    moving.move_all(database, run_s=60)
    assert days(pipeline, date(2026, 6, 15), 2) == [0, 1]


def test_the_task_moves_the_days(pipeline, settings):
    receive(pipeline, "exec-1", NOON)
    want(pipeline, "Pacific/Kiritimati")
    celery = celery_app.create(settings)
    moving.register(celery, pipeline.database)

    celery.tasks[celery_app.MOVE_DAYS]()

    assert days(pipeline, date(2026, 6, 15), 2) == [0, 1]


def test_a_day_of_25_hours_is_one_day(pipeline):
    move_to(pipeline, "Europe/Berlin")
    midnight = datetime(2026, 10, 24, 22, tzinfo=UTC)

    receive(pipeline, "first-minute", midnight)
    receive(pipeline, "last-minute", midnight + timedelta(hours=24, minutes=59))
    receive(pipeline, "next-day", midnight + timedelta(hours=25))

    assert days(pipeline, date(2026, 10, 24), 4) == [0, 2, 1, 0]


def test_a_zone_that_does_not_exist_is_refused_and_nothing_changes(pipeline):
    receive(pipeline, "exec-1", NOON)

    with pytest.raises(RefusedError), pipeline.connection() as connection, savepoint(connection):
        connection.exec_driver_sql(
            "UPDATE projects SET time_zone = 'Atlantis' WHERE pk = %(pk)s",
            {"pk": pipeline.project.pk},
        )

    assert days(pipeline, NOON.date(), 1) == [1]


def test_a_later_score_takes_the_occurrence_out_of_its_day(pipeline):
    receive(pipeline, "exec-1", NOON)

    pipeline.send(*(make_score(1.0) for _ in range(5)), debounce_s=0)
    pipeline.examine()

    assert days(pipeline, NOON.date(), 1) == [0]
    assert interactions(pipeline, NOON.date(), 1) == [1]
    assert ranked(pipeline, since=NOON.date()) == []


def test_a_release_that_comes_late_takes_its_occurrence_along(pipeline):
    pipeline.send(make_score(0.1), settle_s=0)
    pipeline.close()
    pipeline.examine()
    today = datetime.now(UTC).date()
    before = days(pipeline, today, 1, release="r1")

    pipeline.post(release="r1")
    pipeline.examine()

    assert before == [0]
    assert days(pipeline, today, 1, release="r1") == days(pipeline, today, 1) == [1]


def test_a_name_of_any_length_is_counted(pipeline):
    long = "r" * 20_000

    receive(pipeline, "exec-1", NOON, release=long, environment="é" * 5_000)

    assert days(pipeline, NOON.date(), 1, release=long) == [1]
    assert ranked(pipeline, since=NOON.date(), release=long) == [("faithfulness", 1)]


@pytest.mark.parametrize("back", range(16))
def test_a_slice_counts_whole_weeks_and_the_days_before_them(pipeline, back):
    for number in range(15):
        receive(pipeline, f"exec-{number}", NOON - timedelta(days=number))

    since = NOON.date() - timedelta(days=back)

    assert ranked(pipeline, since=since) == [("faithfulness", min(back + 1, 15))]
    assert sum(days(pipeline, since, back + 1)) == min(back + 1, 15)


@pytest.mark.parametrize(
    ("origin", "number"),
    [
        ({}, 4),
        ({"release": "r1"}, 3),
        ({"environment": "live"}, 2),
        ({"release": "r1", "environment": "live"}, 1),
        ({"release": "r3"}, 0),
    ],
)
@pytest.mark.parametrize("since", [None, date(2026, 6, 3)])
def test_a_slice_counts_a_release_and_an_environment(pipeline, origin, number, since):
    receive(pipeline, "one", NOON, release="r1")
    receive(pipeline, "two", NOON - timedelta(days=9), release="r1", environment="live")
    receive(pipeline, "three", NOON - timedelta(days=11), release="r2", environment="live")
    receive(pipeline, "four", NOON - timedelta(days=12), release="r1", environment="test")

    assert ranked(pipeline, since=since, **origin) == ([("faithfulness", number)] if number else [])


def test_the_group_that_fails_most_in_the_slice_comes_first(pipeline):
    for number in range(3):
        receive(pipeline, f"old-{number}", NOON - timedelta(days=40))
    pipeline.run("new", make_score(0.1, pair="ragas/relevancy"))
    pipeline.run("newer", make_score(0.1, pair="ragas/relevancy"))

    assert ranked(pipeline) == [("faithfulness", 3), ("relevancy", 2)]
    assert ranked(pipeline, since=NOON.date()) == [("relevancy", 2)]


@pytest.mark.parametrize("table", ["executions", "projects"])
def test_whatever_is_deleted_is_counted_off(database, pipeline, table):
    receive(pipeline, "exec-1", NOON)
    other = make_pipeline(database)
    receive(other, "exec-1", NOON)

    doomed = tables.metadata.tables[table]
    column = doomed.c.pk if doomed is tables.projects else doomed.c.project_pk
    groups = tables.failure_groups
    with pipeline.connection() as connection:
        connection.execute(delete(doomed).where(column == pipeline.project.pk))
        # Only what counts by day is kept by whoever deletes.
        connection.execute(
            update(groups)
            .where(groups.c.project_pk == pipeline.project.pk)
            .values(occurrence_count=0)
        )

    assert days(other, NOON.date(), 1) == [1]


def test_an_older_server_that_knows_no_counts_leaves_them_exact(pipeline):
    receive(pipeline, "exec-1", NOON)
    rollups = tables.score_rollups
    with pipeline.connection() as connection:
        connection.execute(
            insert(rollups).values(
                execution_pk=pipeline.execution().pk,
                project_pk=pipeline.project.pk,
                evaluator_id="ragas",
                metric_type="by hand",
                events=1,
                measured=1,
                unmeasured=0,
                failed=0,
                higher_is_better=True,
                raw_out_of_range=False,
            )
        )

    with pipeline.connection() as connection:
        counts = trends.interactions(
            connection, pipeline.project.pk, [("ragas", "by hand")], [NOON.date()]
        )
    assert counts == {("ragas", "by hand"): [1]}


def test_a_distribution_tells_who_fails_by_the_floor_and_who_does_not(pipeline):
    scores = [0.0, 0.04, 0.05, 0.49, 0.5, 0.74, 0.75, 1.0, -0.5, 1.5]
    for number, score in enumerate(scores):
        pipeline.run(f"exec-{number}", make_score(score))
    pipeline.run("by-verdict", make_score(0.99, passed=False))
    pipeline.run("unmeasured", make_score(None))

    with pipeline.connection() as connection:
        found = trends.distribution(connection, pipeline.project.pk, PAIR, 0.5)

    expected = [Bin() for _ in range(BINS)]
    expected[0], expected[1] = Bin(failing=2), Bin(failing=1)
    expected[9], expected[10] = Bin(failing=1), Bin(passing=1)
    expected[14], expected[15] = Bin(passing=1), Bin(passing=1)
    expected[19] = Bin(failing=1, passing=1)
    assert found.bins == expected
    assert (found.below, found.above) == (Bin(failing=1), Bin(passing=1))
    assert (found.total, found.unmeasured) == (11, 1)


def test_a_schema_without_periods_comes_to_them_and_back(pipeline, database, settings):
    receive(pipeline, "exec-1", NOON, release="r1", environment="live")
    receive(pipeline, "exec-2", NOON - timedelta(days=40), release="r1")
    want(pipeline, "Pacific/Kiritimati")
    move_a_step(pipeline, 1)
    config = migrating.config(settings.database_url)

    command.downgrade(config, "0003")
    command.upgrade(config, "head")

    assert wrong_numbers(database) == []
    assert days(pipeline, date(2026, 6, 15), 2) == [0, 1]
    assert ranked(pipeline, release="r1") == [("faithfulness", 2)]
    assert ranked(pipeline, environment="live") == [("faithfulness", 1)]
