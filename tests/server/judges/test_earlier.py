"""Answers that failed before there was a judge: sent to it when an admin says so, and never by themselves."""

import pytest

from mesedi_server import judging
from mesedi_server.store import judge_work
from tests.evaluators.chat_server import answer
from tests.server.judges.asking import fitting, judge_server, prompts, until

EARLIER = "/project/judge/earlier"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def page(tenant) -> str:
    return f"/p/{tenant.project.project_id}/settings/judge"


def fail(judged, *numbers: int) -> None:
    for number in numbers:
        judged.give(f"exec-{number}", text=f"Take {number} mg.", score=0.1)


def queue(judged) -> list[str]:
    rows = judged.rows(
        "SELECT x.execution_id FROM judge_work w JOIN executions x ON x.pk = w.execution_pk"
        f" WHERE w.project_pk = {judged.pk} ORDER BY x.pk, w.answer_id"
    )
    return [execution_id for (execution_id,) in rows]


def test_what_failed_before_the_judge_was_on_is_judged_once_somebody_says_so(judged):
    fail(judged, 1, 2)
    judged.give("exec-good")
    with judge_server() as server:
        judged.set_judge(server.url, answers="failing")
        judged.judge()
        untold = list(server.asked)
        counted = judged.tenant.read.get(EARLIER).json
        queued = judged.tenant.admin.post(EARLIER).json
        judged.judge()

    assert untold == []
    assert (counted["days"], counted["executions"]) == (7, 2)
    assert counted["fitting"] == queued["queued"] == {"executions": 2, "answers": 2}
    assert [execution for execution, *_ in judged.assessments()] == ["exec-1", "exec-2"]
    assert sum(prompts(server).values()) == 2
    assert judged.tenant.read.get(EARLIER).json["executions"] == 0
    line = judged.tenant.admin.get("/audit-log").json["events"][0]
    assert line["action"] == "judge.earlier_queued"
    assert line["details"] == {"days": 7, "executions": 2, "answers": 2}


def garbled(handler):
    handler.reply(200, answer("Looks fine to me."))


def revisions(judged) -> set[str]:
    rows = judged.rows(
        "SELECT revision FROM assessments"
        f" WHERE project_pk = {judged.pk} AND evaluator = 'faithfulness'"
    )
    return {revision for (revision,) in rows}


@pytest.mark.parametrize("changed", ["model", "url"])
def test_what_one_judge_could_not_judge_is_left_to_the_next(judged, changed):
    fail(judged, 1)
    with judge_server(garbled) as useless, judge_server() as better:
        judged.set_judge(useless.url, answers="failing", model="useless")
        judged.tenant.admin.post(EARLIER)
        judged.judge()
        before, unchanged = judged.outcomes(), judged.tenant.admin.post(EARLIER).json
        of_useless = revisions(judged)
        if changed == "model":
            useless.respond = fitting
            judged.set_judge(useless.url, answers="failing", model="better")
        else:
            judged.set_judge(better.url, answers="failing", model="useless")
        judged.judge()
        untold, counted = judged.outcomes(), judged.tenant.read.get(EARLIER).json
        judged.tenant.admin.post(EARLIER)
        judged.judge()

    assert before == untold == ["invalid"]
    assert unchanged["executions"] == 0
    assert unchanged["queued"] == {"executions": 0, "answers": 0}
    assert counted["executions"] == 1
    assert counted["fitting"] == {"executions": 1, "answers": 1}
    assert judged.outcomes() == ["met"]
    assert revisions(judged).isdisjoint(of_useless)
    assert judged.tenant.read.get(EARLIER).json["executions"] == 0
    assert judged.statuses() == {"response_saved": 2}


def test_a_key_or_budgets_make_no_other_judge_of_one(judged):
    fail(judged, 1)
    with judge_server(garbled) as server:
        judged.set_judge(server.url, answers="failing")
        judged.tenant.admin.post(EARLIER)
        judged.judge()
        judged.set_judge(server.url, key="sk-another-0123456789", answers="all", calls_per_day=5)

    assert judged.tenant.read.get(EARLIER).json["executions"] == 0


def test_a_judge_that_is_set_again_is_not_asked_again(judged):
    fail(judged, 1)
    with judge_server(garbled) as first, judge_server() as second:
        for url in (first.url, second.url, first.url):
            judged.set_judge(url, answers="failing")
            judged.tenant.admin.post(EARLIER)
            judged.judge()

    assert (len(first.asked), len(second.asked)) == (1, 1)
    assert judged.outcomes() == ["invalid"]


def test_what_the_judge_knows_and_what_no_judge_can_know_is_not_sent_again(judged):
    judged.give("exec-1", answer_id="a", score=0.1)
    judged.give("exec-1", answer_id="b", text="Take 50 mg.", score=0.1)
    judged.give("exec-2", context={}, score=0.1)
    with judge_server() as first, judge_server() as second:
        judged.set_judge(first.url, answers="failing")
        judged.tenant.admin.post(EARLIER)
        judged.judge()
        judged.set_judge(second.url, answers="failing")
        judged.run(
            f"UPDATE assessments SET revision = '{judging.revision_of(judged.state())}'"
            f" WHERE project_pk = {judged.pk} AND evaluator = 'faithfulness' AND answer_id = 'b'"
        )
        queued = judged.tenant.admin.post(EARLIER).json

    assert [outcome for *_, outcome in judged.assessments()][-1] == "missing_evidence"
    assert queued["executions"] == 1
    assert queued["queued"] == {"executions": 1, "answers": 1}
    assert queue(judged) == ["exec-1"]


def test_settling_a_call_asks_no_other_judge(judged):
    fail(judged, 1, 2)
    judged.give("exec-2", text="Take 3 mg.", answer_id="b", score=0.1)
    with judge_server(lambda handler: handler.reply(500, b"")) as away, judge_server() as other:
        judged.set_judge(away.url, answers="failing")
        judged.tenant.admin.post(EARLIER)
        until(lambda: judged.judge() or judged.waiting() == 0)
        judged.set_judge(other.url, answers="failing")
        call_id = judged.tenant.read.get("/project/judge").json["unknown"][0]["call_id"]
        content = {"reason": "the log has none"}
        judged.tenant.admin.post(f"/project/judge/calls/{call_id}/settle", content)
        judged.judge()

    assert len(other.asked) == 0
    assert judged.waiting() == 0
    assert set(judged.outcomes()) == {"invalid", "unknown_outcome"}
    assert judged.tenant.read.get(EARLIER).json["executions"] == 2


def test_neither_a_sample_nor_what_waits_already_is_counted(judged):
    fail(judged, 1)
    judged.set_judge(NOWHERE, answers="sample", sample_percent=1)
    fail(judged, 2)
    judged.run(
        f"INSERT INTO judge_work (project_pk, execution_pk, answer_id)"
        f" SELECT project_pk, pk, 'a' FROM executions WHERE project_pk = {judged.pk}"
        f" AND execution_id = 'exec-2' ON CONFLICT DO NOTHING"
    )

    assert judged.tenant.admin.post(EARLIER).json["queued"] == {"executions": 1, "answers": 1}
    assert queue(judged) == ["exec-1", "exec-2"]
    assert judged.tenant.admin.post(EARLIER).json["queued"] == {"executions": 0, "answers": 0}


def test_only_the_wanted_days_are_gone_back(judged):
    fail(judged, 1, 2)
    judged.run(
        "UPDATE occurrences SET occurred_at = now() - interval '8 days' WHERE execution_pk ="
        f" (SELECT pk FROM executions WHERE project_pk = {judged.pk} AND execution_id = 'exec-1')"
    )
    judged.set_judge(NOWHERE, answers="failing")

    assert judged.tenant.read.get(EARLIER).json["executions"] == 1
    assert judged.tenant.read.get(f"{EARLIER}?days=9").json["executions"] == 2
    judged.tenant.admin.post(EARLIER, {"days": 7})
    assert queue(judged) == ["exec-2"]


def test_the_newest_come_first_and_whole_as_far_as_there_is_room(judged, monkeypatch):
    fail(judged, 1, 2)
    judged.give("exec-2", answer_id="b", score=0.1)
    judged.give("exec-3", answer_id="a", score=0.1)
    judged.set_judge(NOWHERE, answers="failing")
    monkeypatch.setattr(judge_work, "MAX_WAITING", 2)

    counted = judged.tenant.read.get(EARLIER).json
    judged.tenant.admin.post(EARLIER)

    assert counted["executions"] == 3
    assert counted["fitting"] == {"executions": 1, "answers": 1}
    assert queue(judged) == ["exec-3"]


def test_a_judge_that_is_off_is_sent_nothing(judged):
    fail(judged, 1)
    assert judged.tenant.admin.post(EARLIER).status_code == 409
    judged.set_judge(NOWHERE, is_on=False)

    refused = judged.tenant.admin.post(EARLIER)

    assert refused.status_code == 409
    assert "the judge is off" in refused.json["error"]
    assert queue(judged) == []


@pytest.mark.parametrize("days", [0, 91, "7", 1.5, True, None])
def test_days_are_a_number_from_1_to_90(judged, days):
    judged.set_judge(NOWHERE)

    refused = judged.tenant.admin.post(EARLIER, {"days": days})

    assert refused.status_code == 400
    assert "days: " in refused.json["error"]


def test_only_admins_send_earlier_answers_and_only_those_of_the_project(judged, make_tenant):
    fail(judged, 1)
    judged.set_judge(NOWHERE, answers="failing")

    assert judged.tenant.read.post(EARLIER).status_code == 403
    assert judged.tenant.ingest.get(EARLIER).status_code == 403
    assert make_tenant().read.get(EARLIER).json["executions"] == 0


def test_the_page_says_how_many_it_would_send_before_it_does(judged, staff, page):
    fail(judged, 1, 2)
    judged.set_judge(NOWHERE, answers="failing", calls_per_day=10)
    admin = staff.browser("admin")

    before = admin.open(page)
    counted = admin.open(f"{page}?days=7")
    waiting = judged.waiting()
    queued = admin.send(counted.form_with("Have 2 answers judged"), "Have 2 answers judged")
    again = admin.open(f"{page}?days=7")

    assert before.has_button("Count them")
    assert (
        "7 days the judge as it is set now does not know 2 failing executions with" in counted.text
    )
    assert "They have 2 answers. Today's budget has 10 calls left" in counted.text
    assert waiting == 0
    assert "Queued." in queued.text
    assert "Answers that wait 2 of at most 1000" in queued.text
    assert "does not know 0 failing executions" in again.text
    assert "Failing executions of the last days: " in admin.open(f"{page}?days=0").text


def test_others_and_projects_whose_judge_is_off_have_no_such_form(judged, staff, page):
    judged.set_judge(NOWHERE)
    assert not staff.browser("member").open(page).has_button("Count them")

    judged.set_judge(NOWHERE, is_on=False)
    assert not staff.browser("admin").open(page).has_button("Count them")
