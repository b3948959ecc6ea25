"""The HTML edge: one module a page family. Every route names who may see it."""

from flask import Blueprint, Flask

from mesedi_server.pages import (
    account,
    assets,
    audit,
    captures,
    executions,
    group_actions,
    groups,
    headers,
    judge,
    keys,
    labels,
    layout,
    members,
    settings,
    sign_in,
    thresholds,
)

_FAMILIES = (
    account,
    assets,
    audit,
    captures,
    executions,
    group_actions,
    groups,
    judge,
    keys,
    labels,
    members,
    settings,
    sign_in,
    thresholds,
)


def register(app: Flask) -> None:
    """Add the pages to an application."""
    pages = Blueprint("pages", __name__, template_folder="templates")
    for module in _FAMILIES:
        pages.register_blueprint(module.blueprint)
    app.register_blueprint(pages)
    app.after_request(headers.protect)
    layout.register(app)
