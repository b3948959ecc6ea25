"""The style sheet: its address changes with its content, so browsers may keep it for ever."""

from hashlib import sha256
from importlib import resources

from flask import Blueprint, Response, url_for

from mesedi_server.permission import open_to_all

blueprint = Blueprint("assets", __name__)

_STYLE = resources.files("mesedi_server.pages").joinpath("static/mesedi.css").read_bytes()
_VERSION = sha256(_STYLE).hexdigest()[:12]


@blueprint.get("/static/<version>/mesedi.css")
@open_to_all
def style(version: str) -> Response:
    """Serve the style sheet; under another version's address only for the moment."""
    response = Response(_STYLE, mimetype="text/css")
    is_current = version == _VERSION
    response.headers["Cache-Control"] = (
        "public, max-age=31536000, immutable" if is_current else "no-cache"
    )
    return response


def style_address() -> str:
    """Return where the present style sheet is."""
    return url_for("pages.assets.style", version=_VERSION)
