"""How a view function says who may call it, the same for the API and the pages."""

from collections.abc import Callable
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])

PERMISSION = "mesedi_permission"
"""Attribute of a view function that says who may call it; a route without one is not served."""


def open_to_all(view: View) -> View:
    """Open a route to everybody."""
    setattr(view, PERMISSION, "everybody")
    return view
