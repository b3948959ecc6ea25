"""Budgets in money: what a call may cost is reserved before it is sent, and no day and no month goes beyond."""

from collections import Counter

import pytest

from evaluators.ledger import RESPONSE_SAVED, Outcome
from mesedi_server import judging
from mesedi_server.store import judge_calls, judge_settings
from tests.server.judges.asking import RULES, in_background, judge_server, until

URL = "https://judge.example.com/v1"
WANTED = {"url": URL, "model": "judge-1", "is_on": True}
CALL = 100_000
"""Micros of a call in these tests: 0.1, which no float holds."""


@pytest.fixture
def page(tenant) -> str:
    return f"/p/{tenant.project.project_id}/settings/judge"


@pytest.fixture
def server():
    with judge_server() as server:
        yield server


def give(judged, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        judged.give(f"exec-{number}", text=f"Take {number} mg.")


def limit(judged, server, *, call=CALL, day=None, month=None, **settings) -> None:
    judged.set_judge(
        server.url,
        cost_per_call_micros=call,
        cost_per_day_micros=day,
        cost_per_month_micros=month,
        **settings,
    )


def reason(judged) -> str | None:
    return judged.tenant.read.get("/project/judge").json["not_asking_because"]


def spent(judged) -> tuple[float, float]:
    shown = judged.tenant.read.get("/project/judge").json["spent"]
    return shown["cost_today"], shown["cost_this_month"]


def costs(judged) -> list[tuple]:
    return judged.rows(
        "SELECT reserved_cost_micros, actual_cost_micros FROM judge_calls"
        f" WHERE project_pk = {judged.pk} ORDER BY pk"
    )


@pytest.mark.parametrize("period", ["day", "month"])
@pytest.mark.parametrize(("budget", "calls"), [(3 * CALL, 3), (3 * CALL - 1, 2), (3 * CALL + 1, 3)])
def test_calls_are_made_until_the_next_could_lead_beyond_the_budget(
    judged, server, period, budget, calls
):
    limit(judged, server, **{period: budget})
    give(judged, 5)
    judged.judge()

    assert len(server.asked) == calls
    assert judged.waiting() == 5 - calls
    assert judged.outcomes() == ["met"] * calls
    assert costs(judged) == [(CALL, None)] * calls
    assert reason(judged) == f"cost_per_{period}"
    assert spent(judged) == (calls / 10, calls / 10)


@pytest.mark.parametrize(
    ("budgets", "calls", "name"),
    [
        ({"day": 2 * CALL, "month": 3 * CALL}, 2, "cost_per_day"),
        ({"day": 3 * CALL, "month": 2 * CALL}, 2, "cost_per_month"),
        ({"day": 2 * CALL, "month": 2 * CALL}, 2, "cost_per_month"),
        ({"day": 2 * CALL, "calls_per_day": 1}, 1, "day"),
        ({"month": 2 * CALL, "calls_per_month": 1}, 1, "month"),
        ({"day": CALL, "calls_per_day": 2}, 1, "cost_per_day"),
    ],
)
def test_each_budget_holds_beside_the_others_and_the_one_that_stops_is_named(
    judged, server, budgets, calls, name
):
    limit(judged, server, **budgets)
    give(judged, 4)
    judged.judge()

    assert len(server.asked) == calls
    assert reason(judged) == name


def test_the_costs_of_a_day_and_of_a_month_end_in_the_zone_of_the_project(judged, server):
    zone = "Pacific/Kiritimati"
    judged.run(f"UPDATE projects SET time_zone = '{zone}' WHERE pk = {judged.pk}")
    begin = f"date_trunc('month', now() AT TIME ZONE '{zone}') AT TIME ZONE '{zone}'"
    move = f"UPDATE judge_calls SET started_at = {begin} {{}} WHERE project_pk = {judged.pk}"
    limit(judged, server, month=CALL)
    give(judged, 2)
    judged.judge()

    judged.run(move.format(""))
    judged.judge()
    assert len(server.asked) == 1
    assert spent(judged)[1] == 0.1

    judged.run(move.format("- interval '1 second'"))
    assert spent(judged) == (0, 0)
    judged.judge()
    assert len(server.asked) == 2


def test_yesterdays_costs_are_none_of_today(judged, server):
    limit(judged, server, day=CALL)
    give(judged, 2)
    judged.judge()
    judged.run("UPDATE judge_calls SET started_at = started_at - interval '1 day'")
    judged.judge()

    assert len(server.asked) == 2
    assert spent(judged)[0] == 0.1


def test_of_two_reservations_at_once_only_one_gets_the_last_of_the_budget(judged, server):
    limit(judged, server, day=3 * CALL - 1, concurrency=8)
    give(judged, 3)
    assert isinstance(judging._ask_next(judged.database, RULES, judged.pk), judging.Dispatch)
    steps = []

    def reserve():
        steps.append(judging._ask_next(judged.database, RULES, judged.pk))

    with judged.database.transaction() as connection:
        judge_settings.locked(connection, judged.pk)
        processes = [in_background(reserve) for _ in range(2)]
        until(lambda: lock_waits(judged) == 2)
    for process in processes:
        process.join()

    assert Counter(type(step) for step in steps) == {judging.Dispatch: 1, bool: 1}
    assert costs(judged) == [(CALL, None)] * 2


def lock_waits(judged) -> int:
    waits = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return judged.rows(waits)[0][0]


def test_two_processes_together_keep_to_a_budget(judged, server):
    limit(judged, server, day=5 * CALL, concurrency=8)
    give(judged, 9)
    processes = [in_background(judged.judge) for _ in range(2)]
    for process in processes:
        process.join()
    judged.judge()

    assert len(server.asked) == 5
    assert judged.waiting() == 4


def test_a_call_of_unknown_outcome_stays_charged(judged):
    with judge_server(lambda handler: handler.reply(500, b"")) as server:
        limit(judged, server, day=2 * CALL - 1)
        give(judged, 2)
        judged.judge()

    assert judged.statuses() == {"unknown_outcome": 1}
    assert spent(judged) == (0.1, 0.1)
    assert reason(judged) == "cost_per_day"


def test_a_settled_call_stays_charged(judged):
    with judge_server(lambda handler: handler.reply(500, b"")) as server:
        limit(judged, server, day=CALL)
        give(judged, 1)
        judged.judge()
    call = judged.tenant.read.get("/project/judge").json["unknown"][0]["call_id"]
    judged.tenant.admin.post(f"/project/judge/calls/{call}/settle", {"reason": "the log has none"})

    assert spent(judged) == (0.1, 0.1)


def test_a_call_that_could_not_be_sent_costs_nothing(judged):
    with judge_server() as server:
        pass
    limit(judged, server, day=CALL)
    give(judged, 1)
    judged.judge()

    assert judged.state().last_error == "NotConnectedError"
    assert spent(judged) == (0, 0)


def test_a_call_is_charged_what_it_cost_once_that_is_known(judged, server):
    limit(judged, server, day=2 * CALL - 1)
    give(judged, 2)
    dispatch = judging._ask_next(judged.database, RULES, judged.pk)
    assert reason(judged) == "cost_per_day"

    with judged.database.transaction() as connection:
        outcome = Outcome(RESPONSE_SAVED, actual_cost_micros=CALL - 1)
        assert judge_calls.finish(connection, dispatch.call_id, outcome)

    assert spent(judged)[0] == 0.099999
    assert isinstance(judging._ask_next(judged.database, RULES, judged.pk), judging.Dispatch)
    assert spent(judged)[0] == 0.199999


def test_a_changed_budget_holds_from_the_next_call_on(judged, server):
    limit(judged, server, day=2 * CALL)
    give(judged, 6)
    judged.judge()
    limit(judged, server, day=CALL)
    judged.judge()
    assert (len(server.asked), reason(judged)) == (2, "cost_per_day")

    limit(judged, server, call=2 * CALL, day=5 * CALL)
    judged.judge()
    assert costs(judged) == [(CALL, None), (CALL, None), (2 * CALL, None)]
    assert spent(judged)[0] == 0.4

    limit(judged, server, call=None)
    judged.judge()
    assert (len(server.asked), judged.waiting(), reason(judged)) == (6, 0, None)
    assert spent(judged)[0] == 0.4


def test_calls_from_before_a_cost_was_declared_are_counted_apart(judged, staff, page, server):
    judged.set_judge(server.url)
    give(judged, 2)
    judged.judge()
    limit(judged, server, month=CALL)
    give(judged, 2, first=2)
    judged.judge()

    assert len(server.asked) == 3
    assert judged.tenant.read.get("/project/judge").json["spent"]["without_cost_this_month"] == 2
    text = staff.browser("viewer").open(page).text
    assert (
        "Spent this month at most 0.1 of 0.1, without 2 calls from before a cost was declared"
        in text
    )


def test_the_api_takes_and_gives_decimal_numbers(judged):
    budgets = {"cost_per_call": 0.000001, "cost_per_day": 0.3, "cost_per_month": 1_000_000}

    shown = judged.tenant.admin.put("/project/judge", WANTED | budgets)

    assert {name: shown.json["judge"][name] for name in budgets} == budgets
    assert '"cost_per_call":0.000001,"cost_per_day":0.3,' in shown.get_data(as_text=True)
    state = judged.state()
    assert (state.cost_per_call_micros, state.cost_per_day_micros) == (1, 300_000)
    assert state.cost_per_month_micros == 10**12
    details = judged.tenant.admin.get("/audit-log").json["events"][0]["details"]
    assert details["cost_per_day_micros"] == 300_000


def test_without_a_cost_there_is_no_budget_in_money(judged):
    budgets = {"cost_per_call": 0.5, "cost_per_day": 0.5}
    judged.tenant.admin.put("/project/judge", WANTED | budgets)

    shown = judged.tenant.admin.put("/project/judge", WANTED).json["judge"]

    assert [shown[name] for name in ("cost_per_call", "cost_per_day", "cost_per_month")] == [
        None
    ] * 3


@pytest.mark.parametrize("name", ["cost_per_call", "cost_per_day", "cost_per_month"])
@pytest.mark.parametrize(
    "value",
    ["0", "-1", "-0.0", "1e-7", "0.0000015", "0.1234567", "1000000.000001", "1e400", "-1e400", "NaN",
     "9" * 5000, "true", '"0.5"', '""', "[]", "{}"],
)  # fmt: skip
def test_what_is_no_amount_is_refused_by_its_name(judged, name, value):
    body = f'{{"url": "{URL}", "model": "judge-1", "{name}": {value}}}'

    refused = judged.tenant.admin.put("/project/judge", body.encode())

    assert refused.status_code == 400
    assert refused.json["error"].startswith(f"{name}: ")
    assert judged.state() is None


@pytest.mark.parametrize("name", ["cost_per_day", "cost_per_month"])
@pytest.mark.parametrize(
    ("cost", "budget", "words"),
    [
        ({}, 1, "cost_per_call: needed, since there is a budget in money."),
        ({"cost_per_call": None}, 1, "cost_per_call: needed, since there is a budget in money."),
        ({"cost_per_call": 0.5}, 0.499999, "{name}: less than the 0.5 that one call can cost"),
    ],
)
def test_a_budget_needs_a_cost_that_fits_it(judged, name, cost, budget, words):
    refused = judged.tenant.admin.put("/project/judge", WANTED | cost | {name: budget})

    assert refused.status_code == 400
    assert refused.json["error"].startswith(words.format(name=name))
    assert judged.state() is None
    fitting = {"cost_per_call": 0.5, name: 0.5}
    assert judged.tenant.admin.put("/project/judge", WANTED | fitting).status_code == 200


def test_the_form_sets_budgets_shows_them_and_takes_them_away(judged, staff, page):
    admin = staff.browser("admin")
    form = admin.open(page).form_with("Save")
    budgets = {"cost_per_call": "0.02", "cost_per_day": ".5", "cost_per_month": "1e1"}

    saved = admin.send(form, "Save", url=URL, model="judge-1", is_on="1", **budgets)

    state = judged.state()
    assert (state.cost_per_call_micros, state.cost_per_day_micros) == (20_000, 500_000)
    assert state.cost_per_month_micros == 10_000_000
    assert "Spent today at most 0 of 0.5 Spent this month at most 0 of 10 Under way" in saved.text
    again = saved.form_with("Save")
    shown = dict(again.filled("Save", {}))
    assert [shown[name] for name in budgets] == ["0.02", "0.5", "10"]

    without = admin.send(again, "Save", cost_per_day="", cost_per_month=" ")
    assert "Spent today at most 0; no budget in money" in without.text
    none = admin.send(without.form_with("Save"), "Save", cost_per_call="")
    assert "Spent today" not in none.text
    assert judged.state().cost_per_call_micros is None


@pytest.mark.parametrize(
    "text",
    ["free", "0,02", "1_0", "\u0660.\u0665", "0x1", "Infinity", "NaN", "-", ".", "0." + "1" * 50],
)
def test_the_form_refuses_what_is_no_amount_and_gives_it_back(judged, staff, page, text):
    admin = staff.browser("admin")
    form = admin.open(page).form_with("Save")

    refused = admin.send(form, "Save", url=URL, model="judge-1", cost_per_call=text)

    assert "Cost of a call, at most: a number." in refused.text
    assert dict(refused.form_with("Save").filled("Save", {}))["cost_per_call"] == text
    assert judged.state() is None


@pytest.mark.parametrize(
    "text", ["0.00000000000000000001", "0.1234567", "1e-99", "0.10000000000000000001"]
)
def test_the_form_takes_no_more_than_six_decimals(judged, staff, page, text):
    admin = staff.browser("admin")
    form = admin.open(page).form_with("Save")

    refused = admin.send(form, "Save", url=URL, model="judge-1", cost_per_call=text)

    assert "Cost of a call, at most: six decimals at most." in refused.text


@pytest.mark.parametrize(
    ("period", "words"),
    [("day", "today's budget in money has no room for another call"),
     ("month", "the month's budget in money has no room for another call")],
)  # fmt: skip
def test_the_page_says_what_is_spent_and_what_is_left(judged, staff, page, server, period, words):
    limit(judged, server, **{period: 2 * CALL})
    give(judged, 3)
    judged.judge()

    text = staff.browser("viewer").open(page).text

    assert words in text
    assert {"day": "Spent today", "month": "Spent this month"}[
        period
    ] + " at most 0.2 of 0.2" in text


def test_the_page_counts_the_calls_that_all_budgets_leave(judged, staff, page, server):
    judged.set_judge(server.url, is_on=False)
    judged.give("exec-old", text="Take 9 mg.", score=0.1)
    limit(judged, server, day=3 * CALL - 1, month=9 * CALL, calls_per_month=6, answers="failing")

    text = staff.browser("admin").open(f"{page}?days=7").text

    assert "Today's budget has 2 calls left, the month's 6;" in text
