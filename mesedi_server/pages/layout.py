"""What all pages have in common: the frame around them, and the words that templates use."""

from typing import Any

from flask import Flask, Response, g, render_template, request

from mesedi_server.pages import addresses, assets, wording
from mesedi_server.pages.access import CSRF_FIELD

NOTICES = {
    "marked": "Done. It is in the group's history.",
    "saved": "Saved. The next examinations judge by these values; what was judged before stays.",
    "unchanged": "Nothing was changed: these values are in force already.",
}
"""What a page can say after a form was sent, by the address's `said`."""


def render(template: str, status: int = 200, /, **content: Any) -> Response:
    """Make a page of a template."""
    html = render_template(
        template,
        visitor=g.get("visitor"),
        visit=g.get("visit"),
        csrf_field=CSRF_FIELD,
        style_address=assets.style_address(),
        notice=NOTICES.get(request.args.get("said", "")),
        **content,
    )
    return Response(html, status, mimetype="text/html")


def register(app: Flask) -> None:
    """Teach an application's templates our words."""
    app.jinja_env.filters.update(wording.FILTERS)
    app.jinja_env.globals["execution_address"] = addresses.execution
