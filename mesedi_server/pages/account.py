"""A person's own account: their password, and the browsers they are signed in with."""

from flask import Blueprint, redirect, request, url_for

from mesedi_server import passwords
from mesedi_server.errors import RefusedError
from mesedi_server.pages import guessing
from mesedi_server.pages.access import COOKIE, Answer, Visitor, signed_in
from mesedi_server.pages.layout import render
from mesedi_server.store import people

blueprint = Blueprint("account", __name__, url_prefix="/account")


@blueprint.get("")
@signed_in
def show(visitor: Visitor) -> Answer:
    """Show the account."""
    return _page(visitor)


@blueprint.post("/password")
@signed_in
def set_password(visitor: Visitor) -> Answer:
    """Set a password, or another one; the person's other browsers are signed out."""
    account = people.account(visitor.connection, visitor.session.user_name)
    try:
        if account.password_hash is not None:
            guessing.check(account.name, request.form.get("present", ""), account.password_hash)
        stored = passwords.hashed(_typed_twice())
    except RefusedError as error:
        return _page(visitor, error)
    people.set_password(
        visitor.connection, account.user_pk, stored, kept_session=request.cookies[COOKIE]
    )
    return redirect(url_for(".show", said="password_set"), 303)


@blueprint.post("/sign-out-elsewhere")
@signed_in
def sign_out_elsewhere(visitor: Visitor) -> Answer:
    """End the person's other sessions."""
    people.end_sessions(visitor.connection, visitor.session.user_pk, kept=request.cookies[COOKIE])
    return redirect(url_for(".show", said="signed_out_elsewhere"), 303)


def _typed_twice() -> str:
    new = request.form.get("new", "")
    if new != request.form.get("again", ""):
        raise RefusedError("the new password was not typed twice the same")
    return new


def _page(visitor: Visitor, fault: RefusedError | None = None) -> Answer:
    account = people.account(visitor.connection, visitor.session.user_name)
    browsers = people.count_sessions(visitor.connection, visitor.session.user_pk)
    return render(
        "account.html",
        200 if fault is None else fault.status,
        has_password=account.password_hash is not None,
        browsers=browsers,
        shortest=passwords.MIN_CHARACTERS,
        fault=fault,
    )
