"""Whose answers are assessed, when, and what comes out."""

import pytest
from sqlalchemy import text

from mesedi_server import assessing
from mesedi_server.store import assessments
from mesedi_server.store.assessment_work import may_take_large
from mesedi_server.store.due_work import is_behind
from mesedi_server.tasks import assess as task
from tests.factories import make_event, make_score
from tests.server.assessments.answering import (
    PASSAGES,
    assess,
    assess_everything,
    assessed,
    assessed_at,
    fail,
    make_answer,
    outcomes,
    settle,
    waiting,
)


def test_a_failing_answer_is_traced_to_its_passages(pipeline):
    fail(pipeline, make_answer("Take 5 mg [1] for 4 days [3]."))

    assess(pipeline)

    [row] = assessed(pipeline).values()
    assert (row.outcome, row.quantities, row.unmatched) == ("violated", 2, 1)
    assert (row.citations, row.unresolved, row.ambiguous) == (2, 1, 0)
    assert row.content["quantities"][0] == {
        "quote": "5 mg",
        "normalized": "mass:eq:1/200",
        "status": "source",
        "evidence": {"source_id": "passage:1", "quote": "5 mg"},
    }
    assert row.content["citations"][1] == {"quote": "[3]", "index": 3, "source_id": None}


@pytest.mark.parametrize(
    ("context", "passages"),
    [({"passages": ["Take 5 mg.", "For 3 days."]}, 2), ({"passages": []}, 0), (None, None)],
)
def test_it_is_known_how_many_passages_an_answer_had(pipeline, context, passages):
    fail(pipeline, make_answer(context=context))

    assess(pipeline)

    assert assessed(pipeline)["a"].passages == passages


def test_what_is_found_does_not_depend_on_how_it_came(pipeline):
    """Answers before and after the scores, examined in one go or one after the other."""
    fail(pipeline, make_answer(), execution_id="exec-together")
    fail(pipeline, execution_id="exec-late")
    pipeline.send(make_answer(execution_id="exec-late"))
    pipeline.send(make_answer(execution_id="exec-first"))
    fail(pipeline, execution_id="exec-first")

    settle(pipeline)

    names = ("exec-together", "exec-late", "exec-first")
    assert [outcomes(pipeline, name) for name in names] == [{"a": "met"}] * 3


def test_an_answer_that_does_not_fail_is_left_alone(pipeline):
    pipeline.run("exec-1", make_score(0.9), make_answer())
    pipeline.send(make_answer(answer_id="late"))

    settle(pipeline)

    assert assessed(pipeline) == {}
    assert waiting(pipeline) == 0


def test_an_answer_that_comes_to_fail_is_assessed(pipeline):
    pipeline.run("exec-1", make_score(0.9), make_answer())
    settle(pipeline)

    pipeline.send(make_score(0.0), make_score(0.0), debounce_s=0)
    settle(pipeline)

    assert outcomes(pipeline) == {"a": "met"}


def test_failures_of_other_classes_say_nothing_about_the_answer(pipeline):
    pipeline.send(make_answer())
    pipeline.close(status="crashed", crash_signature="KeyError:agent.py:plan")

    settle(pipeline)

    assert len(pipeline.groups()) == 1
    assert assessed(pipeline) == {}


def test_a_project_can_have_all_answers_assessed(pipeline):
    assess_everything(pipeline)
    pipeline.run("exec-fine", make_score(0.9), make_answer(execution_id="exec-fine"))
    pipeline.send(make_answer(execution_id="exec-open"))

    assess(pipeline)

    assert outcomes(pipeline, "exec-fine") == outcomes(pipeline, "exec-open") == {"a": "met"}


def test_an_answer_sent_twice_is_assessed_once(pipeline):
    answer = make_answer()
    fail(pipeline, answer)
    settle(pipeline)
    before = assessed_at(pipeline)

    pipeline.send(answer)
    pipeline.send(make_answer())
    pipeline.send(make_score(0.3), debounce_s=0)
    settle(pipeline)

    assert assessed_at(pipeline) == before
    assert waiting(pipeline) == 0


def test_a_changed_answer_is_assessed_anew(pipeline):
    fail(pipeline, make_answer(), make_answer(answer_id="other"))
    settle(pipeline)
    before = assessed_at(pipeline)

    pipeline.send(make_answer("Take 50 mg."))
    settle(pipeline)

    assert outcomes(pipeline) == {"a": "violated", "other": "met"}
    assert assessed_at(pipeline)["other"] == before["other"]


@pytest.mark.parametrize(
    "change", [{"question": "For 4 days?"}, {"context": {"passages": ["Take 4 days."]}}]
)
def test_a_changed_question_or_passage_is_a_changed_answer(pipeline, change):
    fail(pipeline, make_answer("4 days"))
    settle(pipeline)
    assert outcomes(pipeline) == {"a": "violated"}

    pipeline.send(make_answer("4 days", **change))
    settle(pipeline)

    assert outcomes(pipeline) == {"a": "met"}


def test_an_older_event_that_comes_late_changes_nothing(pipeline):
    older = make_answer("Take 50 mg.")
    fail(pipeline, make_answer())

    pipeline.send(older)
    settle(pipeline)

    assert outcomes(pipeline) == {"a": "met"}


def test_a_new_revision_assesses_anew_what_is_examined_again(pipeline, monkeypatch):
    fail(pipeline, make_answer())
    settle(pipeline)
    monkeypatch.setattr(assessing, "EVALUATOR_REVISION", "v2")

    pipeline.redetect()
    settle(pipeline)

    assert [row.revision for row in assessed(pipeline).values()] == ["v2"]


def test_what_no_longer_fails_is_still_kept_up_to_date(pipeline):
    fail(pipeline, make_answer())
    settle(pipeline)
    pipeline.send(make_score(1.0), make_score(1.0), debounce_s=0)
    settle(pipeline)

    pipeline.send(make_answer("Take 50 mg."))
    settle(pipeline)

    assert pipeline.listed() == []
    assert outcomes(pipeline) == {"a": "violated"}


@pytest.mark.parametrize(
    ("payload", "outcome", "reason"),
    [
        ({"context": None}, "missing_evidence", "there is no context"),
        ({"context": [1]}, "missing_evidence", "the context is not an object"),
        ({"context": {"hits": []}}, "missing_evidence", "the context has none of excerpts"),
        ({"context": {"passages": "5 mg"}}, "missing_evidence", "passages is not a list"),
        ({"context": {"passages": ["5 mg", 7]}}, "missing_evidence", "passage 2 is neither"),
        ({"context": {"passages": [{"text": " "}]}}, "missing_evidence", "passage 1 is malformed"),
        ({"question": None}, "missing_evidence", "no user question"),
        ({"question": 7}, "invalid", "the question is not text"),
        ({"answer": None}, "invalid", "there is no answer"),
        ({"answer": ["5 mg"]}, "invalid", "the answer is not text"),
        ({"context": {"passages": []}, "answer": "5 mg"}, "violated", None),
        ({"context": {"passages": []}, "answer": "Yes."}, "not_applicable", None),
        ({"answer": "about 5 mg"}, "needs_review", None),
        ({"answer": ""}, "not_applicable", None),
    ],
)
def test_the_outcome_says_what_there_was_to_assess(pipeline, payload, outcome, reason):
    fail(pipeline, make_answer(**payload))

    assess(pipeline)

    [row] = assessed(pipeline).values()
    assert row.outcome == outcome
    assert row.reason is reason is None or row.reason.startswith(reason)
    assert (row.content is None) is (reason is not None)


@pytest.mark.parametrize("payload", [None, [1, 2], "text"])
def test_a_payload_that_is_no_object_is_an_invalid_answer_without_id(pipeline, payload):
    fail(pipeline, make_event(event_type="answer", payload=payload))

    assess(pipeline)

    [row] = assessed(pipeline).values()
    assert (row.answer_id, row.outcome, row.reason) == (
        "",
        "invalid",
        "the payload is not an object",
    )


@pytest.mark.parametrize("answer_id", [None, 7, "x" * 3000, "é" * 3000, {"a": 1}])
def test_any_id_will_do(pipeline, answer_id):
    fail(pipeline, make_answer(answer_id=answer_id))

    assess(pipeline)
    before = assessed_at(pipeline)
    pipeline.send(make_answer(answer_id=answer_id))
    settle(pipeline)

    assert list(outcomes(pipeline).values()) == ["met"]
    assert assessed_at(pipeline) == before


def test_passages_may_be_objects(pipeline):
    passages = [{"id": 1, "text": PASSAGES[0]}, {"content": PASSAGES[1]}, {"body": "7 kg"}]
    fail(pipeline, make_answer("5 mg, 3 days, 7 kg [3]", context={"documents": passages}))

    assess(pipeline)

    assert outcomes(pipeline) == {"a": "met"}


def test_five_hundred_passages_are_all_evidence(pipeline):
    passages = [f"Take {number} mg of number {number}." for number in range(1, 501)]
    fail(pipeline, make_answer("500 mg [500], 501 mg [501]", context={"passages": passages}))

    assess(pipeline)

    [row] = assessed(pipeline).values()
    assert (row.quantities, row.unmatched, row.citations, row.unresolved) == (2, 1, 2, 1)


def test_two_megabytes_of_answer_is_assessed_whole_and_kept_in_part(pipeline):
    answer = "".join(f"{number} mg. " for number in range(1, 180_001)) + "Take 5 mg [1]."
    assert len(answer) > 1_800_000
    fail(pipeline, make_answer(answer))

    assess(pipeline)

    [row] = assessed(pipeline).values()
    assert (row.quantities, row.unmatched, row.citations) == (180_001, 179_999, 1)
    quotes = [finding["quote"] for finding in row.content["quantities"]]
    assert quotes == [f"{number} mg" for number in range(1, assessing.MAX_FINDINGS + 1)]


def test_an_answer_that_repeats_a_long_quantity_is_kept_in_part(pipeline):
    long = f"0.{'0' * 90_000}5 kg"
    fail(pipeline, make_answer(f"{long} and {long} and {long}", context={"passages": [long]}))

    assess(pipeline)

    [row] = assessed(pipeline).values()
    assert row.quantities == 3
    kept = sum(len(finding["quote"]) for finding in row.content["quantities"])
    assert kept <= assessing.MAX_FINDING_CHARS


def test_of_very_many_answers_the_newest_are_assessed(pipeline):
    names = [f"a-{number:02}" for number in range(60)]
    fail(pipeline, *(make_answer(answer_id=name) for name in names))

    assess(pipeline)

    assert sorted(outcomes(pipeline)) == names[-50:]


def test_more_than_a_batch_is_assessed(pipeline):
    names = [f"exec-{number}" for number in range(assessing.BATCH + 20)]
    sent = [
        event
        for n in names
        for event in (make_score(0.2, execution_id=n), make_answer(execution_id=n))
    ]
    pipeline.send(*sent, settle_s=0)
    pipeline.examine(settle_s=0)

    assert assess(pipeline) == len(names)
    assert all(outcomes(pipeline, name) == {"a": "met"} for name in names[::40])


def test_what_takes_long_is_done_bit_by_bit(pipeline):
    fail(pipeline, *(make_answer(answer_id=f"a-{number}") for number in range(5)))
    fail(pipeline, make_answer(execution_id="exec-2"), execution_id="exec-2")

    seen = []
    while assessing.assess_due(pipeline.database, look_s=0):
        seen.append(len(outcomes(pipeline)) + len(outcomes(pipeline, "exec-2")))

    assert seen == [1, 2, 3, 4, 5, 6]
    assert waiting(pipeline) == 0


def test_one_large_answer_is_assessed_at_a_time(pipeline):
    """The others of its execution, and those of other executions, do not wait."""
    large = "x " * (assessing.LARGE_CHARS // 2) + "5 mg"
    fail(pipeline, make_answer(large, answer_id="large"), make_answer())
    fail(pipeline, make_answer(execution_id="exec-2"), execution_id="exec-2")

    with pipeline.connection() as busy:
        assert may_take_large(busy)
        assess(pipeline)
        meanwhile = outcomes(pipeline) | outcomes(pipeline, "exec-2")
    taken = assess(pipeline)
    with pipeline.connection() as connection:
        connection.execute(
            text("UPDATE assessment_work SET due_at = due_at - interval '2 seconds'")
        )
    assess(pipeline)

    assert (meanwhile, taken) == ({"a": "met"}, 0)
    assert outcomes(pipeline) == {"a": "met", "large": "met"}
    assert waiting(pipeline) == 0


def test_a_run_is_bounded(pipeline):
    for number in range(3):
        fail(pipeline, make_answer(execution_id=f"exec-{number}"), execution_id=f"exec-{number}")

    taken = task.assess_all(pipeline.database, run_s=0)

    # Whatever one transaction takes.
    assert taken == 3
    assert task.assess_all(pipeline.database, run_s=0) == 0


def test_a_run_makes_way_for_late_examinations(pipeline, monkeypatch):
    monkeypatch.setattr(assessing, "BATCH", 1)
    monkeypatch.setattr(assessing.assess_due, "__kwdefaults__", {"limit": 1, "look_s": 1.0})
    for number in range(3):
        fail(pipeline, make_answer(execution_id=f"exec-{number}"), execution_id=f"exec-{number}")
    pipeline.send(make_score(0.2, execution_id="exec-late"))
    pipeline.close("exec-late")
    pipeline.let_pass(seconds=5)

    assert assess(pipeline) == 1

    pipeline.examine()

    assert assess(pipeline) == 2


def test_detection_is_behind_once_something_has_been_due_for_a_while(pipeline):
    def behind():
        with pipeline.connection() as connection:
            return is_behind(connection, late_s=1)

    pipeline.send(make_score(0.2))
    pipeline.close()
    assert not behind()

    pipeline.let_pass(seconds=2)
    assert behind()

    pipeline.examine()
    assert not behind()


def test_what_is_deleted_is_not_assessed(pipeline):
    fail(pipeline, make_answer())
    with pipeline.connection() as connection:
        connection.execute(
            text("DELETE FROM executions WHERE project_pk = :pk"), {"pk": pipeline.project.pk}
        )

    assert assess(pipeline) == 0


def test_assessments_of_other_evaluators_are_left_alone(pipeline):
    fail(pipeline, make_answer())
    settle(pipeline)
    [row] = assessed(pipeline).values()
    other = assessments.AssessmentRow(
        **{name: getattr(row, name) for name in row.__struct_fields__}
        | {"evaluator": "faithfulness"}
    )
    with pipeline.connection() as connection:
        assessments.put(connection, [other])

    pipeline.send(make_answer("Take 50 mg."))
    settle(pipeline)

    with pipeline.connection() as connection:
        rows = assessments.of_executions(connection, [row.execution_pk])[row.execution_pk]
    assert rows[0] == other
    assert rows[1].outcome == "violated"
