import json
import sqlite3

import pytest

from evaluators import Criterion, evaluate_saved, evaluation_summary
from evaluators.canonical import text_digest
from evaluators.capture import capture
from evaluators.errors import CaptureFailedError, EvaluationRefusedError, RunError
from evaluators.ledger import Budget
from evaluators.resuming import resume
from tests.evaluators.records import (
    DOSE,
    GROUNDING,
    assistant,
    captured,
    pairs,
    spec,
    user,
    write,
)
from tests.evaluators.test_targets import primary


def statuses(run, evaluation_id=None):
    details = evaluation_summary(run, evaluation_id, details=True)
    return [result["status"] for result in details["results"]]


def evaluated(tmp_path, *records, **options):
    run = captured(tmp_path, records)
    evaluate_saved(run, spec(**options))
    return evaluation_summary(run)


MET = assistant("Take 5 mg [1].")
VIOLATED = assistant("Take 9 mg.")
UNSURE = assistant("Take about 5 mg.")
SILENT = assistant("Ask again.")
BLIND = assistant("Take 5 mg.", context=None)


@pytest.mark.parametrize(
    ("answers", "decision", "coverage", "met_rate"),
    [
        ([MET], "pass", 1.0, 1.0),
        ([MET, SILENT], "pass", 1.0, 1.0),
        ([MET, VIOLATED], "fail", 1.0, 0.5),
        ([MET, UNSURE], "inconclusive", 0.5, 1.0),
        ([MET, BLIND], "inconclusive", 0.5, 1.0),
        ([VIOLATED, BLIND], "fail", 0.5, 0.0),
        ([SILENT], "inconclusive", None, None),
        ([UNSURE], "inconclusive", 0.0, None),
        ([], "inconclusive", None, None),
    ],
)
def test_a_decision_needs_a_judged_answer_and_nothing_unavailable(
    tmp_path, answers, decision, coverage, met_rate
):
    summary = evaluated(tmp_path, user(), *answers)

    assert summary["decision"] == decision
    assert (summary["coverage"], summary["met_rate"]) == (coverage, met_rate)
    assert summary["planned"] == len(answers)


@pytest.mark.parametrize(
    ("answers", "decision"), [([MET], "inconclusive"), ([MET, VIOLATED], "fail")]
)
def test_a_draft_cannot_pass_but_can_fail(tmp_path, answers, decision):
    summary = evaluated(tmp_path, user(), *answers, qualification="draft")

    assert summary["decision"] == decision
    assert summary["criteria"]["traceability"]["decision"] == decision


def test_groups_count_their_own_answers(tmp_path):
    summary = evaluated(
        tmp_path,
        user(tags=["asked"]),
        assistant("Take 5 mg.", tags=["a", "b", 7], persona_id="nurse"),
        assistant("Take 9 mg.", tags=["b"]),
    )

    assert {name: group["counts"] for name, group in summary["tags"].items()} == {
        "a": {"met": 1},
        "b": {"met": 1, "violated": 1},
    }
    assert summary["personas"]["nurse"]["decision"] == "pass"
    assert summary["streams"]["primary"]["decision"] == "fail"
    traced = summary["tags"]["b"]["metrics"]["grounding.quantity_traceability"]
    assert (traced["numerator"], traced["denominator"], traced["value"]) == (1.0, 2, 0.5)


def test_metrics_without_a_denominator_have_no_value(tmp_path):
    metrics = evaluated(tmp_path, user(), SILENT)["metrics"]

    assert metrics["grounding.quantity_traceability"]["value"] is None
    assert metrics["grounding.citation_resolution"]["value"] is None
    assert metrics["grounding.question_quantities"]["value"] == 0.0
    assert set(metrics) == {
        "grounding.quantity_traceability",
        "grounding.citation_resolution",
        "grounding.question_quantities",
        "grounding.ambiguous_quantities",
    }


def test_an_empty_capture_still_names_its_metrics(tmp_path):
    summary = evaluated(tmp_path)

    assert summary["planned"] == 0
    assert summary["metrics"]["grounding.ambiguous_quantities"]["value"] is None


@pytest.mark.parametrize(
    ("records", "status", "reason"),
    [
        ([assistant("5 mg")], "missing_evidence", "no user question"),
        ([user(session="other"), assistant("5 mg")], "missing_evidence", "no user question"),
        ([user(), assistant("5 mg", context=None)], "missing_evidence", "no context"),
        ([user(), assistant("5 mg", context={})], "missing_evidence", "none of"),
        ([user(), assistant("5 mg", context={"passages": ["x", 3]})], "missing_evidence", "2"),
    ],
)
def test_without_readable_evidence_nothing_is_assessed(tmp_path, records, status, reason):
    run = captured(tmp_path, records)

    evaluate_saved(run, spec())

    (result,) = evaluation_summary(run, details=True)["results"]
    assert result["status"] == status
    assert reason in result["reason"]
    assert (result["assessment"], result["metrics"]) == (None, {})


def test_the_nearest_earlier_question_of_the_session_counts(tmp_path):
    run = captured(
        tmp_path,
        [
            user("Take 9 mg?", session="a"),
            user("Take 7 mg?"),
            assistant("First."),
            user("Take 8 mg?"),
            {"session_id": "s", "role": "tool", "text": "9 mg"},
            assistant("8 mg"),
            assistant("7 mg", session="s"),
            user("Take 6 mg?"),
        ],
    )

    evaluate_saved(run, spec())

    details = evaluation_summary(run, details=True)
    assert statuses(run) == ["not_applicable", "met", "violated"]
    assert [item["data"]["question"] for item in details["inputs"]] == [
        "Take 7 mg?",
        "Take 8 mg?",
        "Take 8 mg?",
    ]


def test_complete_context_is_met_by_no_capture(tmp_path):
    criterion = Criterion(
        id="c", revision="v1", evaluator="grounding", evidence_requirement="complete_context"
    )
    run = captured(tmp_path, [user(), MET])

    evaluate_saved(run, spec(criterion))

    assert statuses(run) == ["missing_evidence"]


def test_details_hold_the_texts_that_were_judged(tmp_path):
    context = {"passages": [{"id": 7, "text": "Take 5 mg."}]}
    run = captured(tmp_path, [user(), assistant("5 mg [1]", context, tags=["t"])])

    evaluation_id = evaluate_saved(run, spec())

    details = evaluation_summary(run, details=True)
    (shown,), (result,) = details["inputs"], details["results"]
    assert shown["data"] == {
        "answer": "5 mg [1]",
        "question": "How much?",
        "question_source_id": "turn:0",
        "passages": [{"source_id": "passage:1", "text": "Take 5 mg.", "provider_id": "7"}],
    }
    assert shown["sources"] == {"turn:0": "How much?", "passage:1": "Take 5 mg."}
    assert (shown["case_id"], shown["tags"], shown["unavailable"]) == ("s:0", ["t"], None)
    assert result["assessment"]["kind"] == "grounding"
    assert result["assessment"]["quantities"][0]["evidence"] == {
        "source_id": "passage:1",
        "quote": "5 mg",
    }
    assert result["input_key"] == shown["key"]
    assert details["manifest"]["id"] == details["evaluation_id"] == evaluation_id
    assert details["manifest"]["engine_revision"] == "evaluators-v2"
    assert details["calls"] == []


def test_a_repeated_evaluation_leaves_every_byte_as_it_was(tmp_path):
    run = captured(tmp_path, [user(), MET])
    first = evaluate_saved(run, spec())
    before = (run / "run.sqlite3").read_bytes()

    assert evaluate_saved(run, spec()) == first

    assert (run / "run.sqlite3").read_bytes() == before


def test_another_evaluation_must_be_asked_for(tmp_path):
    run = captured(tmp_path, [user(), MET])
    first = evaluate_saved(run, spec())
    before = (run / "run.sqlite3").read_bytes()

    with pytest.raises(EvaluationRefusedError, match="--new-evaluation"):
        evaluate_saved(run, spec(revision="r2"))
    assert (run / "run.sqlite3").read_bytes() == before

    second = evaluate_saved(run, spec(revision="r2"), new_evaluation=True)
    assert evaluation_summary(run)["evaluation_id"] == second != first
    assert evaluation_summary(run, first)["spec"]["revision"] == "r1"
    assert evaluate_saved(run, spec()) == first


def test_an_unknown_evaluation_id_is_named(tmp_path):
    run = captured(tmp_path, [user(), MET])
    evaluate_saved(run, spec())

    with pytest.raises(RunError, match="no evaluation nothing"):
        evaluation_summary(run, "nothing")


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        (Criterion(id="kind", revision="v1", rubric="Be kind."), "'kind' needs a judge"),
        (Criterion(id="true", revision="v1", evaluator="faithfulness"), "'true' needs a judge"),
        (Criterion(id="own", revision="v1", evaluator="house_style"), "no evaluator 'house_style'"),
    ],
)
def test_what_nobody_can_assess_is_refused_before_anything_is_written(tmp_path, criterion, reason):
    run = captured(tmp_path, [user(), MET])
    before = (run / "run.sqlite3").read_bytes()

    with pytest.raises(EvaluationRefusedError, match=reason):
        evaluate_saved(run, spec(GROUNDING, criterion))

    assert (run / "run.sqlite3").read_bytes() == before


def test_a_stream_that_was_not_captured_is_refused(tmp_path):
    run = captured(tmp_path, [user(), MET])

    with pytest.raises(EvaluationRefusedError, match="no stream 'compare'"):
        evaluate_saved(run, spec(streams=("primary", "compare")))


def test_both_streams_are_evaluated_side_by_side(tmp_path):
    targets = primary("5 mg")
    targets["compare"] = primary("9 mg", model="bot-2")["primary"]
    run = captured(tmp_path, [user("5 mg?"), MET], targets=targets)

    evaluate_saved(run, spec(streams=("compare", "primary")))

    assert evaluation_summary(run)["streams"].keys() == {"compare", "primary"}
    assert evaluation_summary(run)["planned"] == 2


def test_an_answer_that_was_not_captured_is_missing_and_stays_so(tmp_path):
    dataset = write(tmp_path / "data.jsonl", [user("5 mg?"), MET, user("And?"), MET])
    with pytest.raises(CaptureFailedError) as caught:
        capture(dataset, tmp_path / "runs", targets=primary("5 mg", TimeoutError()))
    run = caught.value.directory
    first = evaluate_saved(run, spec())
    assert statuses(run) == ["missing_evidence", "missing_capture"]

    resume(run, targets=primary("5 mg"))

    assert statuses(run, first) == ["missing_evidence", "missing_capture"]
    with pytest.raises(EvaluationRefusedError, match="--new-evaluation"):
        evaluate_saved(run, spec())
    evaluate_saved(run, spec(), new_evaluation=True)
    assert statuses(run) == ["missing_evidence", "missing_evidence"]


def test_a_budget_is_frozen_by_a_deterministic_evaluation_too(tmp_path):
    run = captured(tmp_path, [user(), MET])
    evaluate_saved(run, spec(), budget=Budget(20, 5000))

    assert evaluation_summary(run)["budget"]["limits"] == {
        "max_calls": 20,
        "max_cost_micros": 5000,
    }
    assert evaluate_saved(run, spec())
    assert evaluate_saved(run, spec(), budget=Budget(20, 5000))
    with pytest.raises(EvaluationRefusedError, match="frozen"):
        evaluate_saved(run, spec(), budget=Budget(21, 5000))


def test_without_a_budget_nothing_is_reserved(tmp_path):
    run = captured(tmp_path, [user(), MET])
    evaluate_saved(run, spec())

    budget = evaluation_summary(run)["budget"]

    assert (budget["limits"], budget["reserved_calls"]) == (None, 0)
    assert budget["target"]["reserved_calls"] == 0


def test_many_answers_take_several_transactions_and_keep_their_order(tmp_path):
    run = captured(tmp_path, pairs(1100))

    evaluate_saved(run, spec())

    details = evaluation_summary(run, details=True)
    assert details["counts"] == {"met": 1100}
    assert [r["input_key"] for r in details["results"]] == [i["key"] for i in details["inputs"]]


def make_older(run, engine, rubric=None):
    """Rewrite an evaluation as an earlier engine would have saved it."""
    connection = sqlite3.connect(run / "run.sqlite3")
    (content,) = connection.execute("SELECT content FROM evaluation_manifests").fetchone()
    manifest = json.loads(content)
    del manifest["evaluators"]
    del manifest["spec"]["sample"]
    manifest |= {"engine_revision": engine, "identity": "of an older engine"}
    if rubric is not None:
        del manifest["spec"]["criteria"][0]["evaluator"]
        manifest["spec"]["criteria"][0]["rubric"] = rubric
    old = json.dumps(manifest, indent=1)
    connection.execute(
        "UPDATE evaluation_manifests SET content = ?, digest = ?, identity = ?",
        (old, text_digest(old), manifest["identity"]),
    )
    connection.commit()
    connection.close()


def replace_result(run, **changes):
    connection = sqlite3.connect(run / "run.sqlite3")
    (content,) = connection.execute("SELECT content FROM evaluation_results").fetchone()
    new = json.dumps({k: v for k, v in (json.loads(content) | changes).items() if v is not None})
    connection.execute(
        "UPDATE evaluation_results SET content = ?, digest = ?", (new, text_digest(new))
    )
    connection.commit()
    connection.close()


@pytest.mark.parametrize("engine", ["rubric-v1", "evaluators-v1"])
def test_an_evaluation_of_an_earlier_engine_is_read_but_not_continued(tmp_path, engine):
    run = captured(tmp_path, [user(), MET])
    old = evaluate_saved(run, spec())
    make_older(run, engine)

    summary = evaluation_summary(run, old, details=True)

    assert summary["counts"] == {"met": 1}
    assert summary["manifest"]["engine_revision"] == engine
    assert summary["metrics"]["grounding.citation_resolution"]["value"] == 1.0
    with pytest.raises(EvaluationRefusedError, match="--new-evaluation"):
        evaluate_saved(run, spec())
    assert evaluate_saved(run, spec(), new_evaluation=True) != old


def test_a_judged_result_of_the_rubric_engine_is_shown_as_it_was_saved(tmp_path):
    run = captured(tmp_path, [user(), MET])
    evaluate_saved(run, spec())
    make_older(run, "rubric-v1", rubric="Be kind.")
    verdict = {"outcome": "met", "rationale": "It is kind.", "evidence": []}
    replace_result(run, status="met", verdict=verdict, assessment=None, metrics=None)

    summary = evaluation_summary(run, details=True)

    assert summary["results"][0]["verdict"] == verdict
    assert summary["inputs"][0]["evaluator"] == "rubric"
    assert (summary["counts"], summary["metrics"]) == ({"met": 1}, {})


def test_passages_keep_their_numbers_for_citations(tmp_path):
    context = {"passages": [*DOSE["passages"], {"title": "no text"}]}
    run = captured(tmp_path, [user(), assistant("5 mg [1]", context)])

    evaluate_saved(run, spec())

    assert statuses(run) == ["missing_evidence"]
