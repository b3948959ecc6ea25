"""A project's members: let in, give a role, make a sign-in link, shut out."""

from urllib.parse import unquote

from flask import Blueprint, redirect, request, url_for

from mesedi_server.errors import RefusedError
from mesedi_server.pages import addresses
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.layout import command, render
from mesedi_server.permission import ROLES
from mesedi_server.schemas import people as schema
from mesedi_server.schemas.bodies import load
from mesedi_server.store import members

blueprint = Blueprint("members", __name__, url_prefix="/p/<project_id>/settings/members")


@blueprint.get("")
@at_least("viewer")
def index(visit: Visit) -> Answer:
    """List the members, and offer to let somebody in."""
    return _page(visit)


@blueprint.post("")
@at_least("admin")
def add(visit: Visit) -> Answer:
    """Let a person in; one who is new to the server gets a link to sign in with."""
    try:
        given = load(schema.MEMBER, request.form.to_dict())
        name, role = given["name"], given["role"]
        is_new = members.add(visit.connection, visit.project.pk, name, role, actor=visit.actor)
    except RefusedError as error:
        return _page(visit, fault=error)
    return _page_with_link(visit, name) if is_new else _back(visit, "member_added")


@blueprint.post("/role")
@at_least("admin")
def change_role(visit: Visit) -> Answer:
    """Give a member another role."""
    role = request.form.get("role", "")
    if role not in ROLES:
        raise RefusedError(f"role: one of {', '.join(ROLES)}")
    members.change_role(visit.connection, visit.project.pk, _name(), role, actor=visit.actor)
    return _back(visit, "role_changed")


@blueprint.post("/link")
@at_least("admin")
def make_link(visit: Visit) -> Answer:
    """Make a link that signs a member in once, and show it."""
    return _page_with_link(visit, _name())


@blueprint.post("/remove")
@at_least("admin")
def remove(visit: Visit) -> Answer:
    """Shut a member out."""
    members.remove(visit.connection, visit.project.pk, _name(), actor=visit.actor)
    return _back(visit, "member_removed")


def _name() -> str:
    # Percent-encoded in the form: browsers change the line breaks of what they send.
    return unquote(request.form.get("member", ""))


def _page_with_link(visit: Visit, name: str) -> Answer:
    token = members.sign_in_link(
        visit.connection,
        visit.project.pk,
        name,
        admin_pk=visit.session.user_pk,
        actor=visit.actor,
        command=command("sign-in-link", "--user", name),
    )
    address = f"{addresses.server()}{url_for('pages.sign_in.show', token=token)}"
    return _page(visit, link=address, link_of=name)


def _page(
    visit: Visit,
    *,
    fault: RefusedError | None = None,
    link: str | None = None,
    link_of: str | None = None,
) -> Answer:
    return render(
        "members.html",
        200 if fault is None else fault.status,
        members=members.of_project(visit.connection, visit.project.pk),
        roles=ROLES,
        link=link,
        link_of=link_of,
        longest_name=schema.MAX_NAME,
        entered=request.form,
        fault=fault,
    )


def _back(visit: Visit, said: str) -> Answer:
    return redirect(url_for(".index", project_id=visit.project.project_id, said=said), 303)
