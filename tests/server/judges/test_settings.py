"""Setting a project's judge by API and page: who may, what is kept, what is refused, what is never shown."""

import json
import logging
from dataclasses import replace

import pytest

from evaluators.adapters import errors
from evaluators.errors import FactoryError
from evaluators.ledger import ABANDONED
from mesedi_server import judges, runtime
from mesedi_server.pages.judge import LABELS
from mesedi_server.schemas import judges as schema
from mesedi_server.sealing import NoSecretKeyError, WrongSecretKeyError
from tests.evaluators.chat_server import answer
from tests.evaluators.judge import verdict
from tests.server.judges.asking import KEY, RULES, fitting, judge_server, saying, until

URL = "https://judge.example.com/v1"
WANTED = {"url": URL, "model": "judge-1", "is_on": True, "key": KEY}


@pytest.fixture
def server_settings(app):
    """Change the settings of the server for one test."""
    with app.app_context():
        state = runtime.runtime()
    before = state.settings

    def change(**changes):
        state.settings = replace(before, **changes)

    yield change
    state.settings = before


@pytest.fixture
def page(tenant) -> str:
    return f"/p/{tenant.project.project_id}/settings/judge"


def stored(judged) -> str:
    """Everything in the database that a key could have got into."""
    tables = ("judge_settings", "judge_calls", "audit_log", "assessments", "events")
    return str([judged.rows(f"SELECT t::text FROM {table} t") for table in tables])


def test_a_project_begins_without_a_judge(tenant):
    shown = tenant.read.get("/project/judge").json

    assert shown["judge"] is None
    assert set(shown["spent"].values()) == {0}
    assert (shown["waiting"], shown["unknown_count"]) == (0, 0)


def test_a_judge_is_set_with_usual_limits_and_audited_without_its_key(judged):
    shown = judged.tenant.admin.put("/project/judge", WANTED).json["judge"]

    assert shown["answers"] == "failing"
    assert (shown["calls_per_day"], shown["calls_per_month"]) == (100, 1000)
    assert (shown["has_key"], shown["key_hint"]) == (True, KEY[-4:])
    event = judged.tenant.admin.get("/audit-log").json["events"][0]
    assert event["action"] == "judge.changed"
    assert event["details"]["key"] == "set"
    assert KEY not in stored(judged)
    assert KEY[-4:] not in str(event)


def test_the_key_is_shown_to_nobody_and_its_end_to_admins_alone(judged):
    judged.tenant.admin.put("/project/judge", WANTED)

    for caller in (judged.tenant.admin, judged.tenant.read):
        assert KEY not in caller.get("/project/judge").get_data(as_text=True)
    assert "key_hint" not in judged.tenant.read.get("/project/judge").json["judge"]


def test_only_admins_set_and_settle(judged):
    for caller in (judged.tenant.ingest, judged.tenant.read):
        assert caller.put("/project/judge", WANTED).status_code == 403
        settled = caller.post("/project/judge/calls/call-1/settle", {"reason": "r"})
        assert settled.status_code == 403
    assert judged.tenant.ingest.get("/project/judge").status_code == 403
    assert judged.state() is None


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_others_see_how_it_is_doing_and_no_form(judged, staff, page, role):
    judged.tenant.admin.put("/project/judge", WANTED)
    browser = staff.browser(role)

    shown = browser.open(page)

    assert "Calls today 0 of 100" in shown.text
    assert URL not in shown.html
    assert not shown.has_button("Save")
    token = browser.open(page).forms[0].fields[0][1]
    assert browser.call("POST", page, data={"csrf_token": token}).status_code == 403


def test_the_key_stays_unless_another_is_given_or_it_is_removed(judged):
    put = judged.tenant.admin.put
    put("/project/judge", WANTED)
    without = {name: value for name, value in WANTED.items() if name != "key"}

    assert put("/project/judge", without | {"model": "judge-2"}).json["judge"]["has_key"]
    assert (
        put("/project/judge", WANTED | {"key": "k" * 12 + "wxyz"}).json["judge"]["key_hint"]
        == "wxyz"
    )
    assert not put("/project/judge", WANTED | {"key": None}).json["judge"]["has_key"]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e400"])
def test_what_is_no_number_takes_no_key_away(judged, value):
    judged.tenant.admin.put("/project/judge", WANTED)
    body = f'{{"url": "{URL}", "model": "judge-1", "key": {value}}}'

    refused = judged.tenant.admin.put("/project/judge", body.encode())

    assert refused.status_code == 400
    assert refused.json["error"].startswith("key: ")
    assert judged.state().key_hint == KEY[-4:]


def test_a_short_key_shows_nothing_of_itself(judged):
    shown = judged.tenant.admin.put("/project/judge", WANTED | {"key": "ollama"}).json["judge"]

    assert (shown["has_key"], shown["key_hint"]) == (True, "")


def test_a_key_is_not_taken_along_to_another_address(judged):
    put = judged.tenant.admin.put
    put("/project/judge", WANTED)
    moved = {"url": "https://elsewhere.example.com/v1", "model": "judge-1", "is_on": True}

    refused = put("/project/judge", moved)

    assert refused.status_code == 400
    assert "enter the key for it" in refused.json["error"]
    assert judged.state().url == URL
    assert put("/project/judge", moved | {"key": None}).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"url": ""}, {"url": "judge.example.com"}, {"url": "ftp://judge.example.com"},
        {"url": "https://user:pw@judge.example.com"}, {"url": "https://judge.example.com?key=1"},
        {"url": "https://judge.example.com/a b"}, {"url": "https://[::1"}, {"url": 7}, {"model": " "},
        {"model": "a\nb"}, {"is_on": "yes"}, {"key": ""}, {"key": "a b"}, {"key": "ключ"},
        {"key": "a\n"}, {"calls_per_day": -1}, {"calls_per_day": 10_001}, {"calls_per_day": "7"},
        {"calls_per_month": None}, {"concurrency": 0}, {"concurrency": 9}, {"answers": "some"},
        {"answers": "sample", "sample_percent": 0}, {"sample_percent": 101},
        {"min_correctness": 11}, {"min_correctness": True}, {"unknown": 1}, {"is_on": 1}, {"is_on": 0.0},
        {"is_on": None}, {"url": "https://judge\x00.example.com"}, {"model": "a\x00b"}, {"model": "a\ud800"},
    ],
)  # fmt: skip
def test_what_makes_no_judge_is_refused_and_the_key_is_not_repeated(judged, changes):
    refused = judged.tenant.admin.put("/project/judge", WANTED | changes)

    assert refused.status_code == 400
    assert any(f"{name}: " in refused.json["error"] for name in changes)
    assert KEY not in refused.get_data(as_text=True)
    assert judged.state() is None


@pytest.mark.parametrize(
    "url",
    [
        "https://localhost/v1", "https://LOCALHOST./v1", "https://a.localhost/v1", "https://127.0.0.1/v1",
        "https://127.1/v1", "https://2130706433/v1", "https://0x7f000001/v1", "https://[::1]/v1",
        "https://10.1.2.3/v1", "https://169.254.169.254/v1", "https://[::ffff:10.0.0.1]/v1",
        "http://judge.example.com/v1",
    ],
)  # fmt: skip
def test_private_and_clear_addresses_are_the_operators_to_allow(judged, server_settings, url):
    server_settings(private_judges=False)
    assert judged.tenant.admin.put("/project/judge", WANTED | {"url": url}).status_code == 400

    server_settings(private_judges=True)
    assert judged.tenant.admin.put("/project/judge", WANTED | {"url": url}).status_code == 200


def test_without_a_secret_key_the_form_says_what_to_do(judged, staff, page, server_settings):
    server_settings(secret_key="")
    refused = judged.tenant.admin.put("/project/judge", WANTED)

    assert refused.status_code == 400
    assert "MESEDI_SECRET_KEY" in refused.json["error"]
    assert "openssl rand -base64 32" in staff.browser("admin").open(page).text
    assert judged.tenant.admin.put("/project/judge", WANTED | {"key": None}).status_code == 200


def test_the_form_sets_the_judge_and_gives_no_key_back(judged, staff, page):
    admin = staff.browser("admin")
    form = admin.open(page).form_with("Save")

    saved = admin.send(
        form, "Save", url=URL, model="judge-1", key=KEY, is_on="1", calls_per_day="7"
    )
    faulty = admin.send(
        saved.form_with("Save"), "Save", url="https://other.example.com", key="", model="judge-9"
    )

    assert "Saved." in saved.text
    assert f"ends in {KEY[-4:]}" in saved.text
    assert "Calls today 0 of 7" in saved.text
    assert "enter the key for it" in faulty.text
    assert "https://other.example.com" in faulty.html
    assert KEY not in saved.html + faulty.html
    assert (judged.state().url, judged.state().calls_per_day) == (URL, 7)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "http://judge.example.com/v1"}, "Address: https, please: answers and key must"),
        ({"url": "judge.example.com"}, "Address: the address"),
        (
            {"cost_per_day": "1"},
            "Cost of a call, at most: needed, since there is a budget in money.",
        ),
        ({"calls_per_day": "-1"}, "Calls a day, at most: "),
        ({"answers": "sample", "sample_percent": "0"}, "Percent of a sample: from 1 to 100."),
    ],
)
def test_a_refused_form_names_its_fields_as_it_shows_them(
    judged, staff, page, server_settings, changes, words
):
    server_settings(private_judges=False)
    admin = staff.browser("admin")
    wanted = {"url": URL, "model": "judge-1", "key": KEY} | changes

    refused = admin.send(admin.open(page).form_with("Save"), "Save", **wanted)

    assert f"Not saved: {words}" in refused.text
    assert "The key is not kept from one try to the next: enter it again." in refused.text
    assert ".." not in refused.text
    assert not any(f"{name}:" in refused.text for name in schema.SETTINGS.fields)
    assert KEY not in refused.html


def test_a_refused_form_without_a_key_speaks_of_none(judged, staff, page):
    judged.set_judge(URL)
    admin = staff.browser("admin")
    wanted = {"calls_per_day": "-1", "remove_key": "1"}

    refused = admin.send(admin.open(page).form_with("Save"), "Save", **wanted)

    assert "Not saved: Calls a day, at most: " in refused.text
    assert "from one try to the next" not in refused.text
    assert 'name="remove_key" value="1" checked' in refused.html


def test_every_field_of_the_judges_forms_has_a_label():
    schemas = (schema.SETTINGS, schema.SETTLEMENT, schema.EARLIER)

    assert set(LABELS) == {name for one in schemas for name in one.fields}


def test_another_project_sees_nothing(judged, make_tenant):
    with judge_server() as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
    call_id = judged.rows(f"SELECT call_id FROM judge_calls WHERE project_pk = {judged.pk}")[0][0]
    other = make_tenant()

    assert other.read.get("/project/judge").json["judge"] is None
    assert other.read.get(f"/project/judge/calls/{call_id}").status_code == 404
    settled = other.admin.post(f"/project/judge/calls/{call_id}/settle", {"reason": "r"})
    assert settled.status_code == 404
    shown = judged.tenant.read.get(f"/project/judge/calls/{call_id}").json["call"]
    assert shown["status"] == "response_saved"
    assert "Take 5 mg." in shown["request"]["prompt"]


def lose_a_reply(judged) -> tuple[str, str]:
    """Let a call get lost; return its id and what was asked."""
    with judge_server(lambda handler: handler.reply(500, b"")) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()
    call = judged.tenant.read.get("/project/judge").json["unknown"][0]
    shown = judged.tenant.read.get(f"/project/judge/calls/{call['call_id']}").json["call"]
    assert call["exception_type"] == "EndpointFailedError"
    return call["call_id"], shown["request"]["prompt"]


def test_a_lost_reply_is_settled_and_read(judged):
    call_id, prompt = lose_a_reply(judged)
    settlement = {"reply": verdict(json.loads(prompt)), "reason": "found in the provider's log"}

    settled = judged.tenant.admin.post(f"/project/judge/calls/{call_id}/settle", settlement)
    judged.set_judge("http://127.0.0.1:9/v1", is_on=False)
    judged.judge()

    assert settled.json["call"]["settlement"]["reason"] == "found in the provider's log"
    assert judged.outcomes() == ["met"]
    assert len(judged.scores()) == 2
    again = judged.tenant.admin.post(f"/project/judge/calls/{call_id}/settle", settlement)
    assert again.status_code == 409
    assert judged.tenant.admin.get("/audit-log").json["events"][1]["action"] == "judge.call_settled"


def test_a_reply_that_is_no_number_settles_nothing(judged):
    call_id, _ = lose_a_reply(judged)
    body = b'{"reply": NaN, "reason": "the log"}'

    refused = judged.tenant.admin.post(f"/project/judge/calls/{call_id}/settle", body)

    assert refused.status_code == 400
    assert refused.json["error"].startswith("reply: ")
    assert judged.statuses() == {"unknown_outcome": 1}


def test_a_call_without_a_reply_is_settled_on_the_page(judged, staff, page):
    call_id, _ = lose_a_reply(judged)
    admin = staff.browser("admin")
    button = f"Settle {call_id} for good"

    blank = admin.send(admin.open(page).form_with(button), button, reason=" ")
    settled = admin.send(admin.open(page).form_with(button), button, reason="the log has none")
    judged.judge()

    assert "must not be blank" in blank.text
    assert "Settled." in settled.text
    assert judged.outcomes() == ["invalid"]
    assert not admin.open(page).has_button(button)


def test_a_reply_can_be_as_long_as_a_judge_may_make_it_and_no_longer(judged):
    call_id, prompt = lose_a_reply(judged)
    short = verdict(json.loads(prompt), reasoning="")
    reply = verdict(json.loads(prompt), reasoning="x" * (1_000_000 - len(short)))
    settle = f"/project/judge/calls/{call_id}/settle"

    refused = judged.tenant.admin.post(settle, {"reply": reply + " ", "reason": "the log"})
    settled = judged.tenant.admin.post(settle, {"reply": reply, "reason": "the log"})

    assert (refused.status_code, settled.status_code) == (400, 200)
    assert "reply: 1000000 bytes at most" in refused.json["error"]
    assert settled.json["call"]["reply"]["text"] == reply


def test_a_long_reply_is_settled_on_the_page(judged, staff, page):
    call_id, prompt = lose_a_reply(judged)
    admin = staff.browser("admin")
    button = f"Settle {call_id} for good"
    reply = verdict(json.loads(prompt), reasoning='"' * 450_000)

    settled = admin.send(admin.open(page).form_with(button), button, reply=reply, reason="the log")
    judged.judge()

    assert "Settled." in settled.text
    assert judged.statuses() == {"response_saved": 1}


def test_an_empty_reply_is_a_reply(judged, staff, page):
    call_id, _ = lose_a_reply(judged)
    admin = staff.browser("admin")
    button = f"Settle {call_id} for good"
    form = admin.open(page).form_with(button)

    admin.send(form, button, is_empty="1", reason="the log says so")
    judged.judge()

    assert judged.statuses() == {"response_saved": 1}
    assert judged.outcomes() == ["invalid"]
    assert (
        judged.tenant.read.get(f"/project/judge/calls/{call_id}").json["call"]["reply"]["text"]
        == ""
    )


def test_the_page_tells_since_when_a_judge_is_away(judged, staff, page):
    judged.set_judge("http://127.0.0.1:9/v1")
    judged.give()
    judged.judge()

    text = staff.browser("viewer").open(page).text

    assert "The judge could not be reached or used since" in text
    assert "no connection could be made; nothing was sent. Answers wait; it is tried again" in text
    assert "Error" not in text
    assert "Answers that wait 1 of at most 1000" in text


def test_the_page_tells_what_happened_last_and_forgets_it_once_a_call_works(judged, staff, page):
    replies = iter([(503, b""), (429, b"")])

    def respond(handler):
        status, body = next(replies, (200, None))
        fitting(handler) if body is None else handler.reply(status, body)

    viewer = staff.browser("viewer")
    with judge_server(respond) as server:
        judged.set_judge(server.url)
        judged.give("exec/1", text="Take 1 mg.", answer_id="the first")
        judged.judge()
        away = viewer.open(page)
        shown = judged.tenant.read.get("/project/judge").json
        judged.give("exec-2", text="Take 2 mg.")
        until(lambda: judged.judge() or judged.waiting() == 0)
        limited = viewer.open(page)
        judged.give("exec-3", text="Take 3 mg.")
        until(lambda: judged.judge() or judged.waiting() == 0)
        works = viewer.open(page)

    assert "the endpoint failed (HTTP status 503). No answer waits; it is tried again" in away.text
    assert "Last reply none" in away.text
    assert (
        "the endpoint wants fewer calls, or its quota is used up (HTTP status 429)" in limited.text
    )
    assert shown["judge"]["last_error_status"] == 503
    assert shown["judge"]["last_error_in_words"] == "the endpoint failed (HTTP status 503)"
    assert "could not be reached" not in works.text
    assert "(HTTP status 429) Last reply" in works.text
    assert "Last reply none" not in works.text
    assert works.links["exec/1"].endswith("/executions/exec/1#answers")
    assert "exec/1, answer the first the endpoint failed (HTTP status 503)" in works.text
    [call] = shown["unknown"]
    assert (call["execution_id"], call["answer_id"], call["http_status"]) == (
        "exec/1",
        "the first",
        503,
    )


def fitting_but_for(useless):
    """Answer with a verdict, but for answers that have one of these texts: with words that are none."""

    def respond(handler):
        prompt = handler.asked["messages"][1]["content"]
        is_useless = any(text in prompt for text in useless)
        handler.reply(200, answer("Fine by me.")) if is_useless else fitting(handler)

    return respond


def test_the_page_warns_when_most_replies_are_no_verdict(judged, staff, page):
    with judge_server(fitting_but_for(["Take 1", "Take 2"])) as server:
        judged.set_judge(server.url)
        for number in (1, 2, 3):
            judged.give(f"exec-{number}", text=f"Take {number} mg.")
        judged.judge()
        mostly, told = (
            staff.browser("viewer").open(page).text,
            judged.tenant.read.get("/project/judge"),
        )
        judged.give("exec-4", text="Take 4 mg.")
        judged.judge()
        half = staff.browser("viewer").open(page).text
        judged.set_judge(server.url, model="another")
        other = staff.browser("viewer").open(page).text

    assert "2 of the last 3 replies were no verdict. The newest: " in mostly
    assert "is not one JSON object and nothing else" in mostly
    assert told.json["replies"]["count"] == 3
    assert told.json["replies"]["without_verdict"] == 2
    assert "JSON" in told.json["replies"]["last_reason"]
    assert "replies were no verdict" not in half
    assert "Replies of 24 hours that were no verdict 2 of 4" in half
    assert "Replies of 24 hours that were no verdict 0 of 0" in other


def test_an_answer_says_why_its_verdict_cannot_be_used(judged, staff):
    with judge_server(saying(correctness=11)) as server:
        judged.set_judge(server.url)
        judged.give()
        judged.judge()

    address = f"/p/{judged.tenant.project.project_id}/executions/exec-1"
    text = staff.browser("viewer").open(address).text

    assert (
        "Faithfulness could not be assessed: the verdict cannot be used: correctness must be an"
        in text
    )


def test_only_replies_of_the_judge_and_of_the_last_day_are_counted(judged):
    def respond(handler):
        is_lost = "Take 3" in handler.asked["messages"][1]["content"]
        handler.reply(500, b"") if is_lost else handler.reply(200, answer("Fine by me."))

    with judge_server(respond) as server:
        judged.set_judge(server.url)
        for number in (1, 2, 3):
            judged.give(f"exec-{number}", text=f"Take {number} mg.")
        judged.give("exec-4", context={})
        until(lambda: judged.judge() or judged.waiting() == 0)
    judged.run(
        "UPDATE judge_calls SET started_at = now() - interval '25 hours'"
        f" WHERE project_pk = {judged.pk} AND execution_id = 'exec-1'"
    )
    call = judged.tenant.read.get("/project/judge").json["unknown"][0]
    content = {"reason": "its log", "reply": "Fine by me, too."}
    judged.tenant.admin.post(f"/project/judge/calls/{call['call_id']}/settle", content)
    judged.judge()

    assert judged.outcomes() == ["invalid", "invalid", "invalid", "missing_evidence"]
    replies = judged.tenant.read.get("/project/judge").json["replies"]
    assert (replies["count"], replies["without_verdict"]) == (1, 1)


def test_a_judge_that_has_said_nothing_is_not_warned_of(judged, staff, page):
    judged.set_judge(URL)

    assert "no verdict." not in staff.browser("viewer").open(page).text
    assert judged.tenant.read.get("/project/judge").json["replies"] == {
        "count": 0,
        "without_verdict": 0,
        "last_reason": None,
    }


def test_every_failure_of_a_judge_has_words():
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    names = {each.__name__ for each in classes} - {"JudgeCallError"}
    others = {FactoryError, NoSecretKeyError, WrongSecretKeyError}

    for name in {*names, *(each.__name__ for each in others), ABANDONED}:
        assert name not in judges.in_words(name, None)
    assert "ZeroDivisionError" in judges.in_words("ZeroDivisionError", None)


def test_the_page_tells_that_the_budget_is_used_up(judged, staff, page):
    with judge_server() as server:
        judged.set_judge(server.url, calls_per_day=1)
        judged.give("exec-1", text="Take 1 mg.")
        judged.give("exec-2", text="Take 2 mg.")
        judged.judge()

    text = staff.browser("viewer").open(page).text

    assert "today's budget is used up" in text
    assert "Calls today 1 of 1" in text
    assert judged.tenant.read.get("/project/judge").json["not_asking_because"] == "day"


def test_no_log_shows_a_key_or_an_answer(judged, caplog):
    caplog.set_level(logging.DEBUG)
    replies = iter([b"<html>", KEY.encode(), answer("no verdict"), answer("\ud800")])

    def respond(handler):
        reply = next(replies, None)
        handler.reply(200, reply) if reply else fitting(handler)

    with judge_server(respond) as server:
        judged.set_judge(server.url)
        for number in range(6):
            judged.give(f"exec-{number}", text=f"Take {number} mg of a secret.")
        until(lambda: judged.judge() or judged.waiting() == 0)
        judged.judge(replace(RULES, secret_key="x" * 32))

    assert KEY not in caplog.text
    assert "of a secret" not in caplog.text
