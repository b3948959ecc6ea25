"""`/`, `/sign-in` and `/sign-out`: by password, or by a link that works once."""

import secrets

from flask import Blueprint, redirect, request, url_for

from mesedi_server.errors import NotFoundError, RefusedError
from mesedi_server.pages import addresses, guessing
from mesedi_server.pages.access import (
    COOKIE,
    CSRF_FIELD,
    WAY_BACK,
    Answer,
    Visitor,
    find_visitor,
    is_behind_tls,
    signed_in,
)
from mesedi_server.pages.guessing import TooManyAttemptsError
from mesedi_server.pages.layout import render
from mesedi_server.permission import open_to_all
from mesedi_server.runtime import runtime
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.store import people
from mesedi_server.store.people import Account

blueprint = Blueprint("sign_in", __name__)

FORM_COOKIE = "mesedi_form"
"""Cookie with the token that the sign-in form must carry: a form on another site cannot know it."""
MAX_FORM_BYTES = 16 * 1024
"""Bytes of the sign-in form."""


@blueprint.get("/")
@signed_in
def home(visitor: Visitor) -> Answer:
    """Go to the groups of the person's first project."""
    if not visitor.memberships:
        return render("no_project.html")
    project = visitor.memberships[0].project
    return redirect(url_for("pages.groups.index", project_id=project.project_id), 303)


@blueprint.get("/sign-in")
@open_to_all
def show() -> Answer:
    """Show the form; use a link's token that came with the address."""
    token = request.args.get("token", "")
    # HEAD comes from programs that look at links before people do; they must not use them up.
    if token and request.method == "GET":
        return _use(token)
    with runtime().database.transaction() as connection:
        is_signed_in = find_visitor(connection) is not None
    return _home() if is_signed_in else _page()


@blueprint.post("/sign-in")
@open_to_all
def sign_in() -> Answer:
    """Sign in by name and password."""
    request.max_content_length = MAX_FORM_BYTES
    try:
        _check_form()
        name = storable(request.form.get("name", "")).strip()
        account = _account(name)
        stored = None if account is None else account.password_hash
        guessing.check(name, request.form.get("password", ""), stored)
    except RefusedError as error:
        return _refused(error)
    if account is None:
        raise NotFoundError("person")
    with runtime().database.transaction() as connection:
        secret = people.begin_session(connection, account.user_pk)
    return _begin_session(secret)


@blueprint.post("/sign-out")
@signed_in
def sign_out(visitor: Visitor) -> Answer:
    """End the session of this browser."""
    people.end_session(visitor.connection, request.cookies[COOKIE])
    response = redirect(url_for("pages.sign_in.show"), 303)
    response.delete_cookie(COOKIE)
    return response


def _account(name: str) -> Account | None:
    with runtime().database.transaction() as connection:
        try:
            return people.account(connection, name)
        except NotFoundError:
            return None


def _check_form() -> None:
    """Make sure that the form is one that this server gave to this browser.

    Raises:
        RefusedError: it is another one; it would sign somebody in as whom another site chose (403).
    """
    known, given = request.cookies.get(FORM_COOKIE, ""), request.form.get(CSRF_FIELD, "")
    if not known or not secrets.compare_digest(known.encode(), given.encode()):
        raise RefusedError(
            "this form was too old, or your browser keeps no cookies; try again", 403
        )


def _page(
    status: int = 200, *, is_link_dead: bool = False, fault: RefusedError | None = None
) -> Answer:
    token = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
    response = render(
        "sign_in.html",
        status,
        is_link_dead=is_link_dead,
        fault=fault,
        form_token=token,
        entered=request.form,
    )
    response.set_cookie(
        FORM_COOKIE,
        token,
        path="/sign-in",
        httponly=True,
        samesite="Strict",
        secure=is_behind_tls(),
    )
    return response


def _refused(error: RefusedError) -> Answer:
    response = _page(error.status, fault=error)
    if isinstance(error, TooManyAttemptsError):
        response.headers["Retry-After"] = str(guessing.WAIT_MINUTES * 60)
    return response


def _use(token: str) -> Answer:
    with runtime().database.transaction() as connection:
        secret = people.use_sign_in_link(connection, token)
        is_signed_in = secret is not None or find_visitor(connection) is not None
    if not is_signed_in:
        return _page(403, is_link_dead=True)
    return _home() if secret is None else _begin_session(secret)


def _home() -> Answer:
    return redirect(url_for("pages.sign_in.home"), 303)


def _begin_session(secret: str) -> Answer:
    way_back = addresses.own_page(request.cookies.get(WAY_BACK, ""))
    response = redirect(way_back or url_for("pages.sign_in.home"), 303)
    response.set_cookie(
        COOKIE,
        secret,
        max_age=people.SESSION_LIFETIME,
        httponly=True,
        samesite="Lax",
        secure=is_behind_tls(),
    )
    response.delete_cookie(WAY_BACK, path="/sign-in")
    return response
