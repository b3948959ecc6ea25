"""A project's settings, keys, members, and the log of who changed what."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, update

from mesedi_server.errors import ConflictError
from mesedi_server.pages.settings import LABELS
from mesedi_server.store import members, people, projects
from mesedi_server.store.tables import api_keys
from mesedi_server.tasks import moving
from tests.factories import make_execution
from tests.server.pages.browsing import Browser, Page
from tests.server.pages.failing import fail
from tests.server.pages.people import Staff
from tests.server.tenants import Caller

KEY = re.compile(r"mesedi_sk_[\w-]{40,}")
LINK = re.compile(r"http://localhost(/sign-in\?token=[\w-]+)")


@pytest.fixture
def admin(staff) -> Browser:
    return staff.browser("admin")


@pytest.fixture
def settings_page(tenant) -> str:
    return f"/p/{tenant.project.project_id}/settings"


def audited(tenant) -> list[tuple[str, str]]:
    """What was done and to what, the newest first."""
    return [(e["action"], e["subject"]) for e in tenant.admin.get("/audit-log").json["events"]]


def save(browser: Browser, address: str, **fields: str) -> Page:
    return browser.send(browser.open(address).form_with("Save"), "Save", **fields)


def test_a_new_project_keeps_everything_and_shows_utc(viewer, settings_page):
    page = viewer.open(settings_page)

    assert "Time zone UTC" in page.text
    assert "kept for ever" in page.text


def test_settings_are_saved_and_audited(admin, settings_page, tenant):
    page = save(
        admin,
        settings_page,
        name="Shop, production",
        time_zone="Europe/Berlin",
        trace_url_template="https://traces.example.com/t/{execution_id}?tab=1",
        retention_days="90",
    )

    assert "Saved." in page.text
    project = tenant.read.get("/project").json
    assert project["name"] == "Shop, production"
    assert project["time_zone"] == "Europe/Berlin"
    assert project["trace_url_template"] == "https://traces.example.com/t/{execution_id}?tab=1"
    assert project["retention_days"] == 90
    details = tenant.admin.get("/audit-log").json["events"][0]["details"]
    assert details["time_zone"] == {"from": "UTC", "to": "Europe/Berlin"}
    assert details["retention_days"] == {"from": None, "to": 90}


def test_pages_tell_while_days_are_being_counted_anew(admin, settings_page, tenant, database):
    told = "Days are being counted anew. The time zone has changed to Europe/Berlin"
    group = fail(tenant, database)
    groups = settings_page.replace("settings", "groups")
    addresses = (settings_page, groups, f"{groups}/{group}")
    before = [told in admin.open(address).text for address in addresses]

    save(admin, settings_page, time_zone="Europe/Berlin")
    meanwhile = [told in admin.open(address).text for address in addresses]
    moving.move_all(database, run_s=60)
    after = [told in admin.open(address).text for address in addresses]

    assert (before, meanwhile, after) == ([False] * 3, [True] * 3, [False] * 3)


def test_all_answers_are_assessed_once_an_admin_says_so(admin, viewer, settings_page, tenant):
    assert "Answers are assessed those that fail" in viewer.open(settings_page).text

    save(admin, settings_page, assesses_all="yes")

    assert "Answers are assessed all" in viewer.open(settings_page).text
    assert "Nothing was changed" in save(admin, settings_page).text
    details = tenant.admin.get("/audit-log").json["events"][0]["details"]
    assert details == {"assesses_all": {"from": False, "to": True}}


def test_saving_what_is_in_force_leaves_no_trace(admin, settings_page, tenant):
    page = save(admin, settings_page)

    assert "Nothing was changed" in page.text
    assert audited(tenant) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 81),
        ("name", "two\nlines"),
        ("name", "a\x00b"),
        ("time_zone", "Europe/Atlantis"),
        ("time_zone", "../../etc/passwd"),
        ("trace_url_template", "javascript:alert('{execution_id}')"),
        ("trace_url_template", "https://traces.example.com/"),
        ("trace_url_template", "https://{execution_id}.example.com/"),
        ("trace_url_template", "//traces.example.com/{execution_id}"),
        ("trace_url_template", "https://[broken/{execution_id}"),
        ("trace_url_template", "https:///{execution_id}"),
        ("retention_days", "0"),
        ("retention_days", "-5"),
        ("retention_days", "a week"),
        ("retention_days", "3651"),
    ],
)
def test_a_setting_that_means_nothing_is_refused_and_shown_again(
    admin, settings_page, tenant, field, value
):
    page = save(admin, settings_page, **{field: value})

    assert page.status == 400
    assert f"Not saved: {LABELS[field]}: " in page.text
    assert ".. " not in page.text
    assert audited(tenant) == []


def test_what_comes_in_is_not_held_up_while_settings_change(tenant, database):
    with database.transaction() as connection:
        wanted = {"time_zone": "Europe/Berlin"}
        projects.change(connection, tenant.project.pk, wanted, actor="us")

        response = tenant.ingest.post("/executions", make_execution("exec-1"))

    assert response.status_code == 200


def test_a_name_that_another_project_has_is_refused(admin, settings_page, other):
    page = save(admin, settings_page, name=other.project.name)

    assert page.status == 409
    assert "there is a project" in page.text


@pytest.mark.parametrize("part", ["", "/keys", "/members"])
def test_viewers_see_the_settings_and_may_change_none(viewer, settings_page, part):
    page = viewer.open(settings_page + part)

    assert page.status == 200
    assert {text for form in page.forms for text in form.buttons} == {"Sign out"}


FORMS = (
    ("", {"name": "taken over", "time_zone": "UTC"}),
    ("/keys", {"scopes": "admin"}),
    ("/keys/{key}/rotate", {"overlap": "0"}),
    ("/keys/{key}/revoke", {}),
    ("/members", {"name": "Eve", "role": "admin"}),
    ("/members/role", {"member": "somebody", "role": "admin"}),
    ("/members/link", {"member": "somebody"}),
    ("/members/remove", {"member": "somebody"}),
)


@pytest.mark.parametrize("role", ["viewer", "member"])
@pytest.mark.parametrize(("path", "form"), FORMS)
def test_only_admins_change_them(staff, settings_page, tenant, role, path, form):
    browser = staff.browser(role)
    token = dict(browser.open(settings_page).form_with("Sign out").fields)["csrf_token"]
    key = tenant.read.get("/api-keys").json["api_keys"][0]["key_id"]

    response = browser.call(
        "POST", settings_page + path.format(key=key), data=form | {"csrf_token": token}
    )

    assert response.status_code == 403
    assert "needs the role admin" in response.get_data(as_text=True)
    assert audited(tenant) == []


@pytest.mark.parametrize(("path", "form"), FORMS)
def test_an_admin_of_another_project_cannot_either(
    app, database, other, settings_page, tenant, path, form
):
    stranger = Staff(app, database, other).browser("admin")
    token = dict(stranger.open("/account").form_with("Sign out").fields)["csrf_token"]
    key = tenant.read.get("/api-keys").json["api_keys"][0]["key_id"]
    own = f"/p/{other.project.project_id}/settings{path.format(key=key)}"

    theirs = stranger.call(
        "POST", settings_page + path.format(key=key), data=form | {"csrf_token": token}
    )
    mixed = stranger.call("POST", own, data=form | {"csrf_token": token})

    assert theirs.status_code == 404
    assert mixed.status_code == 404 or "{" not in path
    assert audited(tenant) == []
    assert len(tenant.read.get("/api-keys").json["api_keys"]) == 3


@pytest.mark.parametrize(("path", "form"), FORMS)
def test_a_form_without_the_token_of_the_session_changes_nothing(
    admin, settings_page, tenant, path, form
):
    key = tenant.read.get("/api-keys").json["api_keys"][0]["key_id"]

    response = admin.call("POST", settings_page + path.format(key=key), data=form)

    assert response.status_code == 403
    assert audited(tenant) == []


def test_the_audit_log_is_for_admins(staff, settings_page):
    statuses = [
        staff.browser(role).call("GET", f"{settings_page}/audit-log").status_code
        for role in ("viewer", "member", "admin")
    ]

    assert statuses == [403, 403, 200]


def create_key(browser: Browser, settings_page: str, **fields) -> Page:
    form = browser.open(f"{settings_page}/keys").form_with("Create key")
    return browser.send(form, "Create key", **fields)


def test_a_key_is_shown_once_and_works(app, admin, settings_page, tenant):
    page = create_key(admin, settings_page, name="nightly", scopes=["ingest", "read"])

    key = KEY.search(page.text).group()
    assert f'configure(api_key="{key}", base_url="http://localhost")' in page.text
    assert Caller(app, key).get("/me").json["scopes"] == ["ingest", "read"]
    assert not KEY.search(admin.open(f"{settings_page}/keys").text)
    assert audited(tenant)[0][0] == "key.created"


def test_a_key_may_expire(admin, settings_page, tenant):
    create_key(admin, settings_page, name="short", lifetime="7")

    keys = tenant.read.get("/api-keys").json["api_keys"]
    expires_at = next(datetime.fromisoformat(k["expires_at"]) for k in keys if k["name"] == "short")
    left = expires_at - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)


@pytest.mark.parametrize(
    "fields",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"lifetime": "8"},
        {"name": "x" * 81},
        {"name": "a\nb"},
    ],
)
def test_a_key_that_means_nothing_is_refused(admin, settings_page, tenant, fields):
    page = create_key(admin, settings_page, **fields)

    assert page.status == 400
    assert "Not saved" in page.text
    assert not KEY.search(page.text)
    assert audited(tenant) == []


def test_a_revoked_key_is_refused_at_once_and_listed_as_such(app, admin, settings_page, tenant):
    key = KEY.search(create_key(admin, settings_page, name="leaked").text).group()
    assert Caller(app, key).get("/executions").status_code == 403
    form = admin.open(f"{settings_page}/keys").form_with("Revoke leaked")

    page = admin.send(form, "Revoke leaked")

    assert "Revoked and expired (1)" in page.text
    assert Caller(app, key).get("/executions").status_code == 401
    assert [action for action, _ in audited(tenant)[:2]] == ["key.revoked", "key.created"]


def test_even_the_last_key_can_be_revoked_by_hand(admin, settings_page, tenant):
    page = admin.open(f"{settings_page}/keys")
    while buttons := [text for f in page.forms for text in f.buttons if "Revoke" in text]:
        page = admin.send(page.form_with(buttons[0]), buttons[0])

    assert "No key is accepted in this project" in page.text


@pytest.mark.parametrize(("hours", "is_old_good"), [("0", False), ("1", True), ("168", True)])
def test_a_rotated_key_overlaps_with_the_new_one(
    app, admin, settings_page, tenant, hours, is_old_good
):
    old = KEY.search(create_key(admin, settings_page, name="web", scopes=["read"]).text).group()
    form = admin.open(f"{settings_page}/keys").form_with("Rotate web")

    page = admin.send(form, "Rotate web", overlap=hours)

    new = KEY.search(page.text).group()
    assert Caller(app, new).get("/me").json["scopes"] == ["read"]
    assert (Caller(app, old).get("/me").status_code == 200) is is_old_good
    assert audited(tenant)[0][0] == "key.rotated"


def test_the_overlap_ends(app, admin, database, settings_page):
    old = KEY.search(create_key(admin, settings_page, name="web").text).group()
    form = admin.open(f"{settings_page}/keys").form_with("Rotate web")
    admin.send(form, "Rotate web", overlap="1")

    with database.transaction() as connection:
        connection.execute(
            update(api_keys)
            .where(api_keys.c.expires_at.is_not(None))
            .values(expires_at=api_keys.c.expires_at - timedelta(hours=1))
        )

    assert Caller(app, old).get("/me").status_code == 401


def test_a_rotated_key_never_lives_longer_than_it_would_have(admin, settings_page, tenant):
    create_key(admin, settings_page, name="web", lifetime="7")
    button = "Rotate web"
    before = expiries(tenant)

    admin.send(admin.open(f"{settings_page}/keys").form_with(button), button, overlap="168")

    old, new = sorted(expiries(tenant))
    assert old == before[0]
    assert new > old


def expiries(tenant) -> list[str]:
    keys = tenant.read.get("/api-keys").json["api_keys"]
    return [key["expires_at"] for key in keys if key["name"] == "web"]


def test_a_key_that_has_ended_is_not_rotated(admin, settings_page, tenant):
    create_key(admin, settings_page, name="web")
    form = admin.open(f"{settings_page}/keys").form_with("Rotate web")
    revoke = admin.open(f"{settings_page}/keys").form_with("Revoke web")
    admin.send(revoke, "Revoke web")

    assert admin.send(form, "Rotate web").status == 409


def test_who_used_a_key_last_is_shown(admin, settings_page, tenant, database):
    tenant.read.get("/executions")
    with database.transaction() as connection:
        used_at = func.make_timestamptz(2026, 11, 30, 8, 15, 0.0, "UTC")
        connection.execute(update(api_keys).values(last_used_at=used_at))

    assert "2026-11-30 08:15" in admin.open(f"{settings_page}/keys").text


def add_member(browser: Browser, settings_page: str, name: str, role: str) -> Page:
    form = browser.open(f"{settings_page}/members").form_with("Add")
    return browser.send(form, "Add", name=name, role=role)


def test_somebody_new_gets_a_link_that_signs_them_in(app, admin, settings_page, tenant):
    name = f"New {tenant.project.pk}"

    page = add_member(admin, settings_page, f"  {name} ", "member")

    newcomer = Browser(app).open(LINK.search(page.text).group(1))
    assert "Failure groups" in newcomer.text
    assert name in newcomer.names
    assert not LINK.search(admin.open(f"{settings_page}/members").text)
    assert ("member.added", name) in audited(tenant)
    assert ("member.link_made", name) in audited(tenant)


def test_somebody_with_an_account_gets_the_project_and_nobody_gets_their_account(
    app, database, admin, settings_page, other
):
    name = f"Known {other.project.pk}"
    known = Staff(app, database, other).browser("admin", name)

    page = add_member(admin, settings_page, name, "viewer")

    assert "Added." in page.text
    assert not LINK.search(page.text)
    assert known.open(settings_page).status == 200


def test_an_admin_makes_no_link_for_people_of_other_projects(
    app, database, admin, settings_page, other, tenant
):
    name = f"Known {other.project.pk}"
    Staff(app, database, other).browser("viewer", name)
    add_member(admin, settings_page, name, "viewer")
    button = f"Make a sign-in link for {name}"

    page = admin.send(admin.open(f"{settings_page}/members").form_with(button), button)

    assert page.status == 403
    assert f"mesedi-server sign-in-link --user 'Known {other.project.pk}'." in page.text
    assert "member.link_made" not in dict(audited(tenant))


@pytest.mark.parametrize("name", ["", "x" * 81, "a\nb\x00", "key key-0123"])
def test_a_name_that_misleads_is_refused(admin, settings_page, name):
    page = add_member(admin, settings_page, name, "viewer")

    assert page.status == 400
    assert "Not saved: name" in page.text


def test_nobody_is_added_twice(admin, staff, settings_page):
    staff.link("viewer", f"Twice {staff.tenant.project.pk}")

    page = add_member(admin, settings_page, f"Twice {staff.tenant.project.pk}", "admin")

    assert page.status == 409
    assert "a member already" in page.text


@pytest.mark.parametrize("name", ["Ana", "<b>&", "a%20b:/?", "\u202eevil", "two\nlines"])
def test_a_role_counts_from_the_next_page_on(staff, admin, settings_page, tenant, name):
    name = f"{name} {tenant.project.pk}"
    browser = staff.browser("viewer", name)
    page = admin.open(f"{settings_page}/members")
    button = next(b for f in page.forms for b in f.buttons if b == f"Give {name} this role")

    admin.send(page.form_with(button), button, role="admin")

    assert browser.open(f"{settings_page}/audit-log").status == 200
    assert ("member.role_changed", name) in audited(tenant)


def test_who_is_removed_sees_the_project_no_more(staff, admin, settings_page, tenant):
    name = f"Leaver {tenant.project.pk}"
    browser = staff.browser("admin", name)
    button = f"Remove {name}"

    admin.send(admin.open(f"{settings_page}/members").form_with(button), button)

    assert browser.open(settings_page).status == 404
    assert audited(tenant) == [("member.removed", name)]


def test_a_project_always_has_an_admin(staff, settings_page, tenant):
    name = f"Last {tenant.project.pk}"
    admin = staff.browser("admin", name)
    page = admin.open(f"{settings_page}/members")

    removed = admin.send(page.form_with(f"Remove {name}"), f"Remove {name}")
    button = f"Give {name} this role"
    demoted = admin.send(page.form_with(button), button, role="viewer")

    assert removed.status == demoted.status == 409
    assert audited(tenant) == []
    assert admin.open(f"{settings_page}/audit-log").status == 200


def test_two_admins_who_remove_each_other_at_once_leave_one(database, staff, tenant):
    names = [f"{name} {tenant.project.pk}" for name in ("Ana", "Bo")]
    for name in names:
        staff.link("admin", name)

    def remove(name: str) -> bool:
        try:
            with database.transaction() as connection:
                members.remove(connection, tenant.project.pk, name, actor="the other one")
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        removed = list(threads.map(remove, names))

    assert sorted(removed) == [False, True]


def test_what_keys_and_people_do_is_in_the_log(admin, member, tenant, database, settings_page):
    group = fail(tenant, database)
    floor = "/me/detector-thresholds/grounding_failure/mean_floor"
    tenant.admin.put(floor, {"value": 0.7, "reason": "stricter"})
    tenant.admin.delete(floor)
    tenant.admin.post("/executions/exec-1/halt", {"reason": "loops"})
    page = member.open(f"/p/{tenant.project.project_id}/groups/{group}")
    member.send(page.form_with("Resolve"), "Resolve", reason="prompt fixed")
    tenant.admin.post(f"/failure-groups/{group}/over-strict", {})

    lines = audited(tenant)
    page = admin.open(f"{settings_page}/audit-log")

    assert lines == [
        ("group.over_strict", group),
        ("group.resolved", group),
        ("execution.halted", "exec-1"),
        ("threshold.reset", "grounding_failure.mean_floor"),
        ("threshold.changed", "grounding_failure.mean_floor"),
    ]
    for text in ("Resolved a group", "Halted an execution", "stricter", "prompt fixed", "loops"):
        assert text in page.text


def test_what_changes_nothing_is_not_in_the_log(tenant, database):
    group = fail(tenant, database)
    for _ in range(2):
        tenant.admin.post(f"/failure-groups/{group}/resolve", {})
        tenant.admin.post("/executions/exec-1/halt", {"reason": "loops"})
        tenant.admin.delete("/me/detector-thresholds/grounding_failure/mean_floor")
        tenant.admin.post("/failure-groups/grp-0000000000000000/resolve", {})

    assert sorted(audited(tenant)) == [("execution.halted", "exec-1"), ("group.resolved", group)]


def test_the_log_has_pages(admin, tenant, settings_page):
    for number in range(60):
        floor = "/me/detector-thresholds/grounding_failure/mean_floor"
        tenant.admin.put(floor, {"value": number / 100})

    first = admin.open(f"{settings_page}/audit-log")
    second = admin.open(first.links["Next page"])

    assert "\u20680.59\u2069" in first.text
    assert "\u20680.0\u2069" in second.text
    assert "Next page" not in second.links


def test_operators_are_admins_of_every_project(app, database, tenant, settings_page):
    with database.transaction() as connection:
        operator = people.ensure_operator(connection, "the operator of settings")
        token = people.create_sign_in_link(connection, operator)
    browser = Browser(app)
    browser.open(f"/sign-in?token={token}")

    assert browser.open(f"{settings_page}/audit-log").status == 200
