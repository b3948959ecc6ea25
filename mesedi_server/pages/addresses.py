"""Which addresses are pages, and how a page names another."""

import re
from urllib.parse import quote

from flask import Request, url_for

# Printable ASCII below the projects: it cannot lead to another host.
_PAGE = re.compile(r"/p/[!-\[\]-~]{1,2000}")

_EXECUTION = "pages.executions.show"


def owns(path: str) -> bool:
    """Tell whether an address belongs to the pages, so that its errors are pages too."""
    return path in ("/", "/sign-in", "/sign-out") or path.startswith(("/p/", "/static/"))


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
