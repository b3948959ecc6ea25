"""The list of groups, and a group's page."""

from datetime import UTC, datetime, timedelta

import pytest

from mesedi_server.pages import groups
from tests.factories import make_event, make_score
from tests.server.examining import examine_all
from tests.server.pages.failing import fail, fail_each_class, groups_of, run


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def group(tenant, database, project) -> str:
    """The address of a group with one member."""
    return f"{project}/groups/{fail(tenant, database)}"


def shown(tenant, group: str) -> dict:
    """What the API says of a group of this address."""
    return tenant.read.get(f"/failure-groups/{group.rpartition('/')[2]}").json


def test_an_empty_project_says_how_to_send_the_first_score(viewer, tenant, project):
    page = viewer.open(f"{project}/groups")

    assert "Send the first score" in page.text
    assert f"create-key --project {tenant.project.project_id} --scopes ingest" in page.text
    assert 'base_url="http://localhost"' in page.text
    assert "table" not in page.tags


def test_a_project_in_which_nothing_fails_says_so(viewer, tenant, database, project):
    run(tenant, "exec-1", make_score(0.9))
    examine_all(database)

    page = viewer.open(f"{project}/groups")

    assert "Nothing fails that needs somebody" in page.text


def test_the_list_shows_what_fails_how_often_and_in_which_state(viewer, tenant, database, project):
    fail(tenant, database, "exec-1", make_score(0.2), make_score(0.1, pair="hhem/"))
    fail(tenant, database, "exec-2")

    page = viewer.open(f"{project}/groups")

    assert "ragas · faithfulness grounding_failure new discovery open" in page.text
    assert "hhem · no metric" in page.text
    cells = page.text.partition("ragas · faithfulness")[2]
    assert " 2 100 % open " in cells


@pytest.mark.parametrize(
    ("query", "is_listed"),
    [
        ("", True),
        ("?state=open", True),
        ("?state=all", True),
        ("?state=resolved", False),
        ("?class=grounding_failure", True),
        ("?class=crashes", False),
        ("?q=FAITH", True),
        ("?q=relevancy", False),
        ("?evaluator=ragas", True),
        ("?evaluator=hhem", False),
        ("?metric=faithfulness", True),
        ("?metric=faith", False),
        ("?release=r1", True),
        ("?release=r2", False),
        ("?environment=production", True),
        ("?environment=staging", False),
        ("?q=%00", False),
        ("?unknown=1", True),
    ],
)
def test_filters_are_in_the_address(viewer, tenant, database, project, query, is_listed):
    fail(tenant, database, release="r1", environment="production")

    page = viewer.open(f"{project}/groups{query}")

    assert page.status == 200
    assert ("ragas · faithfulness" in page.links) is is_listed
    assert ("No group matches" in page.text) is not is_listed


def test_a_filter_stays_in_its_form_and_in_the_tabs(viewer, group, project):
    page = viewer.open(f"{project}/groups?q=faith&class=crashes&state=resolved")

    fields = dict(page.form_with("Filter").fields)
    assert (fields["q"], fields["class"], fields["state"]) == ("faith", "crashes", "resolved")
    assert page.links["Ignored"] == f"{project}/groups?q=faith&class=crashes&state=ignored"


def test_an_unknown_state_is_refused(viewer, project):
    assert viewer.open(f"{project}/groups?state=lost").status == 400


@pytest.mark.parametrize("cursor", ["x", "%00", "W10", "ź"])
def test_a_cursor_that_is_none_of_ours_is_refused(viewer, group, project, cursor):
    assert viewer.open(f"{group}?cursor={cursor}").status == 400


def test_a_name_in_the_address_cannot_bend_the_links_of_a_page(viewer, group, project):
    page = viewer.open(f"{project}/groups?_scheme=evil&_external=1&project_id=x&_anchor=y")

    assert page.status == 200
    assert all(address.startswith(("/", "#")) for address in page.links.values())
    assert not [address for address in page.links.values() if address.startswith("//")]


def test_all_groups_are_reached_page_by_page(viewer, tenant, database, project):
    for number in range(3):
        scores = [make_score(0.1, pair=f"judge-{number}-{n}/m") for n in range(20)]
        run(tenant, f"exec-{number}", *scores)
    examine_all(database)

    pages = [viewer.open(f"{project}/groups")]
    while "Next page" in pages[-1].links:
        pages.append(viewer.open(pages[-1].links["Next page"]))

    listed = [
        [href for text, href in page.links.items() if text.startswith("judge-")] for page in pages
    ]
    assert [len(rows) for rows in listed] == [groups.ROWS, groups.ROWS, 60 - 2 * groups.ROWS]
    assert {href for rows in listed for href in rows} == {
        f"{project}/groups/{group}" for group in groups_of(tenant)
    }
    assert pages[-1].links["First page"] == f"{project}/groups"


def test_a_group_says_first_what_fails_and_why(viewer, tenant, database, project):
    scores = [make_score(score) for score in (0.31, 0.25, 0.4, 0.28)]
    group = fail(tenant, database, "exec-1", *scores)

    page = viewer.open(f"{project}/groups/{group}")

    text = page.text.replace("\u2068", "").replace("\u2069", "")
    assert "Last failure: mean faithfulness 0.31 over 4 scores, floor 0.50 (default)." in text


def test_a_group_tells_in_this_order(member, tenant, database, project):
    group = fail(tenant, database, "exec-1", make_score(7.5, False, reason="too long"))

    text = member.open(f"{project}/groups/{group}").text

    place = 0
    for mark in (
        "Last failure:",
        "Executions 1",
        "Share, last 30 days 100 %",
        "First seen",
        "Last seen",
        "Discovery, not regression.",
        "A floor cannot judge these scores.",
        "How often",
        "Failing executions",
        "too long",
        "When an evaluator fails an answer",
        "All scores of this evaluator and metric",
        "Another floor for this pair",
        "Reason",
        "until (UTC)",
        "Comments and history",
        "First seen",
    ):
        place = text.index(mark, place)


@pytest.mark.parametrize(("odd", "is_told"), [(0, True), (None, False)])
def test_scores_that_no_floor_can_judge_are_told_of_whichever_executions_are_shown(
    viewer, tenant, database, project, odd, is_told
):
    for number in range(groups.MEMBERS + 1):
        run(tenant, f"exec-{number}", make_score(7.5 if number == odd else 0.1, False))
        examine_all(database)
    group = groups_of(tenant)[0]

    page = viewer.open(f"{project}/groups/{group}")

    assert "exec-0" not in page.links
    assert ("A floor cannot judge these scores." in page.text) is is_told
    older = viewer.open(page.links["Next page"])
    assert "exec-0" in older.links
    assert ("A floor cannot judge these scores." in older.text) is is_told


@pytest.mark.parametrize("name", ["%00", "a%00b", "%ed%a0%80", "unknown"])
def test_a_group_that_cannot_be_is_not_found(viewer, project, name):
    assert viewer.open(f"{project}/groups/{name}").status == 404


def test_every_class_has_a_page_with_its_playbook(viewer, tenant, database, project):
    found = fail_each_class(tenant, database)

    pages = {name: viewer.open(f"{project}/groups/{group}") for name, group in found.items()}

    assert {page.status for page in pages.values()} == {200}
    for name, sentence in {
        "grounding_failure": "floor 0.50 (default)",
        "validator_failures": "the check said no once",
        "hitl_timeout": "the client gave up after 65.0 s",
        "crashes": "the execution crashed",
    }.items():
        assert sentence in pages[name].text
        assert "Playbook" in pages[name].text
    assert "no price" in pages["validator_failures"].text


@pytest.mark.parametrize(("interactions", "is_discovery"), [(19, True), (20, False)])
def test_a_group_is_discovery_under_twenty_interactions(
    viewer, tenant, database, project, interactions, is_discovery
):
    for number in range(interactions):
        run(tenant, f"exec-{number}", make_score(0.9 if number else 0.2))
    examine_all(database)

    page = viewer.open(f"{project}/groups/{groups_of(tenant)[0]}")

    assert ("Discovery" in page.text) is is_discovery
    assert ("19 interactions carry" in page.text) is is_discovery


def test_members_come_in_pages_the_latest_first(viewer, tenant, database, project):
    for number in range(groups.MEMBERS + 3):
        run(tenant, f"exec-{number:02}", make_score(0.1 if number else 0.33))
    examine_all(database)

    first = viewer.open(f"{project}/groups/{groups_of(tenant)[0]}")
    second = viewer.open(first.links["Next page"])

    assert [text for text in first.links if text.startswith("exec-")] == [
        f"exec-{number:02}" for number in range(7, 2, -1)
    ]
    assert [text for text in second.links if text.startswith("exec-")] == [
        "exec-02",
        "exec-01",
        "exec-00",
    ]
    lead = "Last failure: mean \u2068faithfulness\u2069 0.10"
    assert lead in first.text
    assert lead in second.text


def test_a_member_leads_to_its_execution(viewer, group, project):
    page = viewer.open(group)

    assert page.links["exec-1"] == f"{project}/executions/exec-1"


def test_a_group_that_lost_all_members_says_so(viewer, tenant, database, group):
    tenant.ingest.post("/events", [make_score(1.0) for _ in range(3)])
    examine_all(database)

    page = viewer.open(group)

    assert "Nothing fails here any more" in page.text


@pytest.mark.parametrize(
    ("button", "state", "happened"),
    [
        ("Acknowledge", "acknowledged", "Acknowledged"),
        ("Resolve", "resolved", "Resolved"),
        ("Ignore", "ignored", "Ignored"),
    ],
)
def test_a_member_changes_the_state_and_says_why(staff, tenant, group, button, state, happened):
    browser = staff.browser("member", f"Mira for {state}")
    form = browser.open(group).form_with(button)

    page = browser.send(form, button, reason="we\u202e know\x07 it")

    assert shown(tenant, group)["state"] == state
    assert "Done." in page.text
    assert f"{happened} by Mira for {state}" in page.text
    assert "we\u202e know it" in page.text
    assert not page.has_button(button) or button == "Ignore"


def test_a_resolved_group_can_be_opened_again(member, tenant, group):
    page = member.send(member.open(group).form_with("Resolve"), "Resolve")

    page = member.send(page.form_with("Open again"), "Open again")

    assert shown(tenant, group)["state"] == "open"
    assert "Opened again" in page.text


def test_a_regressed_group_says_with_which_release(member, tenant, database, group):
    member.send(member.open(group).form_with("Resolve"), "Resolve")
    fail(tenant, database, "exec-2", release="2026.12")

    page = member.open(group)

    assert "Regressed at" in page.text
    assert "with release 2026.12" in page.text


def test_a_regressed_group_is_not_new(member, tenant, database, group, project):
    assert "State open new discovery" in member.open(group).text
    member.send(member.open(group).form_with("Resolve"), "Resolve")
    fail(tenant, database, "exec-2")

    assert "State open regressed discovery" in member.open(group).text
    assert "grounding_failure regressed discovery" in member.open(f"{project}/groups").text


def test_an_ignore_ends_at_a_time_in_utc(member, tenant, group):
    until = (datetime.now(UTC) + timedelta(days=3)).replace(second=0, microsecond=0, tzinfo=None)
    form = member.open(group).form_with("Ignore")

    page = member.send(form, "Ignore", until=until.isoformat(timespec="minutes"))

    assert shown(tenant, group)["ignored_until"] == f"{until.isoformat()}Z"
    assert f"Ignored until {until:%Y-%m-%d %H:%M} UTC" in page.text


def test_an_ignore_ends_after_a_number_of_executions(member, tenant, group):
    form = member.open(group).form_with("Ignore")

    page = member.send(form, "Ignore", occurrences="5")

    assert shown(tenant, group)["ignored_until_count"] == 6
    assert "until it has 6 executions" in page.text


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"until": "2020-01-01T10:00"}, "this time has passed"),
        ({"until": "tomorrow"}, "until: "),
        ({"until": "9999-12-31T23:59-14:00"}, "until: "),
        ({"occurrences": "0"}, "occurrences: "),
        ({"occurrences": "-1"}, "occurrences: "),
        ({"occurrences": "many"}, "occurrences: "),
        ({"occurrences": "9" * 5000}, "occurrences: "),
    ],
)
def test_an_ignore_that_cannot_be_is_refused_and_keeps_what_was_entered(
    member, tenant, group, fields, reason
):
    form = member.open(group).form_with("Ignore")

    page = member.send(form, "Ignore", reason="a while", **fields)

    assert page.status == 400
    assert reason in page.text
    assert dict(page.form_with("Ignore").fields)["reason"] == "a while"
    assert shown(tenant, group)["state"] == "open"


def test_an_unknown_action_is_refused(member, tenant, group):
    form = member.open(group).form_with("Resolve")
    form.buttons["Resolve"]["value"] = "delete"

    page = member.send(form, "Resolve")

    assert page.status == 400
    assert shown(tenant, group)["state"] == "open"


def test_an_over_strict_evaluator_is_marked_with_a_note_and_unmarked(member, tenant, group):
    mark, take_back = "The evaluator is over-strict", "The evaluator is right after all"
    form = member.open(group).form_with(mark)

    marked = member.send(form, mark, note="exec-1 is right")
    taken_back = member.send(marked.form_with(take_back), take_back, note="I was wrong")

    assert "The evaluator is over-strict" in marked.text
    assert "exec-1 is right" in marked.text
    assert "This group informs" in marked.text
    assert "nobody has to act" not in taken_back.text
    assert "Over-strict mark taken back" in taken_back.text
    assert shown(tenant, group)["over_strict_at"] is None


def test_only_groups_of_scores_can_be_over_strict(member, tenant, database, project):
    check = make_event(event_type="validator_result", payload={"name": "x", "passed": False})
    group = fail(tenant, database, "exec-1", check)

    page = member.open(f"{project}/groups/{group}")

    assert page.has_button("Resolve")
    assert not page.has_button("The evaluator is over-strict")


def test_a_capture_says_where_its_key_comes_from(viewer, project, group):
    page = viewer.open(group)

    assert f"create-key --project {project.removeprefix('/p/')} --scopes read" in page.text
    assert page.links["API keys"] == f"{project}/settings/keys"
