import json
import sqlite3

import pytest

from evaluators import Criterion, evaluate_saved
from evaluators.bootstrap import Sums, binomial, interval
from evaluators.canonical import text_digest
from evaluators.capture import capture
from evaluators.comparison import compare
from evaluators.errors import ComparisonRefusedError, CorruptRunError, RunError
from evaluators.ledger import Budget
from evaluators.summary import viewed
from evaluators.targets import TargetReply
from tests.evaluators.judge import FAITHFUL, KIND, Judge, rubric_verdict, verdict
from tests.evaluators.records import assistant, captured, pairs, spec, user, write
from tests.evaluators.test_targets import primary


def evaluated(tmp_path, answers, name="data", **options):
    """Capture and evaluate one session an answer; `answers` maps case ids to texts."""
    records = [
        turn
        for case_id, text in answers.items()
        for turn in (
            user(session=case_id),
            text if isinstance(text, dict) else assistant(text, session=case_id, case_id=case_id),
        )
    ]
    run = capture(write(tmp_path / f"{name}.jsonl", records), tmp_path / "runs")
    evaluate_saved(run, spec(**options))
    return run


def compared(baseline, candidate):
    with viewed(baseline) as before, viewed(candidate) as after:
        return compare(before, after)


MET, VIOLATED, UNSURE, SILENT = "Take 5 mg [1].", "Take 9 mg.", "Take about 5 mg.", "Ask."


@pytest.mark.parametrize(
    ("before", "after", "decision"),
    [
        ({"a": MET}, {"a": MET}, "pass"),
        ({"a": MET, "b": SILENT}, {"a": MET, "b": SILENT}, "pass"),
        ({"a": VIOLATED}, {"a": MET}, "pass"),
        ({"a": MET}, {"a": VIOLATED}, "fail"),
        ({"a": VIOLATED}, {"a": VIOLATED}, "fail"),
        ({"a": MET}, {"a": UNSURE}, "inconclusive"),
        ({"a": UNSURE}, {"a": MET}, "inconclusive"),
        ({"a": MET}, {"a": MET, "b": MET}, "inconclusive"),
        ({"a": MET, "b": MET}, {"a": MET}, "inconclusive"),
        ({"a": MET}, {"b": MET}, "inconclusive"),
        ({}, {}, "inconclusive"),
    ],
)
def test_a_comparison_decides(tmp_path, before, after, decision):
    report = compared(evaluated(tmp_path, before, "before"), evaluated(tmp_path, after, "after"))

    assert report["decision"] == decision


def test_a_comparison_of_drafts_is_inconclusive(tmp_path):
    runs = [evaluated(tmp_path, {"a": MET}, n, qualification="draft") for n in ("one", "two")]

    assert compared(*runs)["decision"] == "inconclusive"


def test_answers_are_paired_by_case_and_everything_else_is_listed(tmp_path):
    changed = assistant(MET, session="changed", case_id="changed", case_revision="2")
    before = evaluated(
        tmp_path, {"a": MET, "b": MET, "c": UNSURE, "gone": MET, "changed": MET}, "before"
    )
    after = evaluated(
        tmp_path, {"a": VIOLATED, "b": SILENT, "c": MET, "new": MET, "changed": changed}, "after"
    )

    report = compared(before, after)

    named = {"criterion_id": "traceability"}
    assert report["regressions"] == [{"case_id": "a", **named}]
    assert report["added"] == [{"case_id": "new", **named}]
    assert report["removed"] == [{"case_id": "gone", **named}]
    assert report["mismatched"] == [{"case_id": "changed", **named}]
    assert (report["paired"], report["unavailable"]) == (3, 1)
    assert report["transitions"] == [
        {"baseline": "met", "candidate": "not_applicable", "answers": 1},
        {"baseline": "met", "candidate": "violated", "answers": 1},
        {"baseline": "needs_review", "candidate": "met", "answers": 1},
    ]


def test_metrics_are_compared_over_the_pairs_that_measure_them_on_both_sides(tmp_path):
    before = evaluated(tmp_path, {"a": "5 mg, 3 days", "b": MET, "c": SILENT, "d": UNSURE}, "one")
    after = evaluated(tmp_path, {"a": "5 mg, 9 days", "b": SILENT, "c": MET, "d": MET}, "two")

    metrics = compared(before, after)["metrics"]

    traced = metrics["grounding.quantity_traceability"]
    assert (traced["paired"], traced["not_applicable"], traced["unavailable"]) == (2, 2, 0)
    assert (traced["baseline_numerator"], traced["baseline_denominator"]) == (2, 3)
    assert (traced["candidate_numerator"], traced["candidate_denominator"]) == (2, 3)
    assert traced["delta"] == 0
    met = metrics["evaluation.met_rate"]
    assert (met["paired"], met["not_applicable"], met["unavailable"]) == (1, 2, 1)
    assert (met["baseline"], met["candidate"], met["delta"]) == (1.0, 0.0, -1.0)
    coverage = metrics["evaluation.coverage"]
    assert (coverage["paired"], coverage["baseline"], coverage["candidate"]) == (2, 0.5, 1.0)
    asked = metrics["grounding.ambiguous_quantities"]
    assert (asked["baseline"], asked["candidate"], asked["delta"]) == (1.0, 0.0, -1.0)
    assert asked["interval"] is None


def test_an_interval_needs_five_groups_and_is_the_same_each_time(tmp_path):
    few = {f"c{n}": MET for n in range(4)}
    many = {f"c{n}": MET for n in range(6)}
    runs = [
        evaluated(tmp_path, few, "few"),
        evaluated(tmp_path, many, "many"),
        evaluated(tmp_path, {**many, "c0": VIOLATED}, "worse"),
    ]

    assert compared(runs[0], runs[0])["metrics"]["evaluation.met_rate"]["interval"] is None
    met = compared(runs[1], runs[2])["metrics"]["evaluation.met_rate"]
    assert (met["groups"], met["delta"]) == (6, pytest.approx(-1 / 6))
    low, high = met["interval"]
    assert low < met["delta"] < high == 0
    assert compared(runs[1], runs[2])["metrics"]["evaluation.met_rate"] == met


def test_answers_of_one_split_group_are_drawn_together(tmp_path):
    def grouped(text):
        return {
            f"c{n}": assistant(text, session=f"c{n}", case_id=f"c{n}")
            | {"metadata": {"split_group": "one", "context": {"passages": ["Take 5 mg."]}}}
            for n in range(9)
        }

    runs = evaluated(tmp_path, grouped(MET), "a"), evaluated(tmp_path, grouped(MET), "b")

    met = compared(*runs)["metrics"]["evaluation.met_rate"]

    assert (met["paired"], met["groups"], met["interval"]) == (9, 1, None)


def test_the_interval_agrees_with_drawing_every_group_singly():
    kinds = [Sums(1, 1, 1, 1)] * 600 + [Sums(1, 1, 0, 1)] * 40 + [Sums(0, 1, 1, 1)] * 20
    singly = [Sums(2 * n, 2 * n, n, 2 * n) for n in range(1, 30)]

    low, high = interval(kinds)
    spread = interval(singly)

    # The normal approximation of the same bootstrap: -20/660 with a standard error of 0.0116.
    assert (low, high) == (pytest.approx(-0.0530, abs=0.003), pytest.approx(-0.0076, abs=0.003))
    assert spread == (-0.5, -0.5)


@pytest.mark.parametrize(("trials", "probability"), [(1, 0.5), (40, 0.03), (40, 0.97), (500, 0.4)])
def test_binomial_numbers_have_their_mean_and_spread(trials, probability):
    steps = 4000
    drawn = [binomial((n + 0.5) / steps, trials, probability) for n in range(steps)]

    mean = sum(drawn) / steps
    variance = sum((each - mean) ** 2 for each in drawn) / steps
    assert mean == pytest.approx(trials * probability, rel=0.02)
    assert variance == pytest.approx(trials * probability * (1 - probability), rel=0.05)
    assert all(0 <= each <= trials for each in drawn)


def test_fifty_thousand_groups_are_drawn_in_seconds():
    groups = [Sums(1, 1, int(n % 50 != 0), 1) for n in range(50_000)]

    low, high = interval(groups)

    assert low < -0.02 < high


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"revision": "r2"}, "specs"),
        ({"qualification": "draft"}, "specs"),
        ({"sample": 1}, "specs"),
    ],
)
def test_evaluations_by_another_spec_are_not_compared(tmp_path, options, words):
    before = evaluated(tmp_path, {"a": MET}, "before")
    after = evaluated(tmp_path, {"a": MET}, "after", **options)

    with pytest.raises(ComparisonRefusedError, match=words):
        compared(before, after)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("judge", {"model": "m"}, "judges"),
        ("engine_revision", "evaluators-v1", "engines"),
        ("evaluators", [], "evaluators"),
        ("package_version", "0.0.1", "package versions"),
    ],
)
def test_evaluations_made_another_way_are_not_compared(tmp_path, name, value, words):
    before = evaluated(tmp_path, {"a": MET}, "before")
    after = evaluated(tmp_path, {"a": MET}, "after")
    rewrite(after, name, value)

    with pytest.raises(ComparisonRefusedError, match=words):
        compared(before, after)


def rewrite(run, name, value):
    connection = sqlite3.connect(run / "run.sqlite3")
    (content,) = connection.execute("SELECT content FROM evaluation_manifests").fetchone()
    new = json.dumps({**json.loads(content), name: value})
    connection.execute(
        "UPDATE evaluation_manifests SET content = ?, digest = ?", (new, text_digest(new))
    )
    connection.commit()
    connection.close()


def test_one_stream_can_be_compared_with_another(tmp_path):
    right, wrong = (TargetReply(text, {"passages": []}) for text in ("5 mg", "9 mg"))
    targets = primary(right, right)
    targets["compare"] = primary(right, wrong, model="bot-2")["primary"]
    records = [user("5 mg?"), assistant(), user("5 mg?", session="t"), assistant(session="t")]
    run = captured(tmp_path, records, targets=targets)
    first = evaluate_saved(run, spec())
    second = evaluate_saved(run, spec(streams=("compare",)), new_evaluation=True)
    both = evaluate_saved(run, spec(streams=("primary", "compare")), new_evaluation=True)

    with (
        viewed(run, first) as one,
        viewed(run, second) as other,
        viewed(run, both) as both_streams,
    ):
        assert compare(one, other)["regressions"] == [
            {"case_id": "t:0", "criterion_id": "traceability"}
        ]
        with_itself = compare(both_streams, both_streams)
        with pytest.raises(ComparisonRefusedError, match="numbers of streams"):
            compare(one, both_streams)
    assert (with_itself["paired"], with_itself["regressions"]) == (4, [])


def test_a_run_without_evaluation_is_not_compared(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    bare = captured(tmp_path, [user(), assistant()])

    with pytest.raises(RunError, match="has no evaluation"):
        compared(run, bare)


def test_a_tampered_result_is_not_compared(tmp_path):
    run = evaluated(tmp_path, {"a": VIOLATED})
    connection = sqlite3.connect(run / "run.sqlite3")
    connection.execute(
        "UPDATE evaluation_results SET content = replace(content, 'violated', 'met')"
    )
    connection.commit()
    connection.close()

    with pytest.raises(CorruptRunError):
        compared(run, run)


def test_two_criteria_of_one_answer_are_two_pairs(tmp_path):
    criteria = [Criterion(id=n, revision="1", evaluator="grounding") for n in ("one", "two")]
    run = captured(tmp_path, [user(), assistant()])
    evaluate_saved(run, spec(*criteria))

    report = compared(run, run)

    assert report["paired"] == 2
    assert report["metrics"]["grounding.citation_resolution"]["paired"] == 2


def judged(tmp_path, **changes):
    """Six answers, each judged by two criteria; `changes` are those of the verdicts."""

    def answer(payload):
        is_faithful = "supporting_sources" in payload
        return verdict(payload, **changes) if is_faithful else rubric_verdict(payload)

    run = captured(tmp_path, pairs(6))
    evaluate_saved(run, spec(FAITHFUL, KIND), judge=Judge(answer), budget=Budget(99))
    return run


def test_judged_criteria_are_compared_by_their_own_metrics(tmp_path):
    report = compared(judged(tmp_path), judged(tmp_path, correctness=6))

    assert {each["criterion_id"] for each in report["regressions"]} == {"faithful"}
    assert (report["paired"], len(report["regressions"])) == (12, 6)
    correctness = report["metrics"]["faithfulness.correctness"]
    assert (correctness["baseline"], correctness["candidate"]) == (8.0, 6.0)
    assert (correctness["paired"], correctness["interval"]) == (6, [-2.0, -2.0])
    assert report["metrics"]["evaluation.met_rate"]["candidate"] == 0.5


def test_evaluations_by_two_judges_are_not_compared(tmp_path):
    runs = [captured(tmp_path, pairs(1)) for _ in range(2)]
    for number, run in enumerate(runs):
        judge = Judge(model=f"judge-{number}")
        evaluate_saved(run, spec(FAITHFUL), judge=judge, budget=Budget(9))

    with pytest.raises(ComparisonRefusedError, match="judges"):
        compared(*runs)
