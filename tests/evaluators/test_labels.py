"""Labels of a server become reviews of a run: of the very texts that were labelled, and of no others."""

import json
from hashlib import sha256

import pytest

from evaluators import Criterion
from evaluators.errors import ReviewError
from evaluators.evaluation import evaluate_saved
from evaluators.labels import import_labels
from evaluators.qualification import qualify
from evaluators.review import Imported
from evaluators.summary import viewed
from tests.evaluators.records import GROUNDING, assistant, captured, spec, user, write
from tests.evaluators.test_review import annotation

GOOD, BAD = "Take 5 mg [1].", "Take 9 mg [1]."


@pytest.fixture
def run(tmp_path):
    """A run of one supported and one unsupported answer, evaluated."""
    texts = {"a": GOOD, "b": BAD}
    records = [
        turn
        for name, text in texts.items()
        for turn in (user(session=name), assistant(text, session=name, case_id=f"exec/{name}"))
    ]
    run = captured(tmp_path, records)
    evaluate_saved(run, spec())
    return run


def label(case="a", text=GOOD, **changes):
    digest = sha256(text.encode()).hexdigest()
    return {
        "case_id": f"exec/{case}",
        "answer_sha256": digest,
        "label": "correct",
        "annotation": annotation(**changes),
    }


def store(run, tmp_path, *labels, **options):
    return import_labels(run, write(tmp_path / "labels.jsonl", labels), **options)


def qualified(run):
    with viewed(run) as view:
        return qualify(view)


def test_labels_decide_whether_the_evaluator_can_be_trusted(run, tmp_path):
    good = label("a", review_id="l1")
    bad = label("b", BAD, review_id="l2", outcome="met")

    assert store(run, tmp_path, good, bad) == Imported(added=2, known=0, blank=0)

    report = qualified(run)
    assert (report["compared"], report["agreed"]) == (2, 1)
    assert [one["case_id"] for one in report["false_failures"]] == ["exec/b"]


def test_a_correction_counts_and_a_second_import_adds_what_is_new(run, tmp_path):
    first = label("b", BAD, review_id="l1", outcome="met")
    second = label("b", BAD, review_id="l2", outcome="violated", supersedes="l1")

    assert store(run, tmp_path, first) == Imported(1, 0, 0)
    assert store(run, tmp_path, first, second) == Imported(1, 1, 0)
    assert store(run, tmp_path, first, second) == Imported(0, 2, 0)

    assert qualified(run)["agreement"] == 1


def test_labels_of_other_texts_and_other_cases_are_passed_over(run, tmp_path):
    labels = [
        label("a", "An earlier version.", review_id="l1"),
        label("elsewhere", review_id="l2"),
        label("a", review_id="l3"),
    ]

    assert store(run, tmp_path, *labels) == Imported(added=1, known=0, blank=2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"case_id": "exec/a"}', "line 2: is no label"),
        ('{"case_id": "exec/a", "answer_sha256": 5}', "line 2: is no label"),
        ('{"case_id": "exec/a", "answer_sha256": "00"}', "line 2: annotation must have"),
        ("[]", "line 2: is not a JSON object"),
        ('{"case_id": "exec/a", "answer_sha2', "line 2: is not JSON"),
        (json.dumps(label(rationale=" ")), "line 2: annotation: rationale must be text"),
        (json.dumps(label(supersedes="nobody")), "line 2: supersedes 'nobody'"),
    ],
)
def test_one_line_that_cannot_be_taken_keeps_all_others_out(run, tmp_path, line, words):
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{json.dumps(label('b', BAD, review_id='good'))}\n{line}\n")

    with pytest.raises(ReviewError, match=words):
        import_labels(run, path)

    assert qualified(run)["adjudicated"] == 0


def test_of_several_criteria_one_must_be_named(run, tmp_path):
    other = Criterion(id="second", revision="v1", evaluator="grounding")
    evaluate_saved(run, spec(GROUNDING, other), new_evaluation=True)

    for wrong in (None, "third"):
        with pytest.raises(ReviewError, match="traceability, second"):
            store(run, tmp_path, label(), criterion=wrong)
    assert store(run, tmp_path, label(), criterion="second").added == 1

    assert qualified(run)["adjudicated"] == 1


def test_the_command_says_what_became_of_the_labels(run, tmp_path, command):
    file = write(tmp_path / "labels.jsonl", [label(review_id="l1"), label("gone", review_id="l2")])

    code, out, _ = command("review-import", run, file, "--labels")
    refused, _, err = command("review-import", run, file)
    unasked, _, _ = command("review-import", run, file, "--criterion", "traceability")

    assert (code, out) == (0, "1 added, 0 known, 1 of answers that this run does not hold\n")
    assert (refused, unasked) == (1, 1)
    assert "is not a task" in err
