"""A preview says what really happens when the floors are set and the executions examined again."""

from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mesedi_server import preview
from mesedi_server.cli import cli
from mesedi_server.errors import RefusedError
from tests.factories import make_event, make_score
from tests.server.detection.disorder import patient
from tests.server.detection.pipelines import FAITHFULNESS, make_pipeline
from tests.server.detection.test_any_order import FLOORS, NAMES, apply, events, floors

RAGAS = ("ragas", "faithfulness")

changes = st.fixed_dictionaries(
    {},
    optional={
        "mean_floor": st.one_of(st.none(), st.sampled_from(FLOORS)),
        "per_evaluator_floors": st.one_of(
            st.none(),
            st.dictionaries(st.tuples(NAMES, NAMES).map(":".join), st.sampled_from(FLOORS)),
        ),
    },
)


def look_ahead(pipeline, days=7, **values):
    with pipeline.connection() as connection:
        return preview.of_change(connection, pipeline.project, "grounding_failure", values, days)


def set_for_real(pipeline, values):
    for key, value in values.items():
        pipeline.tune(key, value)
    pipeline.redetect()
    pipeline.examine()


def firing(pipeline):
    """Which pairs fire in which executions, as the groups have it."""
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT x.execution_id, g.evaluator_id, g.metric_type FROM occurrences o"
            " JOIN failure_groups g ON g.pk = o.group_pk JOIN executions x ON x.pk = o.execution_pk"
            " WHERE g.failure_class = 'grounding_failure' AND o.project_pk = %(project)s",
            {"project": pipeline.project.pk},
        )
        return {(name, (evaluator, metric)) for name, evaluator, metric in rows}


def turned(turns):
    return {(turn.execution_id, pair) for turn in turns for pair in turn.pairs}


def group_turns(turns):
    return {(turn.evaluator_id, turn.metric_type): turn.executions for turn in turns}


def counted(fires):
    pairs = [pair for _, pair in fires]
    return {pair: pairs.count(pair) for pair in pairs}


@patient
@given(events(), floors(), changes)
def test_a_preview_is_what_really_happens(database, sent, given_floors, values):
    pipeline = make_pipeline(database)
    apply(pipeline, given_floors)
    if sent:
        pipeline.send(*sent, settle_s=0)
    pipeline.examine(settle_s=0)
    before = firing(pipeline)

    seen = look_ahead(pipeline, **values)

    assert firing(pipeline) == before
    set_for_real(pipeline, values)
    after = firing(pipeline)
    assert turned(seen.starting) == after - before
    assert turned(seen.stopping) == before - after
    silent, open_ = counted(before), counted(after)
    assert group_turns(seen.groups_opening) == {p: n for p, n in open_.items() if p not in silent}
    assert group_turns(seen.groups_falling_silent) == {
        p: n for p, n in silent.items() if p not in open_
    }
    group_ids = {group.group_id for group in pipeline.groups()}
    assert {turn.group_id for turn in seen.groups_opening} <= group_ids


@pytest.mark.parametrize(
    ("scores", "old", "new", "turns"),
    [
        ([0.7, 0.7, 0.7], 0.5, 0.7, None),
        ([0.7, 0.7, 0.7], 0.7, 0.71, "starting"),
        ([0.7, 0.7, 0.7], 0.8, 0.7, "stopping"),
        ([0.1, 0.2], 0.1, 0.15, None),
        ([0.1, 0.2, 0.3], 0.3, 0.2, "stopping"),
        ([0.1, 0.1, 0.1], 0.0, 0.1, None),
        ([1e308, 1e308], 0.5, 1.0, None),
        ([0.7, 0.6999999999999999], 0.5, 0.7, "starting"),
    ],
)
def test_a_mean_that_equals_a_floor_does_not_fire(pipeline, scores, old, new, turns):
    pipeline.tune("mean_floor", old)
    pipeline.run("exec-1", *(make_score(score) for score in scores))

    seen = look_ahead(pipeline, mean_floor=new)

    expected = {("exec-1", RAGAS)}
    assert turned(seen.starting) == (expected if turns == "starting" else set())
    assert turned(seen.stopping) == (expected if turns == "stopping" else set())


def test_beyond_the_cap_one_pair_makes_room_for_the_next(pipeline):
    """Of 21 failing pairs the last in byte order is cut, until one before it passes."""
    pairs = [f"judge-{number:02}/quality" for number in range(21)]
    pipeline.run("exec-1", *(make_score(0.2, pair=pair) for pair in pairs))

    seen = look_ahead(pipeline, per_evaluator_floors={"judge-00:quality": 0.1})

    first, last = ("judge-00", "quality"), ("judge-20", "quality")
    assert turned(seen.starting) == {("exec-1", last)}
    assert turned(seen.stopping) == {("exec-1", first)}
    assert group_turns(seen.groups_opening) == {last: 1}
    assert group_turns(seen.groups_falling_silent) == {first: 1}


def test_a_group_with_other_members_neither_opens_nor_falls_silent(pipeline):
    pipeline.run("exec-1", make_score(0.4))
    pipeline.run("exec-2", make_score(0.6))

    rising, falling = look_ahead(pipeline, mean_floor=0.7), look_ahead(pipeline, mean_floor=0.3)

    assert turned(rising.starting) == {("exec-2", RAGAS)}
    assert rising.groups_opening == []
    assert turned(falling.stopping) == {("exec-1", RAGAS)}
    assert group_turns(falling.groups_falling_silent) == {RAGAS: 1}


def test_a_failed_verdict_fires_at_any_floor(pipeline):
    pipeline.run("exec-1", make_score(0.4, passed=False))

    seen = look_ahead(pipeline, mean_floor=0.0)

    assert (seen.starting, seen.stopping) == ([], [])


def test_only_examined_executions_of_the_days_are_looked_at(pipeline):
    now = datetime.now(UTC)
    for days in (1, 6, 8):
        pipeline.run(f"exec-{days}", make_score(0.6), started_at=now - timedelta(days=days))
    pipeline.send(make_score(0.6, execution_id="exec-open"))

    seen = look_ahead(pipeline, mean_floor=0.7, days=7)

    assert seen.examined == 2
    assert turned(seen.starting) == {("exec-1", RAGAS), ("exec-6", RAGAS)}


def test_the_executions_of_other_projects_are_not_looked_at(database, pipeline):
    make_pipeline(database).run("exec-1", make_score(0.6))

    seen = look_ahead(pipeline, mean_floor=0.7)

    assert (seen.examined, seen.starting, seen.groups_opening) == (0, [], [])


def test_null_previews_the_reset(pipeline):
    pipeline.tune("mean_floor", 0.9)
    pipeline.run("exec-1", make_score(0.6))

    seen = look_ahead(pipeline, mean_floor=None)

    assert turned(seen.stopping) == {("exec-1", RAGAS)}


def test_a_detector_that_has_no_preview_says_so(pipeline):
    with pipeline.connection() as connection, pytest.raises(RefusedError, match="no preview"):
        preview.of_change(connection, pipeline.project, "hitl_timeout", {}, 7)


def redetect(pipeline, url, *arguments):
    command = ["redetect", "--project", pipeline.project.name, *arguments]
    result = CliRunner().invoke(cli, command, env={"MESEDI_DATABASE_URL": url})
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_judges_a_time_span_again(pipeline, module_database_url):
    now = datetime.now(UTC)
    for days in (1, 3, 5):
        pipeline.run(f"exec-{days}", make_score(0.6), started_at=now - timedelta(days=days))
    pipeline.tune("mean_floor", 0.7)
    since, until = ((now - timedelta(days=days)).isoformat() for days in (4, 2))

    output = redetect(pipeline, module_database_url, "--since", since, "--until", until)

    assert output.startswith("1 execution is due again")
    assert pipeline.examine() == 1
    assert list(pipeline.members()) == ["exec-3"]


def test_the_command_takes_every_execution_once(pipeline, module_database_url, monkeypatch):
    monkeypatch.setattr("mesedi_server.cli._REDETECT_BATCH", 2)
    for number in range(5):
        pipeline.run(f"exec-{number}", make_score(0.6))
    pipeline.tune("mean_floor", 0.7)

    output = redetect(pipeline, module_database_url, "--since", "2020-01-01")

    assert output.startswith("5 executions are due again")
    assert pipeline.examine() == 5
    assert pipeline.group(FAITHFULNESS).occurrence_count == 5


def test_the_command_leaves_what_was_never_examined_alone(pipeline, module_database_url):
    pipeline.send(make_score(0.6), make_event("exec-2"))
    due_at = pipeline.execution().detect_due_at

    output = redetect(pipeline, module_database_url, "--since", "2020-01-01")

    assert output.startswith("0 executions are due again")
    assert pipeline.execution().detect_due_at == due_at
