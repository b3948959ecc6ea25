"""Who may do what: scopes of keys, roles of people, and how a view function says whom it serves."""

from collections.abc import Callable
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])

SCOPES = ("ingest", "read", "admin")
"""What a key may be good for; `admin` includes the others."""
ROLES = ("viewer", "member", "admin")
"""What a person may be in a project, the least first."""

PERMISSION = "mesedi_permission"
"""Attribute of a view function that says who may call it; a route without one is not served."""


def open_to_all(view: View) -> View:
    """Open a route to everybody."""
    setattr(view, PERMISSION, "everybody")
    return view
