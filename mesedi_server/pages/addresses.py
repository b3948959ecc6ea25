"""Which addresses are pages, and how a page names another."""

import json
import re
from hashlib import sha256
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from flask import Request, request, url_for

from mesedi_server.runtime import runtime
from mesedi_server.schemas.projects import PLACEHOLDER

# Printable ASCII below the projects: it cannot lead to another host.
_PAGE = re.compile(r"/p/[!-\[\]-~]{1,2000}")

_EXECUTION = "pages.executions.show"


def owns(path: str) -> bool:
    """Tell whether an address belongs to the pages, so that its errors are pages too."""
    is_one = path in ("/", "/sign-in", "/sign-out", "/account")
    return is_one or path.startswith(("/p/", "/static/", "/account/"))


def server() -> str:
    """Return the address that people and clients reach this server at."""
    return runtime().settings.public_url or request.host_url.rstrip("/")


def of_request(request: Request) -> str:
    """Return the address of a request, to come back to."""
    query = request.query_string.decode("latin-1")
    return quote(request.path) + (f"?{query}" if query else "")


def own_page(address: str) -> str | None:
    """Return an address that came back from a browser if it is a page of ours, else None."""
    return address if _PAGE.fullmatch(address) else None


def execution(project_id: str, execution_id: str) -> str:
    """Return the address of an execution's page, whatever its client calls it."""
    # Browsers and proxies shorten such paths, and Flask routes no line break; a query is left alone.
    parts = execution_id.split("/")
    is_a_path = "\n" not in execution_id and not {"", ".", ".."}.intersection(parts)
    if is_a_path:
        return url_for(_EXECUTION, project_id=project_id, execution_id=execution_id)
    return url_for(_EXECUTION, project_id=project_id, id=execution_id)


def label_anchor(execution_id: str, answer_id: str) -> str:
    """Return the id that an answer's label has on a page, whatever its client calls the two."""
    # An address has no room for their names.
    names = json.dumps([execution_id, answer_id])
    return f"label-{sha256(names.encode()).hexdigest()[:16]}"


def trace(template: str | None, execution_id: str) -> str | None:
    """Return where a project keeps an execution's trace; None: it has not said, or not an address of the web."""
    if template is None or not template.startswith(("https://", "http://")):
        return None
    return template.replace(PLACEHOLDER, quote(execution_id, safe=""))


def with_query(address: str, **more: str) -> str:
    """Return an address of a page of ours with other values in its query; an empty one takes the name out."""
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in more]
    query = kept + [(name, value) for name, value in more.items() if value]
    return urlunsplit(parts._replace(query=urlencode(query)))
