"""What evaluators said is kept once an answer and evaluator, and summed up over a group's latest executions."""

import pytest

from mesedi_server.store import assessments, failure_groups
from mesedi_server.store.assessments import FINDINGS, AssessmentRow
from mesedi_server.store.paging import Paging
from tests.factories import make_event, make_score
from tests.server.detection.pipelines import make_pipeline


@pytest.fixture
def pipeline(database):
    return make_pipeline(database)


@pytest.fixture
def make_row(pipeline):
    def make(execution_id="exec-1", **fields) -> AssessmentRow:
        plain = {
            "project_pk": pipeline.project.pk,
            "execution_pk": pipeline.execution(execution_id).pk,
            "answer_id": "a",
            "answer_digest": b"\x00" * 32,
            "evaluator": "grounding",
            "revision": "v1",
            "outcome": "met",
        }
        return AssessmentRow(**(plain | fields))

    return make


def put(pipeline, *rows):
    with pipeline.connection() as connection:
        assessments.put(connection, list(rows))


def read(pipeline, *names):
    pks = [pipeline.execution(name).pk for name in names]
    with pipeline.connection() as connection:
        found = assessments.of_executions(connection, pks)
    return [found[pk] for pk in pks]


def test_what_was_put_is_read_back(pipeline, make_row):
    pipeline.run("exec-1")
    pipeline.run("exec-2")
    content = {"quantities": [{"quote": "5 mg"}], "citations": []}
    first = make_row(content=content, quantities=3, unmatched=2, ambiguous=1, outcome="violated")
    second = make_row(evaluator="faithfulness", reason="why")

    put(pipeline, first, second)

    assert read(pipeline, "exec-1", "exec-2") == [[second, first], []]


def test_the_last_one_put_counts(pipeline, make_row):
    pipeline.run("exec-1")
    put(pipeline, make_row(unmatched=1, content={"quantities": []}))
    last = make_row(outcome="invalid", answer_digest=b"\x01" * 32, revision="v2")

    put(pipeline, last)

    assert read(pipeline, "exec-1") == [[last]]


def test_a_group_is_summed_up(pipeline, make_row):
    found = {
        "exec-1": {"outcome": "violated", "quantities": 2, "unmatched": 1, "ambiguous": 1},
        "exec-2": {"outcome": "violated", "citations": 3, "unresolved": 2},
        "exec-3": {"outcome": "missing_evidence"},
    }
    for name in (*found, "exec-waiting", "exec-silent"):
        pipeline.run(name, make_score(0.2))
    pipeline.send(make_event("exec-waiting", "answer", payload={"answer_id": "a"}))
    pipeline.run("exec-fine", make_score(0.9))
    put(pipeline, *(make_row(name, **fields) for name, fields in found.items()))
    put(pipeline, make_row("exec-1", answer_id="b", outcome="not_applicable"))
    put(pipeline, make_row("exec-fine"), make_row("exec-2", evaluator="faithfulness"))

    with pipeline.connection() as connection:
        counts = assessments.counts_of_group(connection, pipeline.group().pk)

    assert counts == assessments.GroupCounts(
        executions=5,
        without_answer=1,
        waiting=1,
        answers=4,
        with_quantities=1,
        with_citations=1,
        unmatched=1,
        unresolved=1,
        untraced=0,
        without_passages=0,
        violated_without_passages=0,
        met_without_passages=0,
        ambiguous=1,
        missing_evidence=1,
        met=0,
        violated=2,
        needs_review=0,
        not_applicable=1,
        invalid=0,
    )


def test_a_group_is_summed_up_over_its_latest_executions(pipeline, make_row):
    for number in range(4):
        pipeline.run(f"exec-{number}", make_score(0.2))
    put(pipeline, *(make_row(f"exec-{number}", unmatched=number) for number in range(4)))

    with pipeline.connection() as connection:
        counts = assessments.counts_of_group(connection, pipeline.group().pk, limit=3)

    assert (counts.executions, counts.answers, counts.unmatched) == (3, 3, 3)


ONE_OF_EACH = [
    {"outcome": "violated", "quantities": 2, "unmatched": 1},
    {"outcome": "violated", "quantities": 3, "unmatched": 2, "ambiguous": 1},
    {"outcome": "violated", "quantities": 3, "unmatched": 2, "citations": 1, "unresolved": 0},
    {"outcome": "violated", "citations": 3, "unresolved": 2},
    {"outcome": "needs_review", "quantities": 1, "ambiguous": 1},
    {"outcome": "missing_evidence"},
    {"outcome": "met", "quantities": 1},
    {"outcome": "met", "citations": 1},
    {"outcome": "not_applicable"},
    {"outcome": "not_applicable", "passages": 0},
    {"outcome": "invalid"},
]


@pytest.mark.parametrize("finding", FINDINGS)
def test_each_number_of_the_sums_leads_to_as_many_executions(pipeline, make_row, finding):
    names = [f"exec-{number}" for number in range(len(ONE_OF_EACH) + 1)]
    for name in names:
        pipeline.run(name, make_score(0.2))
    found = dict(zip(names, ONE_OF_EACH, strict=False))
    put(pipeline, *(make_row(name, **fields) for name, fields in found.items()))
    put(pipeline, *(make_row(name, evaluator="faithfulness", **found[names[0]]) for name in names))

    with pipeline.connection() as connection:
        group_pk = pipeline.group().pk
        counts = assessments.counts_of_group(connection, group_pk)
        first = failure_groups.members_page(connection, group_pk, Paging(1), finding)
        rest = failure_groups.members_page(
            connection, group_pk, Paging(50, first.next_cursor), finding
        )

    shown = {member.execution_id for member in first.items}
    if first.next_cursor is not None:
        shown |= {member.execution_id for member in rest.items}
    assert len(shown) == getattr(counts, finding) > 0


def test_a_number_leads_to_the_executions_that_it_was_summed_over(pipeline, make_row):
    for number in range(5):
        pipeline.run(f"exec-{number}", make_score(0.2))
    put(pipeline, *(make_row(f"exec-{number}", unmatched=number % 2) for number in range(5)))

    with pipeline.connection() as connection:
        group_pk = pipeline.group().pk
        led = assessments.executions_with(connection, group_pk, "unmatched", limit=3)
        counts = assessments.counts_of_group(connection, group_pk, limit=3)

    assert len(led) == counts.unmatched == 1


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([make_score(0.2)], {"a", "b", "c"}),
        ([make_score(0.2, answer_id="a"), make_score(0.3, answer_id="b")], {"a", "b"}),
        (
            [
                make_score(0.9, answer_id="a", passed=True),
                make_score(0.1, answer_id="b", passed=False),
                make_score(0.1, False, "ragas/another", answer_id="c"),
            ],
            {"b"},
        ),
        ([make_score(0.2, answer_id="gone", passed=False)], {"a", "b", "c"}),
    ],
    ids=["names none", "names some", "failed one", "names another"],
)
def test_of_several_answers_those_count_that_the_evaluator_failed(
    pipeline, make_row, scores, expected
):
    pipeline.run("exec-1", *scores)
    put(pipeline, *(make_row("exec-1", answer_id=name, unmatched=1) for name in "abc"))

    with pipeline.connection() as connection:
        group_pk = pipeline.group().pk
        counts = assessments.counts_of_group(connection, group_pk)

    assert (counts.answers, counts.unmatched) == (len(expected), len(expected))


def test_nothing_is_put_for_no_rows(pipeline):
    pipeline.run("exec-1")

    put(pipeline)

    assert read(pipeline, "exec-1") == [[]]
