import json
import sqlite3

import pytest

from evaluators import Criterion, evaluate_saved, rundir
from evaluators.capture import capture
from evaluators.errors import CorruptRunError, LockedRunError, ReviewError, RunError
from evaluators.ledger import Budget
from evaluators.promotion import promote
from evaluators.qualification import Limits, qualify
from evaluators.review import BLANK, Imported, export, import_file
from evaluators.summary import viewed
from evaluators.targets import TargetReply
from tests.evaluators.judge import FAITHFUL, Judge, verdict
from tests.evaluators.records import assistant, captured, spec, user, write
from tests.evaluators.test_comparison import MET, SILENT, UNSURE, VIOLATED, evaluated, rewrite
from tests.evaluators.test_targets import primary


def exported(run, tmp_path, **options):
    path = tmp_path / "tasks.jsonl"
    export(run, path, force=True, **options)
    return [json.loads(line) for line in path.read_text().splitlines()]


def annotation(review_id="r1", outcome="met", **changes):
    return {
        "id": review_id,
        "reviewer": "Ada",
        "outcome": outcome,
        "rationale": "Read it twice.",
        "role": "adjudication",
        "provenance": "human",
        "supersedes": None,
        **changes,
    }


def imported(run, tmp_path, *tasks):
    return import_file(run, write(tmp_path / "filled.jsonl", tasks))


def reviewed(run, tmp_path, outcomes, **changes):
    """Store an annotation for some cases, by case id."""
    tasks = [
        {**task, "annotation": annotation(f"r-{task['case_id']}", outcomes[task["case_id"]])}
        for task in exported(run, tmp_path)
        if task["case_id"] in outcomes
    ]
    for task in tasks:
        task["annotation"] |= changes
    return imported(run, tmp_path, *tasks)


def rows(run):
    connection = sqlite3.connect(run / "run.sqlite3")
    found = connection.execute("SELECT content FROM reviews ORDER BY sequence").fetchall()
    connection.close()
    return [json.loads(content) for (content,) in found]


# Tasks


def test_a_task_holds_the_evidence_and_not_the_result(tmp_path):
    context = {"passages": [{"id": 7, "text": "Take 5 mg."}]}
    run = captured(
        tmp_path,
        [user("Hello"), assistant("Hi."), user("How much?"), assistant("9 mg [1]", context)],
    )
    evaluate_saved(run, spec())

    task = exported(run, tmp_path)[1]

    assert task["evidence"] == {
        "conversation": [
            {"source_id": "turn:0", "role": "user", "content": "Hello"},
            {"source_id": "turn:1", "role": "assistant", "content": "Hi."},
            {"source_id": "turn:2", "role": "user", "content": "How much?"},
            {"source_id": "turn:3", "role": "assistant", "content": "9 mg [1]"},
        ],
        "answer": "9 mg [1]",
        "question": "How much?",
        "passages": [{"source_id": "passage:1", "text": "Take 5 mg.", "provider_id": "7"}],
        "context": None,
    }
    assert task["criterion"]["id"] == "traceability"
    assert task["annotation"] == BLANK
    assert "violated" not in json.dumps(task)


def test_a_context_without_readable_passages_is_shown_as_it_is(tmp_path):
    run = captured(tmp_path, [user(), assistant("5 mg", {"notes": "5 mg"})])
    evaluate_saved(run, spec())

    (task,) = exported(run, tmp_path)

    assert (task["evidence"]["passages"], task["evidence"]["context"]) == (None, {"notes": "5 mg"})


def test_tasks_can_be_chosen_by_result(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": VIOLATED, "c": UNSURE})

    chosen = exported(run, tmp_path, statuses=("violated", "needs_review"))

    assert [task["case_id"] for task in chosen] == ["b", "c"]


def test_generated_answers_of_both_streams_are_tasks(tmp_path):
    targets = primary(TargetReply("5 mg", {"passages": []}))
    targets["compare"] = primary(TargetReply("6 mg", None), model="bot-2")["primary"]
    run = captured(tmp_path, [user("5 mg?"), assistant("old")], targets=targets)
    evaluate_saved(run, spec(streams=("compare", "primary")))

    tasks = exported(run, tmp_path)

    assert [task["evidence"]["answer"] for task in tasks] == ["6 mg", "5 mg"]


def test_tasks_replace_no_file_unless_forced(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    (tmp_path / "mine").write_text("mine")

    with pytest.raises(RunError, match="--force"):
        export(run, tmp_path / "mine")

    assert (tmp_path / "mine").read_text() == "mine"


# Import


def test_an_import_stores_what_is_filled_in_and_passes_over_the_rest(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": VIOLATED})
    first, second = exported(run, tmp_path)
    first["annotation"] = annotation()

    assert imported(run, tmp_path, first, second) == Imported(added=1, known=0, blank=1)

    (row,) = rows(run)
    assert row["annotation"] == annotation()
    assert (row["case_id"], row["criterion_id"]) == ("a", "traceability")


def test_an_import_a_second_time_changes_no_byte(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": MET})
    reviewed(run, tmp_path, {"a": "met"})
    before = (run / "run.sqlite3").read_bytes()

    assert reviewed(run, tmp_path, {"a": "met"}) == Imported(added=0, known=1, blank=0)
    assert (run / "run.sqlite3").read_bytes() == before
    assert reviewed(run, tmp_path, {"a": "met", "b": "met"}) == Imported(1, 1, 0)


def test_one_line_that_cannot_be_taken_keeps_all_others_out(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": MET})
    first, second = exported(run, tmp_path)
    first["annotation"], second["annotation"] = annotation(), annotation("r2", "perhaps")
    before = (run / "run.sqlite3").read_bytes()

    with pytest.raises(ReviewError, match="line 2: annotation: outcome must be met or"):
        imported(run, tmp_path, first, second)

    assert (run / "run.sqlite3").read_bytes() == before


def changed_answer(task):
    task["evidence"]["answer"] += " "


def changed_passage(task):
    task["evidence"]["passages"][0]["text"] = "Take 6 mg."


def changed_criterion(task):
    task["criterion"]["revision"] = "v2"


def changed_digest(task):
    task["evidence_digest"] = "0" * 64


def other_case(task):
    task["case_id"] = "b"


@pytest.mark.parametrize(
    "change", [changed_answer, changed_passage, changed_criterion, changed_digest, other_case]
)
def test_a_review_of_changed_evidence_is_refused(tmp_path, change):
    run = evaluated(tmp_path, {"a": MET})
    (task,) = exported(run, tmp_path)
    task["annotation"] = annotation()
    change(task)

    with pytest.raises(ReviewError, match="line 1: the task is not the one that was exported"):
        imported(run, tmp_path, task)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run_id": "another"}, "another run"),
        ({"evaluation_id": "another"}, "no such evaluation"),
        ({"evaluation_id": 3}, "evaluation_id must be a string"),
        ({"input_key": "primary/99/traceability"}, "no captured answer"),
        ({"note": "hello"}, "not a task"),
        ({"annotation": "met"}, "annotation must have the fields"),
        ({"annotation": {"id": "r1"}}, "annotation must have the fields"),
        ({"annotation": annotation(mood="good")}, "annotation must have the fields"),
        ({"annotation": annotation(review_id=" ")}, "id must be text"),
        ({"annotation": annotation(review_id=7)}, "id must be text"),
        ({"annotation": annotation(reviewer=None)}, "reviewer must be text"),
        ({"annotation": annotation(rationale="")}, "rationale must be text"),
        ({"annotation": annotation(outcome="needs_review")}, "outcome must be"),
        ({"annotation": annotation(outcome=["met"])}, "outcome must be"),
        ({"annotation": annotation(role="judge")}, "role must be"),
        ({"annotation": annotation(provenance=None)}, "provenance must be"),
        ({"annotation": annotation(supersedes=3)}, "supersedes must be"),
        ({"annotation": annotation(supersedes="r0")}, "supersedes 'r0', which is not stored"),
        ({"annotation": annotation(supersedes="r1")}, "supersedes 'r1', which is not stored"),
    ],
)
def test_a_review_is_read_strictly(tmp_path, changes, words):
    run = evaluated(tmp_path, {"a": MET})
    (task,) = exported(run, tmp_path)

    with pytest.raises(ReviewError, match=words):
        imported(run, tmp_path, {**task, "annotation": annotation(), **changes})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", "line 1: is not a task"),
        (b"\n[1]\n", "line 2: is not a JSON object"),
        (b"met", "line 1: is not JSON"),
        (b"\xff", "line 1: is not UTF-8"),
        (b"[" * 100_000, "line 1: is nested too deeply"),
    ],
)
def test_a_file_that_holds_no_tasks_is_refused_by_line(tmp_path, content, words):
    run = evaluated(tmp_path, {"a": MET})
    (tmp_path / "tasks").write_bytes(content)

    with pytest.raises(ReviewError, match=words):
        import_file(run, tmp_path / "tasks")


def test_only_so_many_problems_are_shown(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    (tmp_path / "tasks").write_bytes(b"{}\n" * 150)

    with pytest.raises(ReviewError, match="and 50 more"):
        import_file(run, tmp_path / "tasks")


def test_not_applicable_is_no_outcome_where_a_criterion_always_applies(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    assert reviewed(run, tmp_path, {"a": "not_applicable"}).added == 1
    always = evaluated(tmp_path, {"a": MET}, "always")
    with viewed(always) as view:
        changed = json.loads(json.dumps(view.manifest["spec"]))
    changed["criteria"][0]["allow_not_applicable"] = False
    rewrite(always, "spec", changed)

    with pytest.raises(ReviewError, match="applies to every answer"):
        reviewed(always, tmp_path, {"a": "not_applicable"})


def test_a_correction_needs_a_new_id_and_names_what_it_supersedes(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    (task,) = exported(run, tmp_path)

    def store(*annotations):
        return imported(run, tmp_path, *({**task, "annotation": each} for each in annotations))

    store(annotation())
    with pytest.raises(ReviewError, match="'r1' is stored and says otherwise"):
        store(annotation(outcome="violated"))
    with pytest.raises(ReviewError, match="'r1' stands: a correction names it"):
        store(annotation("r2", "violated"))
    assert store(annotation("r2", "violated", supersedes="r1")).added == 1
    with pytest.raises(ReviewError, match="'r1', which was superseded already"):
        store(annotation("r3", supersedes="r1"))
    assert store(annotation(), annotation("r3", supersedes="r2")) == Imported(1, 1, 0)
    assert [row["annotation"]["id"] for row in rows(run)] == ["r1", "r2", "r3"]


def test_each_reviewer_has_one_opinion_beside_the_adjudication(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    (task,) = exported(run, tmp_path)

    def store(*annotations):
        return imported(run, tmp_path, *({**task, "annotation": each} for each in annotations))

    opinions = [annotation(f"o-{n}", role="opinion", reviewer=n) for n in ("Ada", "Bo")]
    assert store(*opinions, annotation()).added == 3
    with pytest.raises(ReviewError, match="'o-Bo' stands"):
        store(annotation("o-2", role="opinion", reviewer="Bo"))
    with pytest.raises(ReviewError, match="about something else"):
        store(annotation("r2", supersedes="o-Bo"))


def test_an_import_needs_the_lock(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    (task,) = exported(run, tmp_path)

    with rundir.locked(run), pytest.raises(LockedRunError):
        imported(run, tmp_path, {**task, "annotation": annotation()})


def test_a_run_without_evaluation_takes_no_reviews(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    (task,) = exported(run, tmp_path)
    bare = captured(tmp_path, [user(), assistant()])

    with pytest.raises(ReviewError, match="another run"):
        imported(bare, tmp_path, {**task, "annotation": annotation()})
    with pytest.raises(RunError, match="no evaluation"):
        exported(bare, tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE reviews SET content = replace(content, 'violated', 'met')",
        "UPDATE reviews SET id = 'other' WHERE sequence = 1",
        "DELETE FROM reviews WHERE sequence = 1",
    ],
)
def test_stored_reviews_that_were_tampered_with_are_refused(tmp_path, statement):
    run = evaluated(tmp_path, {"a": MET, "b": MET})
    reviewed(run, tmp_path, {"a": "met", "b": "violated"})
    connection = sqlite3.connect(run / "run.sqlite3")
    connection.execute(statement)
    connection.commit()
    connection.close()

    with viewed(run) as view, pytest.raises(CorruptRunError, match="review"):
        qualify(view)
    with pytest.raises(CorruptRunError, match="review"):
        reviewed(run, tmp_path, {"a": "met"})


def test_reviews_of_an_unknown_version_are_refused(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "met"})
    connection = sqlite3.connect(run / "run.sqlite3")
    connection.execute("UPDATE review_schema SET version = 2")
    connection.commit()
    connection.close()

    with viewed(run) as view, pytest.raises(RunError, match="version 2"):
        qualify(view)


# Qualification


def qualified(run, **limits):
    with viewed(run) as view:
        return qualify(view, Limits(**limits))


@pytest.mark.parametrize(
    ("machine", "human", "decision", "agreement", "coverage"),
    [
        ({"a": MET, "b": VIOLATED}, {"a": "met", "b": "violated"}, "pass", 1.0, 1.0),
        ({"a": SILENT}, {"a": "not_applicable"}, "pass", 1.0, 1.0),
        ({"a": MET, "b": MET}, {"a": "met", "b": "violated"}, "fail", 0.5, 1.0),
        ({"a": VIOLATED}, {"a": "met"}, "fail", 0.0, 1.0),
        ({"a": MET}, {}, "inconclusive", None, None),
        ({"a": UNSURE}, {"a": "met"}, "inconclusive", None, 0.0),
        ({"a": MET, "b": UNSURE}, {"a": "met", "b": "met"}, "inconclusive", 1.0, 0.5),
    ],
)
def test_an_evaluator_is_qualified_by_what_people_decided(
    tmp_path, machine, human, decision, agreement, coverage
):
    run = evaluated(tmp_path, machine)
    reviewed(run, tmp_path, human)

    report = qualified(run)

    assert report["decision"] == decision
    assert (report["agreement"], report["coverage"]) == (agreement, coverage)


def test_false_passes_and_false_failures_are_named(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": VIOLATED, "c": SILENT, "d": SILENT, "e": UNSURE})
    reviewed(
        run,
        tmp_path,
        dict(zip("abcde", ("violated", "met", "violated", "met", "met"), strict=True)),
    )

    report = qualified(run)

    assert [each["case_id"] for each in report["false_passes"]] == ["a", "c"]
    assert [each["case_id"] for each in report["false_failures"]] == ["b"]
    assert (report["adjudicated"], report["compared"], report["agreed"]) == (5, 4, 0)
    assert {"human": "met", "machine": "needs_review", "answers": 1} in report["outcomes"]


def test_limits_decide_how_much_disagreement_is_borne(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": MET, "c": UNSURE})
    reviewed(run, tmp_path, {"a": "met", "b": "violated", "c": "met"})

    borne = qualified(run, min_agreement=0.5, max_false_passes=1, min_coverage=0.6)

    assert borne["decision"] == "pass"
    assert qualified(run, min_agreement=0.5, min_coverage=0.6)["decision"] == "fail"
    assert qualified(run, max_false_passes=1, min_coverage=0.6)["decision"] == "fail"
    assert qualified(run, min_agreement=0.5, max_false_passes=1)["decision"] == "inconclusive"


@pytest.mark.parametrize(
    "changes", [{"provenance": "model"}, {"provenance": "synthetic"}, {"role": "opinion"}]
)
def test_only_human_adjudications_qualify(tmp_path, changes):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "violated"}, **changes)

    report = qualified(run)

    assert (report["decision"], report["adjudicated"]) == ("inconclusive", 0)
    assert report["other_reviews"] == 1


def test_a_superseded_adjudication_counts_no_more(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "violated"})
    (task,) = exported(run, tmp_path)
    corrected = annotation("r2", supersedes="r-a")
    imported(run, tmp_path, {**task, "annotation": corrected})

    assert qualified(run)["decision"] == "pass"


def test_reviews_serve_another_evaluation_of_the_same_evidence(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "met"})
    evaluate_saved(run, spec(revision="r2"), new_evaluation=True)

    assert qualified(run)["decision"] == "pass"


def test_reviews_by_an_older_criterion_are_stale(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "met"})
    changed = Criterion(id="traceability", revision="v2", evaluator="grounding")
    evaluate_saved(run, spec(changed), new_evaluation=True)

    report = qualified(run)

    assert (report["decision"], report["adjudicated"]) == ("inconclusive", 0)
    assert [each["review_id"] for each in report["stale_references"]] == ["r-a"]


def test_one_stale_reference_keeps_an_evaluator_from_passing(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": MET})
    reviewed(run, tmp_path, {"a": "met"})
    changed = Criterion(id="traceability", revision="v2", evaluator="grounding")
    evaluate_saved(run, spec(changed), new_evaluation=True)
    reviewed(run, tmp_path, {"b": "met"})

    report = qualified(run)

    assert (report["agreement"], report["coverage"]) == (1.0, 1.0)
    assert report["decision"] == "inconclusive"


def test_reviews_by_another_criterion_are_not_stale(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "met"})
    other = Criterion(id="other", revision="v1", evaluator="grounding")
    evaluate_saved(run, spec(other), new_evaluation=True)

    assert qualified(run)["stale_references"] == []


def test_judged_results_are_qualified_like_others(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": MET})
    judge = Judge(lambda payload: verdict(payload, dangerous=True, danger_reason="Too much."))
    evaluate_saved(run, spec(FAITHFUL), new_evaluation=True, judge=judge, budget=Budget(9))
    reviewed(run, tmp_path, {"a": "violated", "b": "met"})

    report = qualified(run)

    assert [each["case_id"] for each in report["false_failures"]] == ["b"]
    assert report["agreement"] == 0.5


# Promotion


def promoted(run, out, **options):
    with viewed(run) as view:
        found = promote(view, out, **options)
    return found, *(
        [json.loads(line) for line in (out / name).read_text().splitlines()]
        for name in ("dataset.jsonl", "expectations.jsonl")
    )


def test_promotion_keeps_the_conversation_up_to_the_reviewed_answer(tmp_path):
    records = [
        user("First?"),
        assistant("One."),
        user("How much?"),
        assistant("9 mg"),
        user("And?"),
        assistant("Two."),
        user(session="t"),
        assistant(session="t"),
    ]
    run = captured(tmp_path, records)
    evaluate_saved(run, spec())
    reviewed(run, tmp_path, {"s:1": "violated"})

    found, turns, expectations = promoted(run, tmp_path / "regression")

    assert (found["turns"], found["expectations"]) == (4, 1)
    assert [turn["text"] for turn in turns] == ["First?", "One.", "How much?", "9 mg"]
    assert [turn.get("case_id") for turn in turns] == [None, "s:0", None, "s:1"]
    (expected,) = expectations
    assert (expected["case_id"], expected["outcome"]) == ("s:1", "violated")
    assert expected["review_id"] == "r-s:1"
    assert "violated" not in (tmp_path / "regression" / "dataset.jsonl").read_text()


def test_a_promoted_dataset_is_captured_with_the_same_cases(tmp_path):
    run = evaluated(tmp_path, {"a": MET, "b": VIOLATED})
    reviewed(run, tmp_path, {"a": "met", "b": "violated"})
    _, _, expectations = promoted(run, tmp_path / "regression")

    again = capture(tmp_path / "regression" / "dataset.jsonl", tmp_path / "again")
    evaluate_saved(again, spec())

    with viewed(again) as view:
        cases = {(case.case_id, case.case_revision) for case in view.cases()}
    assert cases == {(each["case_id"], each["case_revision"]) for each in expectations}


def test_promoted_generated_answers_are_the_generated_ones(tmp_path):
    targets = primary(TargetReply("5 mg", {"passages": ["5 mg"]}))
    run = captured(tmp_path, [user(), assistant("old", case_id="dose")], targets=targets)
    evaluate_saved(run, spec())
    reviewed(run, tmp_path, {"dose": "met"})

    _, turns, _ = promoted(run, tmp_path / "regression")

    assert (turns[1]["text"], turns[1]["metadata"]["baseline_text"]) == ("5 mg", "old")


def test_without_an_adjudication_nothing_is_promoted(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "met"}, role="opinion")

    with pytest.raises(RunError, match="no answer"):
        promoted(run, tmp_path / "regression")

    assert not (tmp_path / "regression").exists()


def test_promotion_replaces_nothing_unless_forced(tmp_path):
    run = evaluated(tmp_path, {"a": MET})
    reviewed(run, tmp_path, {"a": "met"})
    promoted(run, tmp_path / "regression")

    with pytest.raises(RunError, match="--force"):
        promoted(run, tmp_path / "regression")
    assert promoted(run, tmp_path / "regression", force=True)[0]["expectations"] == 1
    with pytest.raises(RunError, match="no stream 'compare'"):
        promoted(run, tmp_path / "other", stream="compare")


# The commands


def test_the_commands_lead_from_tasks_to_a_regression_dataset(tmp_path, command):
    run = evaluated(tmp_path, {"a": MET, "b": VIOLATED})
    tasks, filled = tmp_path / "tasks.jsonl", tmp_path / "filled.jsonl"

    assert command("review-export", run, "--out", tasks)[:2] == (0, f"2 tasks in {tasks}\n")
    assert command("review-export", run, "--out", tasks)[0] == 1
    lines = [json.loads(line) for line in tasks.read_text().splitlines()]
    for line, outcome in zip(lines, ("met", "met"), strict=True):
        line["annotation"] = annotation(line["case_id"], outcome)
    write(filled, lines)
    stored = command("review-import", run, filled, "--json")
    found, out, _ = command("qualify", run)
    promoted_code, promoted_out, _ = command("promote", run, "--out", tmp_path / "kept", "--json")

    assert (stored[0], json.loads(stored[1])) == (0, {"added": 2, "known": 0, "blank": 0})
    assert found == 2
    assert "False failures: 1\n  b (traceability)" in out
    assert (promoted_code, json.loads(promoted_out)["expectations"]) == (0, 2)
    assert command("qualify", run, "--min-agreement", "0.5")[0] == 0
    assert json.loads(command("qualify", run, "--json")[1])["agreement"] == 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        ("review-export", "BARE", "--out", "x"),
        ("review-export", "RUN"),
        ("review-export", "RUN", "--out", "x", "--status", "good"),
        ("review-import", "RUN", "no-such-file"),
        ("review-import", "RUN", "RUN/run.sqlite3"),
        ("qualify", "BARE"),
        ("qualify", "RUN", "--min-agreement", "2"),
        ("qualify", "RUN", "--min-agreement", "nan"),
        ("review-export", "RUN", "--out", "RUN/run.sqlite3", "--force"),
        ("review-export", "RUN", "--out", "RUN/coordinator.lock", "--force"),
        ("promote", "RUN", "--out", "x"),
        ("promote", "BARE", "--out", "x"),
    ],
)
def test_what_cannot_be_reviewed_exits_1(tmp_path, command, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    run = evaluated(tmp_path, {"a": MET})
    bare = captured(tmp_path, [user(), assistant()])

    code, out, err = command(
        *(each.replace("RUN", str(run)).replace("BARE", str(bare)) for each in arguments)
    )

    assert (code, out) == (1, "")
    assert err
