"""What every page tells the browser about its safety."""

from flask import Response, request

from mesedi_server.pages import addresses

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def protect(response: Response) -> Response:
    """Add the headers, if the answer is a page."""
    if addresses.owns(request.path):
        # A sign-in link must not travel on as the address that somebody came from.
        referrer = "no-referrer" if "token" in request.args else "same-origin"
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = referrer
        response.headers.setdefault("Cache-Control", "no-store")
    return response
