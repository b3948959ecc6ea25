"""Signing in by name and password, and the account that a person has."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select, update

from mesedi_server import passwords
from mesedi_server.store import people, sign_in_attempts
from mesedi_server.store.tables import sessions, sign_in_links, users
from mesedi_server.store.tables import sign_in_attempts as attempts
from tests.server.pages.browsing import Browser, Page

PASSWORD = "correct horse battery"


@pytest.fixture
def person(staff, database) -> str:
    """The name of a member who has a password."""
    name = f"Mira {staff.tenant.project.pk}"
    staff.link("member", name)
    with database.transaction() as connection:
        user_pk = people.account(connection, name).user_pk
        people.set_password(connection, user_pk, passwords.hashed(PASSWORD))
    return name


@pytest.fixture(autouse=True)
def no_attempts_of_others(database):
    """All tests have one address."""
    with database.transaction() as connection:
        connection.execute(attempts.delete())


def sign_in(browser: Browser, name: str, password: str) -> Page:
    return browser.send(
        browser.open("/sign-in").form_with("Sign in"), "Sign in", name=name, password=password
    )


def rows(database, table) -> int:
    with database.transaction() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_name_and_password_sign_in(app, person):
    page = sign_in(Browser(app), person, PASSWORD)

    assert page.status == 200
    assert "Failure groups" in page.text
    assert person in page.names


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("", ""),
        (None, ""),
        (None, "correct horse batterY"),
        (None, "x" * 5000),
        (None, "\x00\ud83d\udca9".encode("utf-16", "surrogatepass").decode("utf-16")),
        ("nobody", PASSWORD),
        ("\x00", PASSWORD),
    ],
)
def test_anything_else_is_refused_with_one_text(app, person, name, password):
    browser = Browser(app)

    page = sign_in(browser, person if name is None else name, password)

    assert page.status == 403
    assert "The name or the password is wrong." in page.text
    assert browser.cookie("mesedi_session") is None


def test_a_person_without_password_cannot_sign_in_by_one(app, staff):
    staff.link("admin", "Linked only")

    assert sign_in(Browser(app), "Linked only", "").status == 403


def test_whoever_signs_in_comes_back_to_the_page_they_wanted(app, person, tenant):
    browser = Browser(app)
    wanted = f"/p/{tenant.project.project_id}/executions"
    page = browser.open(wanted)

    page = browser.send(page.form_with("Sign in"), "Sign in", name=person, password=PASSWORD)

    assert "Executions" in page.html[: page.html.index("</title>")]


@pytest.mark.parametrize("token", [None, "", "of another browser"])
def test_a_form_that_another_site_made_signs_nobody_in(app, person, token):
    browser = Browser(app)
    browser.open("/sign-in")
    form = {"name": person, "password": PASSWORD}
    if token is not None:
        form["csrf_token"] = token

    response = browser.call("POST", "/sign-in", data=form)

    assert response.status_code == 403
    assert browser.cookie("mesedi_session") is None


def test_a_browser_that_has_never_seen_the_form_is_not_signed_in(app, person):
    form = {"name": person, "password": PASSWORD, "csrf_token": ""}

    assert Browser(app).call("POST", "/sign-in", data=form).status_code == 403


def test_a_name_that_was_tried_too_often_waits_even_with_the_right_password(app, person):
    for _ in range(sign_in_attempts.MOST_PER_NAME):
        assert sign_in(Browser(app), person, "wrong").status == 403

    page = sign_in(Browser(app), person, PASSWORD)

    assert page.status == 429
    assert page.headers["Retry-After"] == "900"
    assert "try again in 15 minutes" in page.text


def test_after_a_while_the_name_may_be_tried_again(app, person, database):
    for _ in range(sign_in_attempts.MOST_PER_NAME):
        sign_in(Browser(app), person, "wrong")
    with database.transaction() as connection:
        connection.execute(update(attempts).values(at=func.now() - sign_in_attempts.WINDOW))

    assert sign_in(Browser(app), person, PASSWORD).status == 200


def test_the_right_password_forgets_the_wrong_ones(app, person):
    for _ in range(3):
        for _ in range(sign_in_attempts.MOST_PER_NAME - 1):
            sign_in(Browser(app), person, "wrong")

        assert sign_in(Browser(app), person, PASSWORD).status == 200


def test_an_address_that_tries_many_names_waits(app, person, database):
    with database.transaction() as connection:
        for number in range(sign_in_attempts.MOST_PER_ADDRESS):
            assert sign_in_attempts.begin(connection, f"name {number}", "127.0.0.1")

    assert sign_in(Browser(app), person, PASSWORD).status == 429


def test_attempts_at_the_same_moment_count_too(database):
    def attempt(number: int) -> bool:
        with database.transaction() as connection:
            return sign_in_attempts.begin(connection, "one name", f"address {number}")

    with ThreadPoolExecutor(6) as threads:
        allowed = list(threads.map(attempt, range(3 * sign_in_attempts.MOST_PER_NAME)))

    assert sum(allowed) == sign_in_attempts.MOST_PER_NAME


def test_attempts_that_count_no_more_are_deleted(app, person, database):
    sign_in(Browser(app), person, "wrong")
    with database.transaction() as connection:
        connection.execute(update(attempts).values(at=func.now() - sign_in_attempts.WINDOW))

    with database.transaction() as connection:
        sign_in_attempts.delete_outdated(connection)

    assert rows(database, attempts) == 0


def test_a_password_is_stored_as_argon2id(person, database):
    with database.transaction() as connection:
        stored = people.account(connection, person).password_hash

    assert stored.startswith("$argon2id$")
    assert PASSWORD not in stored


def test_a_person_who_came_by_a_link_sets_a_password(app, staff):
    browser = staff.browser("viewer", "Came by link")
    form = browser.open("/account").form_with("Set password")

    page = browser.send(form, "Set password", new=PASSWORD, again=PASSWORD)

    assert "Your password is set" in page.text
    assert sign_in(Browser(app), "Came by link", PASSWORD).status == 200


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"present": "wrong", "new": PASSWORD, "again": PASSWORD}, "password is wrong"),
        ({"present": PASSWORD, "new": PASSWORD + "1", "again": PASSWORD}, "not typed twice"),
        ({"present": PASSWORD, "new": "short", "again": "short"}, "at least 10 characters"),
        ({"present": PASSWORD, "new": "x" * 1001, "again": "x" * 1001}, "at most 1000 bytes"),
    ],
)
def test_a_password_is_not_changed_by_mistake(app, person, fields, fault):
    browser = Browser(app)
    sign_in(browser, person, PASSWORD)
    form = browser.open("/account").form_with("Set password")

    page = browser.send(form, "Set password", **fields)

    assert fault in page.text
    assert sign_in(Browser(app), person, PASSWORD).status == 200


def test_another_password_signs_other_browsers_out_and_voids_links(app, person, staff, database):
    here, elsewhere = Browser(app), Browser(app)
    for browser in (here, elsewhere):
        sign_in(browser, person, PASSWORD)
    with database.transaction() as connection:
        user_pk = people.account(connection, person).user_pk
        token = people.create_sign_in_link(connection, user_pk)
    new = {"present": PASSWORD, "new": "another " + PASSWORD, "again": "another " + PASSWORD}

    here.send(here.open("/account").form_with("Set password"), "Set password", **new)

    assert here.call("GET", "/account").status_code == 200
    assert elsewhere.call("GET", "/account").headers["Location"] == "/sign-in"
    assert Browser(app).open(f"/sign-in?token={token}").status == 403
    assert sign_in(Browser(app), person, PASSWORD).status == 403


def test_signing_out_elsewhere_leaves_this_browser(app, person):
    here, elsewhere = Browser(app), Browser(app)
    for browser in (here, elsewhere):
        sign_in(browser, person, PASSWORD)
    button = "Sign out everywhere else"

    page = here.send(here.open("/account").form_with(button), button)

    assert "Only this browser is still signed in" in page.text
    assert elsewhere.call("GET", "/account").headers["Location"] == "/sign-in"


@pytest.mark.parametrize("path", ["/account/password", "/account/sign-out-elsewhere"])
def test_an_account_is_not_changed_without_the_token_of_the_session(staff, path):
    browser = staff.browser("viewer")

    assert browser.call("POST", path, data={"new": PASSWORD, "again": PASSWORD}).status_code == 403


def test_sessions_and_links_that_are_over_are_deleted_and_others_are_not(staff, database):
    kept = staff.browser("viewer")
    with database.transaction() as connection:
        connection.execute(update(sessions).values(expires_at=func.now()))
        connection.execute(update(sign_in_links).values(expires_at=func.now()))
    kept = staff.browser("viewer")
    unused = staff.link("viewer")

    with database.transaction() as connection:
        people.delete_expired(connection)

    assert rows(database, sessions) == 1
    assert kept.open("/account").status == 200
    assert Browser(staff.app).open(unused).status == 200


def test_a_person_who_is_removed_is_signed_out(staff, database):
    browser = staff.browser("viewer", "Leaves soon")
    with database.transaction() as connection:
        people.remove(connection, people.account(connection, "Leaves soon").user_pk)

    assert browser.call("GET", "/account").headers["Location"] == "/sign-in"
    with database.transaction() as connection:
        assert "Leaves soon" not in connection.execute(select(users.c.name)).scalars().all()
