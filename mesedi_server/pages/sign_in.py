"""`/`, `/sign-in` and `/sign-out`."""

from flask import Blueprint, redirect, request, url_for

from mesedi_server.pages import addresses
from mesedi_server.pages.access import (
    COOKIE,
    WAY_BACK,
    Answer,
    Visitor,
    find_visitor,
    is_behind_tls,
    signed_in,
)
from mesedi_server.pages.layout import render
from mesedi_server.permission import open_to_all
from mesedi_server.runtime import runtime
from mesedi_server.store import people

blueprint = Blueprint("sign_in", __name__)


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
    """Tell how to get a link; use one that came with the address."""
    token = request.args.get("token", "")
    # HEAD comes from programs that look at links before people do; they must not use them up.
    if token and request.method == "GET":
        return _use(token)
    with runtime().database.transaction() as connection:
        is_signed_in = find_visitor(connection) is not None
    return _home() if is_signed_in else render("sign_in.html", is_link_dead=False)


@blueprint.post("/sign-out")
@signed_in
def sign_out(visitor: Visitor) -> Answer:
    """End the session of this browser."""
    people.end_session(visitor.connection, request.cookies[COOKIE])
    response = redirect(url_for("pages.sign_in.show"), 303)
    response.delete_cookie(COOKIE)
    return response


def _use(token: str) -> Answer:
    with runtime().database.transaction() as connection:
        secret = people.use_sign_in_link(connection, token)
        is_signed_in = secret is not None or find_visitor(connection) is not None
    if not is_signed_in:
        return render("sign_in.html", 403, is_link_dead=True)
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
