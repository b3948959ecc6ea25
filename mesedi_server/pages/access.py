"""Who may see a page: sessions, roles, and the token that every form carries."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

from flask import g, redirect, request, url_for
from werkzeug.wrappers import Response

from mesedi_server.errors import NotFoundError, RefusedError
from mesedi_server.pages import addresses
from mesedi_server.permission import PERMISSION
from mesedi_server.runtime import runtime
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.store import people
from mesedi_server.store.database import Connection
from mesedi_server.store.people import Membership, Session
from mesedi_server.store.projects import Project

COOKIE = "mesedi_session"
"""Cookie with the session's secret."""
WAY_BACK = "mesedi_way_back"
"""Cookie with the page that a visitor wanted before signing in."""
WAY_BACK_S = 3600
"""How long that wish is remembered."""
CSRF_FIELD = "csrf_token"
"""Field of every form that proves it is one of ours."""
MAX_FORM_BYTES = 1024 * 1024
"""Bytes of a form; the largest of ours has a judge's reply."""

Answer: TypeAlias = Response
PageView: TypeAlias = Callable[..., Answer]
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Visitor:
    """A signed-in person, and the transaction of this request."""

    connection: Connection
    session: Session
    memberships: list[Membership]


@dataclass(frozen=True, slots=True)
class Visit(Visitor):
    """A signed-in person in a project that they may see."""

    membership: Membership

    @property
    def project(self) -> Project:
        """The project that the address names."""
        return self.membership.project

    @property
    def actor(self) -> str:
        """What histories call the person."""
        return self.session.user_name


def signed_in(view: Callable[Concatenate[Visitor, P], Answer]) -> Callable[P, Answer]:
    """Open a page to everybody who is signed in; others are sent to `/sign-in`.

    The page runs in one transaction. A form without the session's token is refused.
    """

    @wraps(view)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Answer:
        with runtime().database.transaction() as connection:
            visitor = find_visitor(connection)
            if visitor is None:
                return _to_sign_in()
            g.visitor = visitor
            _check_form(visitor.session)
            return view(visitor, *args, **kwargs)

    setattr(checked, PERMISSION, "signed in")
    return checked


def at_least(role: str) -> Callable[[Callable[Concatenate[Visit, P], Answer]], PageView]:
    """Open a page to people who are at least this in the project of the address.

    To everybody else the project does not exist.
    """

    def decorate(view: Callable[Concatenate[Visit, P], Answer]) -> PageView:
        @signed_in
        @wraps(view)
        def checked(visitor: Visitor, *args: Any, **address: Any) -> Answer:
            g.visit = visit = _visit(visitor, address.pop("project_id"))
            if not visit.membership.may(role):
                raise RefusedError(
                    f"this needs the role {role}; you are {visit.membership.role} here", 403
                )
            return view(visit, *args, **storable(address))

        setattr(checked, PERMISSION, f"role {role}")
        return checked

    return decorate


def find_visitor(connection: Connection) -> Visitor | None:
    """Find who the browser is signed in as."""
    secret = request.cookies.get(COOKIE)
    session = people.session(connection, secret) if secret else None
    if session is None:
        return None
    return Visitor(connection, session, people.memberships_of(connection, session.user_pk))


def is_behind_tls() -> bool:
    """Tell whether browsers reach this server by TLS, so that cookies must keep to it."""
    return request.is_secure or runtime().settings.public_url.startswith("https://")


def _visit(visitor: Visitor, project_id: str) -> Visit:
    for membership in visitor.memberships:
        if membership.project.project_id == project_id:
            return Visit(visitor.connection, visitor.session, visitor.memberships, membership)
    raise NotFoundError("project")


def _to_sign_in() -> Answer:
    if request.method not in ("GET", "HEAD"):
        raise RefusedError("you are signed out; nothing was changed. Sign in and try again", 403)
    response = redirect(url_for("pages.sign_in.show"), 303)
    if way_back := addresses.own_page(addresses.of_request(request)):
        response.set_cookie(
            WAY_BACK,
            way_back,
            max_age=WAY_BACK_S,
            path="/sign-in",
            httponly=True,
            samesite="Lax",
            secure=is_behind_tls(),
        )
    return response


def _check_form(session: Session) -> None:
    if request.method in ("GET", "HEAD"):
        return
    request.max_content_length = request.max_form_memory_size = MAX_FORM_BYTES
    given = request.form.get(CSRF_FIELD, "")
    if not secrets.compare_digest(given.encode(), session.csrf_token.encode()):
        raise RefusedError(
            "this form was not made for your present session; nothing was changed."
            " Go back, reload the page and try again",
            403,
        )
