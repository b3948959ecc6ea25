"""Judged evaluations: what is asked, what is paid, what becomes of each kind of reply."""

import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256

import pytest

from evaluators import Criterion, evaluate_saved, evaluation_summary
from evaluators.errors import CorruptRunError, EvaluationRefusedError
from evaluators.judges import JudgeContract, JudgeReply
from evaluators.ledger import Budget
from evaluators.settling import raise_budget, settle
from evaluators.store import calls
from evaluators.store.database import opened, transaction
from evaluators.targets import Target, TargetReply
from tests.evaluators.judge import FAITHFUL, KIND, Judge, rubric_verdict, verdict
from tests.evaluators.records import DOSE, GROUNDING, assistant, captured, pairs, spec, user
from tests.evaluators.test_targets import Assistant, primary

PLENTY = Budget(1000)


@pytest.fixture
def run(tmp_path):
    return captured(tmp_path, _distinct(4))


def _distinct(count):
    return [
        turn
        for number in range(count)
        for turn in (
            user(session=f"s{number}"),
            assistant(f"Take {number} mg.", session=f"s{number}"),
        )
    ]


def judged(run, judge=None, *criteria, budget=PLENTY, **options):
    concurrency = options.pop("concurrency", 1)
    new = options.pop("new_evaluation", False)
    evaluate_saved(
        run,
        spec(*(criteria or (FAITHFUL,)), **options),
        judge=judge or Judge(),
        budget=budget,
        concurrency=concurrency,
        new_evaluation=new,
    )
    return evaluation_summary(run, details=True)


def statuses(details):
    return [result["status"] for result in details["results"]]


def file_digest(run):
    return sha256((run / "run.sqlite3").read_bytes()).hexdigest()


# What is asked


def test_each_answer_is_asked_about_once_with_all_that_belongs_to_it(tmp_path):
    first = [user("Hello?"), assistant("Hi.", context=None)]
    run = captured(tmp_path, [*first, user("How much?"), assistant("Take 5 mg [1].")])
    judge = Judge()

    details = judged(run, judge, FAITHFUL)

    (request,) = judge.asked
    payload = json.loads(request.prompt)
    assert payload["criterion"]["id"] == "faithful"
    assert "min_correctness" not in payload["criterion"]
    assert payload["answer"] == {"source_id": "answer", "text": "Take 5 mg [1]."}
    assert payload["question"] == {"source_id": "turn:2", "text": "How much?"}
    assert payload["supporting_sources"] == {
        "turn:2": "How much?",
        "passage:1": "Take 5 mg for 3 days.",
    }
    assert [turn["content"] for turn in payload["conversation"]] == ["Hello?", "Hi.", "How much?"]
    assert details["counts"] == {"met": 1, "missing_evidence": 1}
    assert details["inputs"][1]["request"] == {"system": request.system, "prompt": request.prompt}


def test_a_rubric_sees_the_conversation_up_to_the_answer_and_needs_no_context(tmp_path):
    run = captured(tmp_path, [user("Hello?"), assistant("Hi.", context=None)])
    judge = Judge()

    details = judged(run, judge, KIND)

    payload = json.loads(judge.asked[0].prompt)
    assert [turn["source_id"] for turn in payload["conversation"]] == ["turn:0", "turn:1"]
    assert payload["context"]["value"] is None
    assert details["results"][0]["verdict"]["outcome"] == "met"
    assert details["results"][0]["assessment"] is None


@pytest.mark.parametrize(
    ("context", "status"), [(None, "missing_evidence"), ({}, "met"), ({"odd": 1}, "met")]
)
def test_a_rubric_that_requires_a_context_takes_any_that_was_kept(tmp_path, context, status):
    run = captured(tmp_path, [user(), assistant(context=context)])
    wanted = Criterion(id="k", revision="v1", rubric="Kind.", evidence_requirement="context")
    assert statuses(judged(run, Judge(), wanted)) == [status]


def test_complete_context_is_never_met(run):
    wanted = Criterion(
        id="k", revision="v1", rubric="Kind.", evidence_requirement="complete_context"
    )
    judge = Judge()
    assert set(statuses(judged(run, judge, wanted))) == {"missing_evidence"}
    assert judge.asked == []


# What is paid


def test_nothing_is_asked_twice_and_a_repeated_run_changes_no_byte(run):
    judge = Judge(cost=3, bound=5)
    details = judged(run, judge, FAITHFUL, KIND)
    before = file_digest(run)

    again = Judge(AssertionError("asked again"), cost=3, bound=5)
    evaluate_saved(run, spec(FAITHFUL, KIND), judge=again)

    assert len(judge.asked) == details["budget"]["reserved_calls"] == 8
    assert details["budget"]["known_actual_cost_micros"] == 24
    assert again.asked == []
    assert file_digest(run) == before


def test_another_evaluation_with_the_same_requests_asks_nothing(tmp_path):
    run = captured(tmp_path, pairs(5))
    judge = Judge()
    judge_again = Judge()

    details = judged(run, judge, KIND)
    more = judged(run, judge_again, KIND, id="other", new_evaluation=True)

    # The same question and answer, but other turns of the run: the first evaluation asks for each.
    assert len(judge.asked) == 5
    assert judge_again.asked == []
    assert statuses(more) == ["met"] * 5
    assert {call["id"] for call in more["calls"]} == {call["id"] for call in details["calls"]}


@pytest.mark.parametrize("concurrency", [1, 8])
def test_streams_with_the_same_request_share_its_call_under_way_or_not(tmp_path, concurrency):
    replies = [TargetReply("Take 5 mg.", DOSE), TargetReply("Rest.", DOSE)]
    targets = {**primary(*replies), "compare": Target("bot-2", Assistant([*replies]))}
    run = captured(tmp_path, [user(), assistant(), user(), assistant()], targets=targets)
    judge = Judge()

    details = judged(run, judge, streams=("primary", "compare"), concurrency=concurrency)

    assert len(details["results"]) == 4
    assert len({result["call_id"] for result in details["results"]}) == len(judge.asked) == 2


def test_a_changed_min_correctness_reads_the_saved_replies_again(run):
    judged(run, Judge())
    stricter = Criterion(id="faithful", revision="v1", evaluator="faithfulness", min_correctness=9)
    again = Judge(AssertionError("asked again"))

    details = judged(run, again, stricter, new_evaluation=True)

    assert statuses(details) == ["violated"] * 4
    assert again.asked == []


@pytest.mark.parametrize(
    ("criterion", "options"),
    [
        (Criterion(id="faithful", revision="v2", evaluator="faithfulness"), {}),
        (FAITHFUL, {"sample": 1}),
    ],
)
def test_a_new_revision_or_sample_asks_anew_within_the_same_budget(run, criterion, options):
    judged(run, Judge(), budget=Budget(6))
    judge = Judge()

    details = judged(run, judge, criterion, budget=None, new_evaluation=True, **options)

    assert len(judge.asked) == 2
    assert details["counts"] == {"met": 2, "budget_blocked": 2}


def test_another_judge_is_asked_anew(run):
    judged(run, Judge())
    judge = Judge(model="judge-2")
    judged(run, judge, new_evaluation=True)
    assert len(judge.asked) == 4


def test_a_judged_evaluation_needs_a_judge_and_a_first_budget(run):
    before = file_digest(run)
    with pytest.raises(EvaluationRefusedError, match="needs a judge"):
        evaluate_saved(run, spec(FAITHFUL), budget=PLENTY)
    with pytest.raises(EvaluationRefusedError, match="--max-judge-calls"):
        evaluate_saved(run, spec(FAITHFUL), judge=Judge())
    with pytest.raises(EvaluationRefusedError, match="can cost at most"):
        evaluate_saved(run, spec(FAITHFUL), judge=Judge(), budget=Budget(5, 100))
    assert file_digest(run) == before


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_calls_beyond_the_budget_are_blocked_in_the_order_of_the_answers(tmp_path, concurrency):
    run = captured(tmp_path, _distinct(6))
    judge = Judge()

    details = judged(run, judge, GROUNDING, FAITHFUL, budget=Budget(4), concurrency=concurrency)

    by_criterion = {"faithful": [], "traceability": []}
    for each in details["results"]:
        by_criterion[each["input_key"].rpartition("/")[2]].append(each["status"])
    assert by_criterion["faithful"] == ["met"] * 4 + ["budget_blocked"] * 2
    assert "budget_blocked" not in by_criterion["traceability"]
    assert len(judge.asked) == 4
    (blocked,) = {each["reason"] for each in details["results"] if each["reason"]}
    assert blocked == "all 4 judge calls of the budget are reserved"


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_limit_in_money_counts_what_calls_cost_not_what_they_might(tmp_path, concurrency):
    run = captured(tmp_path, _distinct(8))
    judge = Judge(cost=10, bound=30)

    details = judged(run, judge, budget=Budget(100, 70), concurrency=concurrency)

    # One at a time: after five calls 50 is spent, and a sixth might cost 30 more than the 70.
    assert details["counts"] == {"met": 5, "budget_blocked": 3}
    assert details["budget"]["accounted_cost_micros"] == 50


def test_a_call_of_unknown_cost_is_charged_its_bound(tmp_path):
    run = captured(tmp_path, _distinct(4))
    details = judged(run, Judge(bound=30), budget=Budget(100, 70))
    assert details["counts"] == {"met": 2, "budget_blocked": 2}
    assert details["budget"]["calls_with_unknown_actual_cost"] == 2
    assert details["budget"]["accounted_cost_micros"] == 60


def test_a_call_that_cost_more_than_declared_is_invalid_and_blocks_the_rest(run):
    details = judged(run, Judge(cost=31, bound=30))
    assert details["counts"] == {"invalid": 1, "budget_blocked": 3}
    assert details["budget"]["cost_bound_violations"] == 1
    assert details["calls"][0]["status"] == "cost_bound_exceeded"
    assert json.loads(details["calls"][0]["reply"]["text"])["correctness"] == 8


def test_grounding_goes_on_when_the_budget_is_gone(run):
    details = judged(run, Judge(), GROUNDING, FAITHFUL, budget=Budget(0))
    assert details["criteria"]["faithful"]["counts"] == {"budget_blocked": 4}
    assert details["criteria"]["traceability"]["unavailable"] == 0


# What becomes of each kind of reply


def _changed(**changes):
    return lambda payload: verdict(payload, **changes)


BAD_REPLIES = {
    "prose around": lambda payload: f"Here you are: {verdict(payload)}",
    "a fence": lambda payload: f"```json\n{verdict(payload)}\n```",
    "a key twice": lambda payload: verdict(payload)[:-1] + ', "correctness": 9}',
    "text for a number": _changed(correctness="9"),
    "a float": _changed(correctness=9.0),
    "true for a number": _changed(correctness=True),
    "an invented quote": lambda payload: verdict(payload).replace("Take 5 mg for", "Take 7 mg for"),
    "an unknown source": lambda payload: verdict(payload).replace("passage:1", "passage:9"),
    "100,000 brackets": lambda _: "[" * 100_000,
    "10 MB": lambda _: "x" * 10_000_000,
    "empty": lambda _: "",
    "half a surrogate pair": lambda _: "\ud800",
    "an escaped one": lambda payload: verdict(payload, reasoning="\ud800"),
    "cut off": lambda payload: JudgeReply(verdict(payload), "length"),
}


@pytest.mark.parametrize("name", BAD_REPLIES)
def test_a_bad_reply_is_kept_and_invalid_and_the_next_answer_is_judged(run, name):
    answers = iter([BAD_REPLIES[name]])

    judge = Judge(lambda payload: next(answers, verdict)(payload))  # noqa: PLW0108 - one a call
    details = judged(run, judge)

    assert statuses(details) == ["invalid", "met", "met", "met"]
    assert len(judge.asked) == 4
    assert len(details["results"][0]["reason"]) < 300
    kept = BAD_REPLIES[name](json.loads(judge.asked[0].prompt))
    assert details["calls"][0]["reply"]["text"] == getattr(kept, "text", kept)
    assert details["calls"][0]["status"] == "response_saved"


@pytest.mark.parametrize(
    "reply", [None, 7, {"text": "{}"}, JudgeReply(b"{}"), JudgeReply("{}", "done"),
              JudgeReply("{}", actual_cost_micros=-1), JudgeReply("{}", actual_cost_micros=10**30),
              JudgeReply("{}", usage={"n": float("nan")})]
)  # fmt: skip
def test_a_reply_of_another_shape_is_invalid_and_shown(run, reply):
    details = judged(run, Judge(lambda _: reply))
    assert set(statuses(details)) == {"invalid"}
    assert {call["status"] for call in details["calls"]} == {"invalid_response"}
    assert details["calls"][0]["reply"] == {"returned": repr(reply)}


@pytest.mark.parametrize("error", [ValueError("secret"), TimeoutError(), SystemExit(3)])
def test_a_judge_that_raises_leaves_its_outcome_unknown_and_is_not_asked_again(run, error):
    answers = iter([error])
    judge = Judge(lambda payload: next(answers, None) or verdict(payload), bound=5)

    details = judged(run, judge)
    before = file_digest(run)
    again = judged(run, Judge(AssertionError("asked again"), bound=5))

    assert statuses(details) == ["unknown_outcome", "met", "met", "met"]
    assert details["calls"][0]["exception_type"] == type(error).__name__
    assert "secret" not in json.dumps(details["results"])
    assert details["budget"]["accounted_cost_micros"] == 20
    assert statuses(again) == statuses(details)
    assert file_digest(run) == before


class _Evil(dict):
    def __iter__(self):
        raise SystemExit

    keys = items = __iter__

    def __repr__(self):
        raise KeyboardInterrupt


@dataclass(frozen=True)
class _More(JudgeReply):
    extra: int = 3


def test_a_reply_that_cannot_even_be_looked_at_is_invalid_and_holds_nothing_up(run):
    replies = iter([_Evil(), JudgeReply("{}", usage=_Evil())])
    judge = Judge(lambda payload: next(replies, verdict(payload)))
    details = judged(run, judge)
    assert statuses(details) == ["invalid", "invalid", "met", "met"]
    assert len(judge.asked) == 4


def test_a_reply_with_more_or_deeper_fields_is_kept_without_them(run):
    deep = {}
    for _ in range(960):
        deep = {"a": deep}
    kinds = iter([lambda text: _More(text), lambda text: JudgeReply(text, usage={"x": deep})])  # noqa: PLW0108
    judge = Judge(lambda payload: next(kinds, JudgeReply)(verdict(payload)))

    details = judged(run, judge)

    assert statuses(details) == ["met"] * 4
    assert details["calls"][1]["reply"]["usage"] is None


def test_a_late_reply_to_a_finished_call_is_refused(run):
    judged(run, Judge(ValueError()))
    with opened(run, write=True) as connection:
        call = next(iter(evaluation_summary(run, details=True)["calls"]))
        ended = calls.of_id(connection, call["id"])
        outcome = calls.Outcome("response_saved", reply="{}")
        with pytest.raises(EvaluationRefusedError, match="not running"), transaction(connection):
            calls.finish(connection, ended, outcome)


def test_a_contract_that_changes_while_it_is_asked_is_an_error_and_loses_no_reply(run):
    judge = Judge()

    def answer(payload):
        judge.contract = JudgeContract("judge-2", "1" * 64)
        return verdict(payload)

    judge.answer = answer
    with pytest.raises(EvaluationRefusedError, match="contract changed"):
        judged(run, judge)
    details = judged(run, Judge())
    assert statuses(details) == ["met"] * 4
    assert details["budget"]["reserved_calls"] == 4


# What a person may do


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM judge_calls WHERE rowid = 1", "judge call .* was sent and is gone"),
        ("DELETE FROM judge_calls", "judge call .* was sent and is gone"),
        ("UPDATE judge_budget SET max_calls = 99", "the judge budget is not the one"),
        ("UPDATE judge_budget_changes SET max_calls = 99", "the judge budget is not the one"),
        ("UPDATE judge_budget_changes SET max_cost_micros = 9", "the judge budget is not the one"),
        ("DELETE FROM judge_budget", "the judge budget is not the one"),
        (
            "INSERT INTO judge_budget_changes (max_calls, reason, changed_at) VALUES (99, '', '')",
            "the judge budget is not the one",
        ),
    ],
)
def test_a_ledger_that_lost_calls_or_won_budget_is_refused_and_nobody_asked(run, statement, words):
    judged(run, Judge(), budget=Budget(2))
    raise_budget(run, "one more", max_calls=3)
    connection = sqlite3.connect(run / "run.sqlite3")
    with closing(connection), connection:
        connection.execute("DELETE FROM evaluation_results")  # as if it had been killed before
        connection.execute(statement)
    judge = Judge()

    for read in (
        lambda: judged(run, judge, budget=None),
        lambda: evaluation_summary(run),
        lambda: raise_budget(run, "more", max_calls=9),
    ):
        with pytest.raises(CorruptRunError, match=words):
            read()

    assert judge.asked == []


def test_a_raised_budget_lets_the_blocked_answers_be_judged(run):
    judged(run, Judge(), budget=Budget(2))
    before, after = raise_budget(run, "two more", max_calls=4)
    assert (before.max_calls, after.max_calls) == (2, 4)

    judge = Judge()
    details = judged(run, judge, budget=Budget(2))  # the command of the first run, unchanged

    assert statuses(details) == ["met"] * 4
    assert len(judge.asked) == 2
    assert details["budget"]["limits"]["max_calls"] == 4
    (change,) = details["budget"]["changes"]
    assert change["from"]["max_calls"] == 2
    assert change["to"]["max_calls"] == 4
    assert change["reason"] == "two more"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_calls": 3}, "not lowered"),
        ({"max_calls": 4}, "already"),
        ({"max_calls": 4, "max_cost_micros": 99}, "not lowered"),
    ],
)
def test_a_budget_is_only_ever_raised(run, limits, message):
    judged(run, Judge(bound=10), budget=Budget(4, 100))
    with pytest.raises(EvaluationRefusedError, match=message):
        raise_budget(run, "why", **limits)


def test_a_run_without_a_budget_has_none_to_raise(run):
    with pytest.raises(EvaluationRefusedError, match="never evaluated"):
        raise_budget(run, "why", max_calls=4)
    evaluate_saved(run, spec())
    with pytest.raises(EvaluationRefusedError, match="no budget yet"):
        raise_budget(run, "why", max_calls=4)
    with pytest.raises(EvaluationRefusedError, match="blank"):
        raise_budget(run, " ", max_calls=4)
    with pytest.raises(EvaluationRefusedError, match="text"):
        raise_budget(run, "caf\udce9", max_calls=4)


def test_a_person_settles_an_unknown_outcome_by_the_reply_that_was_found(run):
    details = judged(run, Judge(ValueError()))
    call, other = details["calls"][:2]
    payload = json.loads(call["request"]["prompt"])

    settle(run, call["id"], verdict(payload), "found in the provider's log")
    settle(run, other["id"], None, "the provider was down")
    again = judged(run, Judge(AssertionError("asked again")))

    assert statuses(again) == ["met", "invalid", "unknown_outcome", "unknown_outcome"]
    assert again["calls"][0]["settlement"]["reason"] == "found in the provider's log"
    assert "the provider was down" in again["results"][1]["reason"]
    with pytest.raises(EvaluationRefusedError, match="nothing to settle"):
        settle(run, call["id"], None, "again")
    with pytest.raises(EvaluationRefusedError, match="no judge call"):
        settle(run, "nobody", None, "again")


# Several at once


def test_several_calls_are_under_way_at_once_and_the_results_are_the_same(tmp_path):
    outcome = {"0": {"correctness": 2}, "3": {"dangerous": True, "danger_reason": "d"}}

    found = []
    for concurrency in (1, 8):
        folder = tmp_path / str(concurrency)
        folder.mkdir()
        all_here = threading.Barrier(concurrency, timeout=60)

        def answer(payload, all_here=all_here):
            all_here.wait()
            return verdict(payload, **outcome.get(payload["answer"]["text"][5], {}))

        judge = Judge(answer)
        details = judged(captured(folder, _distinct(16)), judge, concurrency=concurrency)
        assert judge.most_at_once == concurrency
        found.append((statuses(details), details["metrics"], details["counts"]))
    assert found[0] == found[1]
    assert found[0][2] == {"met": 14, "violated": 2}


def test_ctrl_c_finishes_what_is_under_way_and_stops(tmp_path):
    run = captured(tmp_path, _distinct(30))
    started = threading.Event()

    def answer(payload):
        started.set()
        time.sleep(0.3)
        return verdict(payload)

    def interrupt():
        started.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    judge = Judge(answer)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        judged(run, judge, concurrency=4)

    details = evaluation_summary(run, details=True)
    assert 0 < len(judge.asked) <= 4
    assert details["counts"]["met"] == len(judge.asked)
    assert {call["status"] for call in details["calls"]} == {"response_saved"}
    assert statuses(judged(run, Judge())) == ["met"] * 30


# Tampering


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE judge_calls SET reply = replace(reply, '8', '9')",
        "UPDATE judge_calls SET request = replace(request, 'mg', 'kg')",
        "UPDATE judge_calls SET status = 'unknown_outcome'",
        "UPDATE judge_calls SET actual_cost_micros = 0",
        "DELETE FROM judge_calls",
    ],
)
def test_a_changed_call_is_refused(run, change):
    judged(run, Judge(cost=5))
    connection = sqlite3.connect(run / "run.sqlite3")
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(CorruptRunError, match="judge call"):
        evaluation_summary(run, details=True)


def test_a_rubric_verdict_is_shown_with_its_quotes(run):
    details = judged(run, Judge(lambda payload: rubric_verdict(payload, "violated")), KIND)
    assert statuses(details) == ["violated"] * 4
    assert details["decision"] == "fail"
    assert details["results"][0]["verdict"] == {
        "outcome": "violated",
        "rationale": "It is.",
        "evidence": [{"source_id": "answer", "quote": "Take 0 mg."}],
    }
