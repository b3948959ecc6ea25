"""Answers: one way to write JSON, one shape for errors."""

from typing import Any

import msgspec
from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from mesedi_server.errors import RefusedError, UnavailableError

RETRY_AFTER_S = 1
"""What `Retry-After` says of trouble that passes."""

_encode = msgspec.json.Encoder(decimal_format="number").encode


def answer(content: Any, status: int = 200) -> Response:
    """Write JSON; times are RFC 3339 in UTC."""
    return Response(_encode(content), status, mimetype="application/json")


def refusal(reason: str, status: int) -> Response:
    """Write an error in the one shape that all errors have."""
    return answer({"ok": False, "error": reason}, status)


def refused(error: RefusedError) -> Response:
    """Answer a request that can't be taken."""
    response = refusal(str(error), error.status)
    if error.status == 401:  # noqa: PLR2004 - HTTP's own number
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def unavailable(error: UnavailableError) -> Response:
    """Answer a request in trouble that passes: never a 4xx, since clients drop what was refused."""
    response = refusal(str(error), 503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


def http_error(error: HTTPException) -> Response:
    """Answer what Flask itself refuses: unknown addresses, wrong methods, oversized bodies."""
    response = refusal(error.description or error.name, error.code or 500)
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


def unexpected(app: Flask, error: Exception) -> Response:
    """Log a fault of ours and answer 500 without its insides."""
    app.logger.error("request failed", exc_info=error)
    return refusal("internal error; the server's log says more", 500)
