"""What all pages have in common: the frame around them, and the words that templates use."""

from typing import Any

from flask import Flask, Response, g, render_template, request

from mesedi_server.pages import addresses, assets, marking, times, wording
from mesedi_server.pages.access import CSRF_FIELD
from mesedi_server.runtime import runtime
from mesedi_server.schemas import labels

NOTICES = {
    "marked": "Done. It is in the group's history.",
    "saved": "Saved. The next examinations judge by these values; what was judged before stays.",
    "settings_saved": "Saved. Pages and new links go by these settings from now on.",
    "as_before": "Nothing was changed: these settings are in force already.",
    "judge_saved": "Saved. Answers are judged by these settings from now on.",
    "earlier_queued": "Queued. They are judged as the budgets allow.",
    "call_settled": "Settled. Within seconds the answer is read by it; the call is never sent again.",
    "key_revoked": "Revoked. Within seconds no server accepts the key any more.",
    "member_added": "Added. The project is in the person's list from now on.",
    "role_changed": "Done. The role counts from the next page on.",
    "member_removed": "Removed. To this person the project does not exist any more.",
    "password_set": "Your password is set. Your other browsers are signed out.",
    "signed_out_elsewhere": "Done. Only this browser is still signed in.",
    "labelled": "Your label is saved. It counts until somebody corrects it.",
    "commented": "Your comment is in the group's history.",
    "undone": "Taken back.",
    "undone_in_part": "Taken back where nothing else had happened to the group since.",
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


def command(*words: str) -> str:
    """Return a command of this server for people to type."""
    return runtime().settings.command_line(*words)


def register(app: Flask) -> None:
    """Teach an application's templates our words."""
    app.jinja_env.filters.update(wording.FILTERS)
    app.jinja_env.filters.update(time=times.tag, spoken=marking.spoken, sign=marking.sign)
    app.jinja_env.tests["labellable"] = labels.can_be_labelled
    app.jinja_env.globals["command"] = command
    app.jinja_env.globals["execution_address"] = addresses.execution
    app.jinja_env.globals["label_anchor"] = addresses.label_anchor
    app.jinja_env.globals["trace_address"] = addresses.trace
