"""Changing many groups at once: on an explicit list, confirmed with its count, and with a way back."""

import pytest

from mesedi_server.pages import group_actions
from mesedi_server.store import projects
from tests.factories import make_score
from tests.server.examining import examine_all
from tests.server.pages.browsing import Page
from tests.server.pages.failing import fail, groups_of, run


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def three(tenant, database) -> list[str]:
    """Ids of three groups."""
    run(tenant, "exec-1", *(make_score(0.1, pair=f"judge-{n}/m") for n in range(3)))
    examine_all(database)
    return groups_of(tenant)


def states(tenant) -> dict[str, str]:
    groups = tenant.read.get("/failure-groups?state=all").json["failure_groups"]
    return {group["group_id"]: group["state"] for group in groups}


def kinds(tenant, group_id: str) -> list[str]:
    """What happened to a group, the latest first."""
    return [
        line["kind"]
        for line in tenant.read.get(f"/failure-groups/{group_id}/history").json["history"]
    ]


def select(browser, address: str, button: str, ids: list[str]) -> Page:
    """Tick some groups of the list and press a button."""
    return browser.send(browser.open(address).form_with(button), button, group=ids)


def confirm(browser, page: Page, button: str, **fields) -> Page:
    return browser.send(page.form_with(button), button, **fields)


def test_selected_groups_are_named_and_counted_before_anything_changes(
    member, tenant, project, three
):
    page = select(member, f"{project}/groups", "Resolve", three[:2])

    assert "Resolve: 2 groups?" in page.text
    assert page.has_button("Resolve: 2 groups")
    assert set(states(tenant).values()) == {"open"}


@pytest.mark.parametrize(
    ("button", "state"),
    [("Acknowledge", "acknowledged"), ("Resolve", "resolved"), ("Ignore", "ignored")],
)
def test_what_is_confirmed_happens_to_these_groups_alone(
    member, tenant, project, three, button, state
):
    page = select(member, f"{project}/groups", button, three[:2])

    after = confirm(member, page, f"{button}: 2 groups", reason="fixed upstream")

    assert states(tenant) == {three[0]: state, three[1]: state, three[2]: "open"}
    assert f"2 groups are {state} now." in after.text
    for group_id in three[:2]:
        line = tenant.read.get(f"/failure-groups/{group_id}/history").json["history"][0]
        assert (line["kind"], line["note"]) == (state, "fixed upstream")


def test_the_list_that_one_came_from_is_shown_again(member, project, three):
    page = select(member, f"{project}/groups?days=90&q=judge", "Resolve", three[:1])

    after = confirm(member, page, "Resolve: 1 group")

    assert dict(after.form_with("Filter").fields)["q"] == "judge"
    assert dict(after.form_with("Filter").fields)["days"] == "90"


def test_a_change_can_be_undone(member, tenant, project, three):
    page = select(member, f"{project}/groups", "Resolve", three)
    after = confirm(member, page, "Resolve: 3 groups")

    undone = member.send(after.form_with("Undo"), "Undo")

    assert set(states(tenant).values()) == {"open"}
    assert "Taken back." in undone.text
    assert not undone.has_button("Undo")
    assert kinds(tenant, three[0]) == ["undone", "resolved", "first_seen"]


def test_an_undo_brings_back_what_each_group_was(member, tenant, project, three):
    tenant.admin.post(f"/failure-groups/{three[0]}/acknowledge", {"reason": "on it"})
    tenant.admin.post(f"/failure-groups/{three[1]}/ignore", {"occurrences": 7})
    before = {id_: tenant.read.get(f"/failure-groups/{id_}").json for id_ in three}
    page = select(member, f"{project}/groups?state=all", "Resolve", three)
    after = confirm(member, page, "Resolve: 3 groups")

    member.send(after.form_with("Undo"), "Undo")

    assert {id_: tenant.read.get(f"/failure-groups/{id_}").json for id_ in three} == before


def test_an_undo_leaves_alone_what_was_changed_since(member, tenant, database, project, three):
    page = select(member, f"{project}/groups", "Resolve", three)
    after = confirm(member, page, "Resolve: 3 groups")
    run(tenant, "exec-2", make_score(0.1, pair="judge-1/m"))
    examine_all(database)
    regressed = next(id_ for id_, state in states(tenant).items() if state == "open")

    undone = member.send(after.form_with("Undo"), "Undo")

    assert "Taken back where nothing else had happened" in undone.text
    assert kinds(tenant, regressed)[0] == "regressed"
    assert set(states(tenant).values()) == {"open"}


def test_a_second_undo_does_nothing(member, tenant, project, three):
    page = select(member, f"{project}/groups", "Resolve", three)
    undo = confirm(member, page, "Resolve: 3 groups").form_with("Undo")
    member.send(undo, "Undo")
    tenant.admin.post(f"/failure-groups/{three[0]}/resolve")

    member.send(undo, "Undo")

    assert states(tenant)[three[0]] == "resolved"


def test_a_group_that_is_so_already_gets_no_line(member, tenant, project, three):
    tenant.admin.post(f"/failure-groups/{three[0]}/resolve", {"reason": "mine"})
    page = select(member, f"{project}/groups?state=all", "Resolve", three)

    after = confirm(member, page, "Resolve: 3 groups")

    assert "2 groups are resolved now." in after.text
    assert kinds(tenant, three[0]) == ["resolved", "first_seen"]


def test_another_number_of_groups_than_was_seen_is_refused(member, tenant, project, three):
    page = select(member, f"{project}/groups", "Resolve", three[:1])

    after = confirm(member, page, "Resolve: 1 group", group=three)

    assert after.status == 400
    assert "these are not the groups that you saw" in after.text
    assert set(states(tenant).values()) == {"open"}


def test_no_selection_is_refused(member, project, three):
    page = select(member, f"{project}/groups", "Resolve", [])

    assert page.status == 400
    assert "no group is selected" in page.text.lower()


def test_too_many_groups_are_refused(member, project, three):
    ids = [f"grp-{number}" for number in range(group_actions.MOST_SELECTED + 1)]

    page = select(member, f"{project}/groups", "Resolve", ids)

    assert page.status == 400


def test_a_foreign_group_changes_nothing(member, tenant, other, database, project, three):
    foreign = fail(other, database)
    page = select(member, f"{project}/groups", "Resolve", [three[0], foreign])

    after = confirm(member, page, "Resolve: 1 group", group=[three[0], foreign], count="2")

    assert after.status == 404
    assert states(tenant)[three[0]] == "open"
    assert set(states(other).values()) == {"open"}


def test_a_foreign_change_cannot_be_undone(staff, member, other, app, database, project, three):
    page = select(member, f"{project}/groups", "Resolve", three)
    undo = confirm(member, page, "Resolve: 3 groups").form_with("Undo")
    stranger = type(staff)(app, database, other).browser("admin")
    own = f"/p/{other.project.project_id}/groups"
    fail(other, database)
    form = stranger.open(own).form_with("Resolve")
    form.action = own + undo.action.partition("/groups")[2]

    assert stranger.send(form, "Resolve").status == 404


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil", "/p/other/groups", ""])
def test_the_way_back_leads_to_this_projects_groups(member, project, three, back):
    page = select(member, f"{project}/groups", "Resolve", three[:1])

    form = page.form_with("Resolve: 1 group")
    pressed = form.filled("Resolve: 1 group", {"back": back})
    answer = member.call("POST", form.action, data=dict(pressed))

    assert answer.status_code == 303
    assert answer.location.startswith(f"{project}/groups?change=chg-")


def test_an_ignore_of_many_can_end_by_itself(member, tenant, project, three):
    page = select(member, f"{project}/groups", "Ignore", three[:2])

    confirm(member, page, "Ignore: 2 groups", occurrences="5")

    for group_id in three[:2]:
        assert tenant.read.get(f"/failure-groups/{group_id}").json["ignored_until_count"] == 6


def test_a_wrong_end_is_refused_and_the_selection_stays(member, tenant, project, three):
    page = select(member, f"{project}/groups", "Ignore", three[:2])

    after = confirm(member, page, "Ignore: 2 groups", occurrences="none", reason="a while")

    assert after.status == 400
    fields = after.form_with("Ignore: 2 groups").fields
    assert sorted(value for name, value in fields if name == "group") == sorted(three[:2])
    assert dict(after.form_with("Ignore: 2 groups").fields)["reason"] == "a while"
    assert set(states(tenant).values()) == {"open"}


def test_all_of_a_page_are_selected_without_script(member, project, three):
    page = member.open(member.open(f"{project}/groups").links["Select all 3"])

    ticked = [value for name, value in page.form_with("Resolve").fields if name == "group"]
    assert sorted(ticked) == sorted(three)


def test_viewers_select_nothing(viewer, project, three):
    page = viewer.open(f"{project}/groups")

    assert not page.has_button("Resolve")
    assert "checkbox" not in {attributes.get("type") for _, attributes in page.elements}


def test_one_groups_state_can_be_undone_too(member, tenant, project, three):
    address = f"{project}/groups/{three[0]}"
    page = member.send(member.open(address).form_with("Resolve"), "Resolve")

    undone = member.send(page.form_with("Undo"), "Undo")

    assert states(tenant)[three[0]] == "open"
    assert "Last change of the state taken back" in undone.text


def test_a_comment_stands_in_the_history(staff, tenant, project, three):
    browser = staff.browser("member", "Mira who comments")
    form = browser.open(f"{project}/groups/{three[0]}").form_with("Comment")

    page = browser.send(form, "Comment", comment="Seen in r7, too: <b>prompt</b> lost the passages")

    assert "Comment by Mira who comments" in page.text
    assert "<b>prompt</b> lost the passages" in page.text
    assert "b" not in page.tags
    assert kinds(tenant, three[0])[0] == "commented"


def test_after_a_comment_the_browser_comes_back_to_the_history(member, project, three):
    form = member.open(f"{project}/groups/{three[0]}").form_with("Comment")
    sent = dict(form.fields) | {"comment": "Seen in r7"}

    answered = member.call("POST", form.action, data=sent)

    assert answered.location == f"{project}/groups/{three[0]}?said=commented#history"


@pytest.mark.parametrize("text", ["", "   ", "\x00\x07"])
def test_an_empty_comment_is_refused(member, tenant, project, three, text):
    form = member.open(f"{project}/groups/{three[0]}").form_with("Comment")

    page = member.send(form, "Comment", comment=text)

    assert page.status == 400
    assert kinds(tenant, three[0]) == ["first_seen"]


def test_an_ignore_ends_at_a_time_in_the_projects_zone(member, tenant, database, three, project):
    with database.transaction() as connection:
        zone = {"time_zone": "Asia/Kathmandu"}
        projects.change(connection, tenant.project.pk, zone, actor="us")
    form = member.open(f"{project}/groups/{three[0]}").form_with("Ignore")

    page = member.send(form, "Ignore", until="2030-01-01T06:00")

    until = tenant.read.get(f"/failure-groups/{three[0]}").json["ignored_until"]
    assert until == "2030-01-01T00:15:00Z"
    assert "Ignored until 2030-01-01 06:00 +0545" in page.text
