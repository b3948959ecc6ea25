"""Signing in by a link, and out."""

import pytest
from sqlalchemy import func, update

from mesedi_server.store.tables import sessions, sign_in_links
from tests.server.pages.browsing import Browser


def test_a_link_signs_in_and_leads_to_the_groups_of_the_first_project(staff, tenant):
    browser = Browser(staff.app)

    page = browser.open(staff.link("viewer", "Mira"))

    assert page.status == 200
    assert "Failure groups" in page.text
    assert "Mira" in page.names
    assert "viewer" in page.text
    assert tenant.project.name in page.names


def test_a_link_works_once(staff):
    link = staff.link("viewer")
    Browser(staff.app).open(link)

    page = Browser(staff.app).open(link)

    assert page.status == 403
    assert "This link has been used" in page.text
    assert "mesedi-server sign-in-link" in page.text


def test_an_expired_link_does_not_sign_in(staff, database):
    link = staff.link("viewer")
    with database.transaction() as connection:
        connection.execute(update(sign_in_links).values(expires_at=func.now()))

    page = Browser(staff.app).open(link)

    assert page.status == 403
    assert "older than a day" in page.text


def test_a_link_that_never_was_does_not_sign_in(app):
    assert Browser(app).open("/sign-in?token=%00guess").status == 403


def test_a_used_link_opened_again_by_the_same_browser_leads_on(staff):
    link = staff.link("viewer")
    browser = Browser(staff.app)
    browser.open(link)

    page = browser.open(link)

    assert "Failure groups" in page.text


def test_a_program_that_only_asks_for_headers_does_not_use_the_link_up(staff):
    link = staff.link("viewer")
    Browser(staff.app).call("HEAD", link)

    page = Browser(staff.app).open(link)

    assert page.status == 200


def test_the_address_with_the_token_is_kept_nowhere(staff):
    response = Browser(staff.app).call("GET", staff.link("viewer"))

    assert response.status_code == 303
    assert response.headers["Location"] == "/"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("base", "is_secure"), [("http://localhost", False), ("https://localhost", True)]
)
def test_the_session_cookie_is_for_this_server_alone(staff, base, is_secure):
    response = Browser(staff.app, base).call("GET", staff.link("viewer"))

    cookie = next(c for c in response.headers.getlist("Set-Cookie") if "mesedi_session" in c)
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert ("Secure" in cookie) is is_secure


def test_whoever_is_not_signed_in_is_sent_to_sign_in_and_comes_back(staff, tenant):
    browser = Browser(staff.app)
    wanted = f"/p/{tenant.project.project_id}/executions?status=crashed&q=a%26b"

    before = browser.open(wanted)
    after = browser.call("GET", staff.link("viewer"))

    assert "Sign in" in before.text
    assert after.headers["Location"] == wanted


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example/p/",
        "https://evil.example/p/x",
        "/p/\\evil.example",
        "/p/x\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "/sign-out",
        "",
    ],
)
def test_the_way_back_leads_nowhere_else(staff, address):
    browser = Browser(staff.app)
    browser.client.set_cookie("mesedi_way_back", address, path="/sign-in")

    response = browser.call("GET", staff.link("viewer"))

    assert response.headers["Location"] == "/"


def test_after_signing_out_the_session_is_over_everywhere(viewer, tenant):
    groups = f"/p/{tenant.project.project_id}/groups"
    secret = viewer.cookie("mesedi_session")
    page = viewer.open(groups)

    out = viewer.send(page.form_with("Sign out"), "Sign out")

    assert "Sign in" in out.text
    assert viewer.cookie("mesedi_session") is None
    thief = Browser(viewer.app)
    thief.client.set_cookie("mesedi_session", secret)
    assert thief.call("GET", groups).headers["Location"] == "/sign-in"


def test_an_old_session_is_over(viewer, database):
    with database.transaction() as connection:
        connection.execute(update(sessions).values(expires_at=func.now()))

    assert viewer.call("GET", "/").headers["Location"] == "/sign-in"


def test_who_is_signed_in_needs_no_sign_in_page(viewer):
    assert viewer.call("GET", "/sign-in").headers["Location"] == "/"


def test_somebody_without_a_project_is_told_how_to_get_one(staff):
    page = staff.browser(None, "Nobody in particular").open("/")

    assert page.status == 200
    assert "mesedi-server create-project" in page.text


def test_every_project_of_a_person_is_in_the_switcher(staff, other, database):
    from mesedi_server.store import people

    browser = Browser(staff.app)
    with database.transaction() as connection:
        operator = people.ensure_operator(connection, "the operator")
        token = people.create_sign_in_link(connection, operator)

    page = browser.open(f"/sign-in?token={token}")

    for tenant in (staff.tenant, other):
        assert page.links[tenant.project.name] == f"/p/{tenant.project.project_id}/groups"
