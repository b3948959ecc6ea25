"""From an answer to a judge's assessment, its scores, and the failure group."""

import json

import pytest

from evaluators.adapters import errors
from mesedi_server import judging
from mesedi_server.store import judge_work
from mesedi_server.tasks import assess, sweep
from tests.evaluators.chat_server import answer
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.judges.asking import (
    KEY,
    RULES,
    fitting,
    in_background,
    judge_server,
    prompts,
    saying,
    until,
)


def test_an_answer_becomes_an_assessment_and_scores(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()

    assert judged.assessments() == [("exec-1", "a", "met")]
    assert judged.scores() == [
        ("claim_support", 1.0, True, 0.0, 1.0),
        ("correctness", 8.0, True, 0.0, 10.0),
    ]
    assert judged.statuses() == {"response_saved": 1}
    assert judged.waiting() == 0
    (_, headers, asked), *more = server.asked
    assert more == []
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert asked["model"] == "judge-1"


def test_a_violated_answer_opens_a_group_of_its_own(judged):
    with judge_server(saying(correctness=2)) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
    examine_all(judged.database)

    groups = judged.tenant.read.get("/failure-groups").json["failure_groups"]
    assert [(g["evaluator_id"], g["metric_type"]) for g in groups] == [
        ("mesedi/faithfulness", "correctness")
    ]
    assert judged.outcomes() == ["violated"]


def test_a_project_without_a_judge_has_nothing_queued(judged):
    judged.give()
    judged.judge()

    assert judged.waiting() == 0
    assert judged.outcomes() == []


def test_a_judge_that_is_off_is_asked_nothing_and_its_queue_is_emptied(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give("exec-1")
        judged.set_judge(server.url, is_on=False)
        judged.give("exec-2")
        judged.judge()

    assert server.asked == []
    assert judged.waiting() == 0


def test_judging_again_asks_nothing_again(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
        judged.run("UPDATE executions SET detect_due_at = now()")
        examine_all(judged.database)
        judged.judge()

    assert len(server.asked) == 1
    assert len(judged.scores()) == 2


def test_only_failing_answers_are_asked_about_if_that_is_wanted(judged):
    with judge_server() as server:
        judged.set_judge(server.url, answers="failing")
        judged.give("exec-good", score=0.9)
        judged.give("exec-bad", score=0.1)
        judged.judge()

    assert [execution for execution, *_ in judged.assessments()] == ["exec-bad"]


def test_a_sample_takes_about_its_share_and_always_the_same(judged):
    judged.set_judge("http://127.0.0.1:9/v1", answers="sample", sample_percent=30)
    for number in range(100):
        judged.give(f"exec-{number}")
    queue = f"SELECT execution_pk FROM judge_work WHERE project_pk = {judged.pk} ORDER BY 1"
    first = judged.rows(queue)
    judged.run("DELETE FROM judge_work")
    judged.run("UPDATE executions SET detect_due_at = now()")
    examine_all(judged.database)

    assert judged.rows(queue) == first
    assert 10 < len(first) < 55


def test_identical_answers_share_a_call(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give("exec-1")
        judged.give("exec-2")
        judged.judge()

    assert len(server.asked) == 1
    assert judged.outcomes() == ["met", "met"]


def test_an_answer_without_readable_evidence_is_not_asked_about(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give("exec-1", context=None)
        judged.give("exec-2", question=None)
        judged.give("exec-3", answer=7)
        judged.judge()

    assert server.asked == []
    assert judged.outcomes() == ["missing_evidence", "missing_evidence", "invalid"]
    assert judged.scores() == []


def test_an_answer_that_changes_while_it_is_judged_is_judged_anew(judged):
    def respond(handler):
        if len(handler.server.asked) == 1:
            judged.give(text="Take 500 mg.")
        fitting(handler)

    with judge_server(respond) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()

    assert len(server.asked) == 2
    content = judged.rows(
        f"SELECT content #>> '{{verdict,claims,0,text}}' FROM assessments WHERE project_pk = {judged.pk}"
    )
    assert content == [("Take 500 mg.",)]
    assert judged.outcomes() == ["met"]


def test_a_changed_answer_replaces_its_scores(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
        server.respond = saying(claims=[], no_claims_reason="nonfactual")
        judged.give(text="Hello.")
        judged.judge()

    assert judged.outcomes() == ["not_applicable"]
    assert judged.scores() == []


def test_no_more_than_the_budget_of_the_day_is_asked_and_the_rest_waits(judged):
    with judge_server() as server:
        judged.set_judge(server.url, calls_per_day=2)
        for number in range(4):
            judged.give(f"exec-{number}", text=f"Take {number} mg.")
        judged.judge()
        assert (len(server.asked), judged.waiting()) == (2, 2)
        assert judged.outcomes() == ["met", "met"]

        judged.run("UPDATE judge_calls SET started_at = started_at - interval '1 day'")
        judged.judge()

    assert (len(server.asked), judged.waiting()) == (4, 0)


def test_the_budget_of_the_month_counts_by_the_zone_of_the_project(judged):
    judged.run(f"UPDATE projects SET time_zone = 'Pacific/Kiritimati' WHERE pk = {judged.pk}")
    with judge_server() as server:
        judged.set_judge(server.url, calls_per_month=1)
        judged.give("exec-1", text="Take 1 mg.")
        judged.judge()
        begin = "date_trunc('month', now() AT TIME ZONE 'Pacific/Kiritimati') AT TIME ZONE 'Pacific/Kiritimati'"
        judged.give("exec-2", text="Take 2 mg.")
        judged.run(f"UPDATE judge_calls SET started_at = {begin} WHERE project_pk = {judged.pk}")
        judged.judge()
        assert len(server.asked) == 1

        judged.run(f"UPDATE judge_calls SET started_at = {begin} - interval '1 second'")
        judged.judge()

    assert len(server.asked) == 2


@pytest.mark.parametrize("concurrency", [1, 3])
def test_two_processes_together_keep_to_the_concurrency(judged, concurrency):
    most, now = [0], [0]

    def respond(handler):
        now[0] += 1
        most[0] = max(most[0], now[0])
        handler.server.stopping.wait(0.15)
        now[0] -= 1
        fitting(handler)

    with judge_server(respond) as server:
        judged.set_judge(server.url, concurrency=concurrency)
        for number in range(9):
            judged.give(f"exec-{number}", text=f"Take {number} mg.")
        processes = [in_background(judged.judge) for _ in range(2)]
        for process in processes:
            process.join()
        judged.judge()

    assert 1 <= most[0] <= concurrency
    assert (most[0] > 1) == (concurrency > 1)
    assert len(server.asked) == 9
    assert judged.outcomes() == ["met"] * 9


def test_a_full_queue_takes_no_newer_answers_and_counts_them(judged):
    judged.set_judge("http://127.0.0.1:9/v1")
    with judged.database.transaction() as connection:
        project, most = judged.pk, judge_work.MAX_WAITING
        connection.exec_driver_sql(
            "WITH made AS (INSERT INTO executions (project_pk, execution_id, detect_due_at)"
            f" SELECT {project}, 'old-' || n, NULL FROM generate_series(1, {most - 2}) n RETURNING pk)"
            f" INSERT INTO judge_work (project_pk, execution_pk, answer_id) SELECT {project}, pk, 'a' FROM made"
        )
    for number in range(5):
        judged.give(f"exec-{number}")

    assert judged.waiting() == most
    assert judged.state().not_queued == 3


def test_a_judge_that_is_down_costs_nothing_and_its_backlog_drains(judged):
    with judge_server() as server:
        url = server.url
    judged.set_judge(url)
    for number in range(3):
        judged.give(f"exec-{number}", text=f"Take {number} mg.")
    judged.judge()

    state = judged.state()
    assert state.last_error == "NotConnectedError"
    assert state.failing_since is not None
    assert judged.statuses() == {}
    assert (judged.waiting(), judged.outcomes()) == (3, [])

    with judge_server() as server:
        judged.run(f"UPDATE judge_settings SET url = '{server.url}'")
        until(lambda: judged.judge() or judged.waiting() == 0)

    assert judged.outcomes() == ["met"] * 3
    assert judged.state().failing_since is None


def test_an_answer_that_got_lost_is_unknown_and_not_asked_about_again(judged):
    def respond(handler):
        if len(handler.server.asked) == 1:
            handler.reply(500, b"")
        else:
            fitting(handler)

    with judge_server(respond) as server:
        judged.set_judge(server.url)
        judged.give("exec-0", text="Take 0 mg.")
        judged.give("exec-1", text="Take 1 mg.")
        until(lambda: judged.judge() or judged.waiting() == 0)
        judged.judge()

    assert set(prompts(server).values()) == {1}
    assert sorted(judged.outcomes()) == ["met", "unknown_outcome"]
    assert judged.statuses() == {"unknown_outcome": 1, "response_saved": 1}
    assert judged.state().last_error == errors.EndpointFailedError.__name__


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "{}" * 2, "\x00", "[" * 100_000, '{"claims": []}',
        json.dumps({"claims": "\ud800"}), "1" * 5000,
    ],
)  # fmt: skip
def test_a_verdict_that_is_none_is_invalid_and_kept(judged, text):
    with judge_server(answer(text)) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
        judged.judge()

    assert judged.outcomes() == ["invalid"]
    assert judged.statuses() == {"response_saved": 1}
    assert judged.scores() == []
    assert len(server.asked) == 1


def test_a_reasoning_with_a_nul_is_stored_without_it(judged):
    with judge_server(saying(reasoning="a\x00b")) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()

    assert judged.outcomes() == ["met"]
    assert len(judged.scores()) == 2


@pytest.mark.parametrize(
    ("respond", "error"),
    [
        (lambda handler: handler.reply(200, b"<html>"), "UnreadableReplyError"),
        (lambda handler: handler.reply(200, b"a" * 2_000_000), "ReplyTooLargeError"),
        (lambda handler: handler.reply(302, b"", Location="http://127.0.0.1:1/"), "RedirectedError"),
        (lambda handler: handler.reply(401, KEY.encode()), "RequestRefusedError"),
        (lambda handler: handler.reply(200, KEY.encode()), "KeyInReplyError"),
    ],
)  # fmt: skip
def test_a_reply_that_is_none_is_unknown_with_its_class_alone(judged, respond, error):
    with judge_server(respond) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()

    assert judged.outcomes() == ["unknown_outcome"]
    assert judged.state().last_error == error
    everything = judged.rows("SELECT c::text FROM judge_calls c") + judged.rows(
        "SELECT a::text FROM assessments a"
    )
    assert KEY not in str(everything)


def test_a_private_address_is_not_called_unless_that_is_set(judged):
    rules = type(RULES)(RULES.secret_key, private_judges=False)
    with judge_server() as server:
        judged.set_judge(server.url.replace("127.0.0.1", "localhost"))
        judged.give()
        judged.judge(rules)

    assert server.asked == []
    assert judged.state().last_error == "PrivateAddressError"
    assert judged.waiting() == 1


@pytest.mark.parametrize(
    ("secret", "error"),
    [("another secret of thirty-two letters", "WrongSecretKeyError"), ("", "NoSecretKeyError")],
)
def test_a_key_that_cannot_be_read_sends_nothing_and_says_so(judged, secret, error):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge(type(RULES)(secret, private_judges=True))

    assert server.asked == []
    assert judged.state().last_error == error
    assert (judged.waiting(), judged.statuses()) == (1, {})


def test_a_reply_that_was_saved_is_read_without_asking_even_when_the_judge_is_off(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
        judged.run(f"DELETE FROM assessments WHERE project_pk = {judged.pk}")
        judged.run(
            "INSERT INTO judge_work (project_pk, execution_pk, answer_id, cache_key)"
            " SELECT x.project_pk, x.pk, 'a', c.cache_key FROM executions x JOIN judge_calls c USING (project_pk)"
            f" WHERE x.project_pk = {judged.pk}"
        )
        judged.set_judge(server.url, is_on=False)
        judged.judge()

    assert judged.outcomes() == ["met"]
    assert len(server.asked) == 1


def test_a_call_that_a_dead_process_left_becomes_unknown_and_is_never_sent(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        assert isinstance(judging._ask_next(judged.database, RULES, judged.pk), judging.Dispatch)
        judged.judge()
        assert judged.statuses() == {"running": 1}
        assert judged.outcomes() == []

        judged.run("UPDATE judge_calls SET started_at = started_at - interval '301 seconds'")
        judged.judge()
        judged.judge()

    assert server.asked == []
    assert judged.statuses() == {"unknown_outcome": 1}
    assert judged.outcomes() == ["unknown_outcome"]


def test_a_reply_that_comes_after_its_call_was_given_up_changes_nothing(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        dispatch = judging._ask_next(judged.database, RULES, judged.pk)
        came = judging._ask(dispatch)
        judged.run("UPDATE judge_calls SET started_at = started_at - interval '301 seconds'")
        judged.judge()
        judging._save(judged.database, RULES, dispatch, came)
        judged.judge()

    assert judged.statuses() == {"unknown_outcome": 1}
    assert judged.outcomes() == ["unknown_outcome"]
    assert len(server.asked) == 1


def test_texts_of_calls_go_as_executions_do_and_the_calls_still_count(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
    judged.run(f"UPDATE projects SET retention_days = 7 WHERE pk = {judged.pk}")
    age = "UPDATE judge_calls SET started_at = now() - interval '{} days' WHERE project_pk = {}"
    texts = (
        "SELECT request, reply, execution_id, answer_id FROM judge_calls"
        f" WHERE project_pk = {judged.pk}"
    )

    judged.run(age.format(6, judged.pk))
    sweep.delete_old_executions(judged.database, run_s=10)
    request, _, *about = judged.rows(texts)[0]
    assert "Take 5 mg." in request
    assert about == ["exec-1", "a"]
    judged.run(age.format(8, judged.pk))
    sweep.delete_old_executions(judged.database, run_s=10)
    assert judged.rows(texts) == [("", None, None, None)]
    judged.run(age.format(40, judged.pk))
    sweep.delete_old_executions(judged.database, run_s=10)
    assert judged.rows(texts) == []


def test_an_answer_that_comes_after_the_examination_is_judged(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give(answer_id="a")
        judged.judge()
        payload = {
            "answer_id": "b",
            "question": "How much?",
            "answer": "Take 6 mg.",
            "context": {"passages": ["Take 6 mg."]},
        }
        judged.tenant.ingest.post("/events", [make_event("exec-1", "answer", payload=payload)])
        assess.assess_all(judged.database)
        judged.judge()

    assert [answer_id for _, answer_id, _ in judged.assessments()] == ["a", "b"]


def test_what_a_judge_said_of_a_passing_answer_is_no_reason_to_ground_its_next_version(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
        judged.give(text="Take 50 mg.")
        assess.assess_all(judged.database)
        judged.judge()

    evaluators = judged.rows(f"SELECT evaluator FROM assessments WHERE project_pk = {judged.pk}")
    assert evaluators == [("faithfulness",)]
    assert len(server.asked) == 2


def test_what_a_judge_said_of_an_answer_keeps_it_from_no_grounding_once_it_fails(judged):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
        judged.give(score=0)
        assess.assess_all(judged.database)

    evaluators = judged.rows(
        f"SELECT evaluator FROM assessments WHERE project_pk = {judged.pk} ORDER BY 1"
    )
    assert evaluators == [("faithfulness",), ("grounding",)]


@pytest.mark.parametrize("score", [0.1, 0.9])
def test_an_answer_that_was_on_its_way_while_the_one_before_was_judged_is_judged(judged, score):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give(score=score)
        judged.judge()
        judged.give(text="Take 500 mg.", score=score)
        # Its ingest began before the judgment of the first was stored.
        judged.run("UPDATE events SET received_at = received_at - interval '8 seconds'")
        assess.assess_all(judged.database)
        judged.judge()

    assert len(server.asked) == 2


def test_at_most_fifty_answers_of_an_execution_are_judged_its_newest(judged):
    with judge_server() as server:
        judged.set_judge(server.url, calls_per_day=1000)
        events = [
            make_event("exec-1", "answer", payload={"answer_id": f"{n:02}", "answer": "Yes."})
            for n in range(60)
        ]
        judged.tenant.ingest.post("/executions", make_execution())
        judged.tenant.ingest.post("/events", [*events, make_score(0.9)])
        judged.tenant.ingest.patch("/executions/exec-1", make_close())
        examine_all(judged.database)
        judged.judge()

    assert [answer_id for _, answer_id, _ in judged.assessments()] == [
        f"{n:02}" for n in range(10, 60)
    ]
