"""The HTML edge: one module a page family. Every route names who may see it."""

from flask import Blueprint, Flask

from mesedi_server.pages import (
    assets,
    executions,
    groups,
    headers,
    layout,
    sign_in,
    thresholds,
)


def register(app: Flask) -> None:
    """Add the pages to an application."""
    pages = Blueprint("pages", __name__, template_folder="templates")
    for module in (assets, executions, groups, sign_in, thresholds):
        pages.register_blueprint(module.blueprint)
    app.register_blueprint(pages)
    app.after_request(headers.protect)
    layout.register(app)
