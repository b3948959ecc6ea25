"""Errors as pages: what is wrong, and the way on. None of them asks the database."""

from datetime import UTC, datetime

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from mesedi_server.errors import RefusedError, UnavailableError
from mesedi_server.pages.layout import render
from mesedi_server.pages.wording import isolated

RETRY_AFTER_S = 5
"""What `Retry-After` says of trouble that passes."""

_TITLES = {
    400: "That cannot be done",
    403: "Not allowed",
    404: "Nothing here",
    405: "Not this way",
    409: "Somebody was faster",
    413: "Too large",
    429: "Too many attempts",
    500: "Something broke",
    503: "Not just now",
}


def refused(error: RefusedError) -> Response:
    """Show what a request asked that can't be."""
    return _page(error.status, str(error))


def unavailable(error: UnavailableError) -> Response:
    """Show that trouble passes."""
    response = _page(503, str(error))
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def http_error(error: HTTPException) -> Response:
    """Show what Flask itself refuses: unknown addresses, wrong methods, oversized forms."""
    path = isolated(request.path)
    known = {404: f"there is no page {path}", 405: f"{path} takes no {request.method}"}
    status = error.code or 500
    response = _page(status, known.get(status) or error.description or error.name)
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def unexpected(app: Flask, error: Exception) -> Response:
    """Log a fault of ours, and show when it was without its insides."""
    app.logger.error("page failed", exc_info=error)
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return _page(500, f"this is a fault of the server; its log says more under {at}")


def _page(status: int, reason: str) -> Response:
    title = _TITLES.get(status, _TITLES[400])
    return render("error.html", status, title=title, status=status, reason=reason)
