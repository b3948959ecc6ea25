"""Where a project assesses all answers, the outcome comes back as scores that can fail a floor of their own."""

import pytest

from tests.factories import make_event, make_score
from tests.server.assessments.answering import (
    assess,
    assess_everything,
    assessed,
    fail,
    make_answer,
    outcomes,
    settle,
    waiting,
)

TRACEABILITY = "grounding_failure:mesedi/grounding:quantity_traceability"
CITATIONS = "grounding_failure:mesedi/grounding:citation_resolution"

_SCORES = """
SELECT metric_type, payload ->> 'answer_id', score, payload ->> 'reason' FROM events e JOIN executions x
    ON x.pk = e.execution_pk
WHERE x.project_pk = %(project)s AND x.execution_id = %(name)s AND e.evaluator_id = 'mesedi/grounding'
ORDER BY 1, 2
"""


@pytest.fixture
def everything(pipeline):
    assess_everything(pipeline)


def scores(pipeline, name="exec-1"):
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            _SCORES, {"project": pipeline.project.pk, "name": name}
        ).all()
    return [tuple(row) for row in rows]


def shares(pipeline, name="exec-1"):
    return {(metric, answer): score for metric, answer, score, _ in scores(pipeline, name)}


def test_one_of_its_kind_is_counted_as_one(pipeline, everything):
    pipeline.run("exec-1", make_score(0.9), make_answer("9 kg [7]."))

    settle(pipeline)

    assert [reason for *_, reason in scores(pipeline)] == [
        "0 of 1 citation traced to a passage that is there",
        "0 of 1 quantity found in a passage or in the question",
    ]


def test_the_outcome_comes_back_as_scores(pipeline, everything):
    pipeline.run("exec-1", make_score(0.9), make_answer("5 mg, 3 days, 9 kg [1][2][7][8]."))

    settle(pipeline)

    assert scores(pipeline) == [
        ("citation_resolution", "a", 0.5, "2 of 4 citations traced to a passage that is there"),
        (
            "quantity_traceability",
            "a",
            2 / 3,
            "2 of 3 quantities found in a passage or in the question",
        ),
    ]
    means = {r.metric_type: r.mean for r in pipeline.rollups() if r.evaluator_id != "ragas"}
    assert means == {"citation_resolution": 0.5, "quantity_traceability": pytest.approx(2 / 3)}
    assert pipeline.listed() == []


def test_they_fail_a_floor_of_their_own(pipeline, everything):
    pipeline.run("exec-1", make_score(0.9), make_answer("9 kg [7]"))
    settle(pipeline)

    assert pipeline.listed() == [CITATIONS, TRACEABILITY]
    assert list(pipeline.members(TRACEABILITY)) == ["exec-1"]


def test_where_there_is_nothing_to_trace_there_is_no_score(pipeline, everything):
    pipeline.send(make_answer("Yes [1]."), make_answer("5 mg", context=None, answer_id="b"))

    settle(pipeline)

    assert shares(pipeline) == {("citation_resolution", "a"): 1.0}


def test_a_changed_answer_changes_its_scores(pipeline, everything):
    pipeline.run("exec-1", make_answer("9 kg [1]"), make_answer("9 kg", answer_id="b"))
    settle(pipeline)
    assert pipeline.listed() == [TRACEABILITY]

    pipeline.send(make_answer("5 mg"), make_answer("5 mg", answer_id="b"))
    settle(pipeline)

    assert shares(pipeline) == {
        ("quantity_traceability", "a"): 1.0,
        ("quantity_traceability", "b"): 1.0,
    }
    assert pipeline.listed() == []


def test_nothing_is_due_again_when_all_is_told(pipeline, everything):
    pipeline.run("exec-1", make_score(0.2), make_answer("9 kg [1]"))
    settle(pipeline)
    before = scores(pipeline)

    pipeline.redetect()

    assert pipeline.examine() == 1
    assert assess(pipeline) == 0
    assert pipeline.examine() == 0
    assert (scores(pipeline), waiting(pipeline)) == (before, 0)


def test_other_projects_get_no_scores(pipeline):
    fail(pipeline, make_answer("9 kg [1]"))

    settle(pipeline)

    assert outcomes(pipeline) == {"a": "violated"}
    assert scores(pipeline) == []


def test_switched_on_later_it_tells_what_is_assessed_already(pipeline):
    fail(pipeline, make_answer("9 kg"))
    pipeline.run("exec-2", make_score(0.9), make_answer("9 kg [1]"))
    settle(pipeline)
    assess_everything(pipeline)

    pipeline.redetect()
    settle(pipeline)

    assert shares(pipeline) == {("quantity_traceability", "a"): 0.0}
    assert len(shares(pipeline, "exec-2")) == 2


def test_switched_off_it_takes_back_what_is_no_longer_true(pipeline, everything):
    answers = [make_answer("9 kg"), make_answer("8 kg", answer_id="b")]
    pipeline.run("exec-1", make_score(0.9), *answers)
    settle(pipeline)
    assess_everything(pipeline, is_on=False)

    pipeline.send(make_answer("5 mg"))
    settle(pipeline)

    assert outcomes(pipeline) == {"a": "met", "b": "violated"}
    assert shares(pipeline) == {("quantity_traceability", "b"): 0.0}


def test_answers_of_one_id_in_two_executions_have_scores_of_their_own(pipeline, everything):
    pipeline.run("exec-1", make_answer("5 mg"))
    pipeline.run("exec-2", make_answer("9 kg"))

    settle(pipeline)

    assert shares(pipeline, "exec-1") == {("quantity_traceability", "a"): 1.0}
    assert shares(pipeline, "exec-2") == {("quantity_traceability", "a"): 0.0}


def test_an_event_of_the_clients_under_the_same_id_is_left_alone(pipeline, everything):
    pipeline.run("exec-1", make_answer("9 kg"))
    settle(pipeline)
    with pipeline.connection() as connection:
        taken = connection.exec_driver_sql(
            "UPDATE events SET execution_pk = %(other)s WHERE evaluator_id = 'mesedi/grounding'"
            " AND project_pk = %(project)s RETURNING event_id",
            {"other": -1, "project": pipeline.project.pk},
        ).scalars()
        assert len(list(taken)) == 1

    pipeline.send(make_answer("5 mg"))
    settle(pipeline)

    assert outcomes(pipeline) == {"a": "met"}
    assert scores(pipeline) == []


def test_an_open_execution_settles_before_its_scores_are_examined(pipeline, everything):
    pipeline.send(make_answer("9 kg"), make_event(event_type="checkpoint"))
    assess(pipeline)

    assert len(assessed(pipeline)) == 1
    assert pipeline.examine(settle_s=60) == 0

    pipeline.let_pass(seconds=60)

    assert pipeline.examine(settle_s=60) == 1
    assert pipeline.listed() == [TRACEABILITY]
