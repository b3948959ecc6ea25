"""Who may open what, and what every page says about its safety."""

import pytest

from mesedi_server.app import create_app
from mesedi_server.config import Settings
from mesedi_server.permission import PERMISSION
from tests.server.conftest import database_of
from tests.server.pages.browsing import Browser, Page
from tests.server.pages.failing import fail
from tests.server.pages.people import Staff
from tests.server.tenants import new_tenant

READ = (
    "/groups",
    "/groups/{group}",
    "/executions",
    "/executions/exec-1",
    "/execution?id=exec-1",
    "/thresholds",
    "/thresholds/grounding_failure",
    "/settings",
    "/settings/judge",
    "/settings/keys",
    "/settings/members",
)
CHANGE = (
    ("/groups/{group}/state", {"action": "resolve"}),
    ("/groups/{group}/over-strict", {"action": "mark"}),
    ("/groups/{group}/comments", {"comment": "we know it"}),
    ("/groups/change", {"action": "resolve", "group": "{group}", "count": "1"}),
    ("/thresholds/grounding_failure", {"mean_floor": "0.1", "version": "1"}),
    ("/thresholds/grounding_failure/return", {"key": "mean_floor", "version": "0"}),
)
PREVIEW = ("/thresholds/grounding_failure/preview", {"mean_floor": "0.1"})


@pytest.fixture
def group(tenant, database) -> str:
    """A group of a project that has set a threshold."""
    floor = "/me/detector-thresholds/grounding_failure/mean_floor"
    tenant.admin.put(floor, {"value": 0.6})
    return fail(tenant, database)


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


def token_of(browser: Browser, project: str) -> str:
    form = browser.open(f"{project}/thresholds").form_with("Sign out")
    return dict(form.fields)["csrf_token"]


def changeable(tenant, group: str) -> tuple:
    """What the forms of a project can change."""
    shown = tenant.read.get(f"/failure-groups/{group}").json
    thresholds = tenant.read.get("/me/detector-thresholds/grounding_failure").json
    history = tenant.read.get(f"/failure-groups/{group}/history").json["count"]
    return shown["state"], shown["over_strict_at"], thresholds["version"], history


def filled(form: dict[str, str], group: str) -> dict[str, str]:
    return {name: value.format(group=group) for name, value in form.items()}


def test_every_page_names_who_may_see_it(app):
    pages = [rule.endpoint for rule in app.url_map.iter_rules() if "pages." in rule.endpoint]

    assert len(pages) > 10
    assert [name for name in pages if not hasattr(app.view_functions[name], PERMISSION)] == []


@pytest.mark.parametrize("path", READ)
def test_whoever_is_in_the_project_may_look(viewer, project, group, path):
    assert viewer.open(project + path.format(group=group)).status == 200


@pytest.mark.parametrize("path", READ)
def test_whoever_is_not_signed_in_sees_nothing(app, project, group, path):
    response = Browser(app).call("GET", project + path.format(group=group))

    assert response.status_code == 303
    assert response.headers["Location"] == "/sign-in"


def test_another_project_does_not_exist(app, database, viewer, project, group, other):
    stranger = Staff(app, database, other).browser("admin")
    own = f"/p/{other.project.project_id}"
    token = token_of(stranger, own)

    seen = [stranger.call("GET", project + path.format(group=group)) for path in READ]
    sent = [
        stranger.call(
            "POST",
            project + path.format(group=group),
            data=filled(form, group) | {"csrf_token": token},
        )
        for path, form in (*CHANGE, PREVIEW)
    ]

    assert {response.status_code for response in seen + sent} == {404}
    assert group not in "".join(response.get_data(as_text=True) for response in seen)


@pytest.mark.parametrize(
    "path",
    ["/groups/{group}", "/executions/exec-1", "/execution?id=exec-1"],
)
def test_an_id_of_another_project_is_unknown_in_ones_own(app, database, other, group, path):
    stranger = Staff(app, database, other).browser("admin")

    page = stranger.open(f"/p/{other.project.project_id}{path.format(group=group)}")

    assert page.status == 404
    assert "Unknown" in page.text


@pytest.mark.parametrize(
    "path", ["/groups/{group}/state", "/groups/{group}/over-strict", "/groups/{group}/comments"]
)
def test_a_group_of_another_project_cannot_be_changed_from_ones_own(
    app, database, tenant, other, group, path
):
    stranger = Staff(app, database, other).browser("admin")
    own = f"/p/{other.project.project_id}"
    before = changeable(tenant, group)

    response = stranger.call(
        "POST",
        own + path.format(group=group),
        data={"action": "resolve", "comment": "no", "csrf_token": token_of(stranger, own)},
    )

    assert response.status_code == 404
    assert changeable(tenant, group) == before


@pytest.mark.parametrize(("path", "form"), CHANGE)
def test_a_member_may_change_with_the_token_of_the_session(
    member, tenant, project, group, path, form
):
    before = changeable(tenant, group)

    response = member.call(
        "POST",
        project + path.format(group=group),
        data=filled(form, group) | {"csrf_token": token_of(member, project)},
    )

    assert response.status_code == 303
    assert changeable(tenant, group) != before


@pytest.mark.parametrize(("path", "form"), CHANGE)
def test_a_viewer_may_not_change(viewer, tenant, project, group, path, form):
    before = changeable(tenant, group)

    response = viewer.call(
        "POST",
        project + path.format(group=group),
        data=filled(form, group) | {"csrf_token": token_of(viewer, project)},
    )

    assert response.status_code == 403
    assert "needs the role member" in response.get_data(as_text=True)
    assert changeable(tenant, group) == before


@pytest.mark.parametrize("path", READ)
def test_a_viewer_is_offered_no_change(viewer, project, group, path):
    page = viewer.open(project + path.format(group=group))

    buttons = {text for form in page.forms for text in form.buttons}
    assert buttons <= {
        "Sign out",
        "Filter",
        "Preview",
        "See what it would change",
        "Download the dataset",
    }


@pytest.mark.parametrize("given", [None, "", "wrong", "ü", "another session's"])
@pytest.mark.parametrize(("path", "form"), [*CHANGE, PREVIEW, ("/sign-out", {})])
def test_a_form_without_the_token_of_the_session_changes_nothing(
    staff, member, tenant, project, group, path, form, given
):
    token = token_of(staff.browser("member"), project) if given == "another session's" else given
    before = changeable(tenant, group)
    form = filled(form, group)
    data = form if token is None else form | {"csrf_token": token}
    address = path if path == "/sign-out" else project + path.format(group=group)

    response = member.call("POST", address, data=data)

    assert response.status_code == 403
    assert "nothing was changed" in response.get_data(as_text=True)
    assert changeable(tenant, group) == before
    assert member.open(project + "/groups").status == 200


@pytest.mark.parametrize(("path", "form"), [*CHANGE, PREVIEW, ("/sign-out", {})])
def test_a_form_of_nobody_changes_nothing(app, tenant, project, group, path, form):
    before = changeable(tenant, group)
    address = path if path == "/sign-out" else project + path.format(group=group)

    response = Browser(app).call("POST", address, data=form)

    assert response.status_code == 403
    assert changeable(tenant, group) == before


@pytest.mark.parametrize(
    "path", ["/sign-in", "/sign-in?token=x", "/sign-out", *READ, "/nothing-here"]
)
def test_every_page_forbids_scripts_frames_and_caches(viewer, project, group, path):
    address = path if path.startswith("/sign") else project + path.format(group=group)

    headers = viewer.call("GET", address).headers

    assert headers["Content-Security-Policy"] == (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == ("no-referrer" if "token" in path else "same-origin")


def test_the_api_keeps_its_own_headers(tenant):
    headers = tenant.read.get("/failure-groups").headers

    assert "Content-Security-Policy" not in headers


@pytest.mark.parametrize("path", READ)
def test_a_page_fetches_its_style_sheet_and_nothing_else(viewer, project, group, path):
    page = viewer.open(project + path.format(group=group))

    fetched = [attributes["href"] for tag, attributes in page.elements if tag == "link"] + [
        attributes["src"] for _, attributes in page.elements if "src" in attributes
    ]
    assert [address for address in fetched if not address.startswith("data:image/")] == [
        next(address for address in fetched if address.startswith("/static/"))
    ]
    assert not page.tags & {"script", "style", "iframe"}
    assert not [name for _, attributes in page.elements for name in attributes if name == "style"]


def test_the_style_sheet_may_be_kept_for_ever_under_its_version_alone(viewer):
    page = viewer.open("/sign-in")
    address = next(a["href"] for tag, a in page.elements if a.get("rel") == "stylesheet")

    current = viewer.call("GET", address)
    outdated = viewer.call("GET", "/static/0123456789ab/mesedi.css")

    assert current.mimetype == "text/css"
    assert "immutable" in current.headers["Cache-Control"]
    assert outdated.headers["Cache-Control"] == "no-cache"
    assert outdated.data == current.data


def test_unknown_addresses_are_explained_as_a_page_or_as_json(viewer, project):
    page = viewer.open(f"{project}/nothing-here")
    api = viewer.call("GET", "/nothing-here")

    assert page.status == api.status_code == 404
    assert "There is no page" in page.text
    assert project + "/groups" not in page.links.values()
    assert api.json["ok"] is False


def test_a_wrong_method_is_explained_as_a_page(viewer, project):
    response = viewer.call("DELETE", f"{project}/groups")

    assert response.status_code == 405
    assert "GET" in response.headers["Allow"]
    assert response.mimetype == "text/html"


def test_a_form_that_no_page_has_is_too_large(member, project):
    response = member.call(
        "POST",
        f"{project}/thresholds/grounding_failure",
        data="a=" + "b" * 2_000_000,
        content_type="application/x-www-form-urlencoded",
    )

    assert response.status_code == 413
    assert response.mimetype == "text/html"


def test_a_fault_of_the_server_is_a_page_without_its_insides(database_url, broker_url, caplog):
    app = create_app(Settings(database_url=database_url, broker_url=broker_url))
    database = database_of(app)
    tenant = new_tenant(app, database)
    browser = Staff(app, database, tenant).browser("viewer")
    with database.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE executions RENAME COLUMN status TO lost")

    page = browser.open(f"/p/{tenant.project.project_id}/executions")
    database.close()

    assert page.status == 500
    assert "its log says more" in page.text
    assert "executions.status" not in page.html
    assert "executions.status" in caplog.text


def test_a_database_that_is_away_is_a_page_that_says_when_to_come_back(broker_url, tmp_path):
    away = f"postgresql:///nobody?host={tmp_path}"
    app = create_app(Settings(database_url=away, broker_url=broker_url))
    browser = Browser(app)
    browser.client.set_cookie("mesedi_session", "a secret")

    page = Page(browser.call("GET", "/"))

    assert page.status == 503
    assert page.headers["Retry-After"] == "5"
    assert "Not just now" in page.text
