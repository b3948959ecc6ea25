"""The HTML edge."""

from flask import Flask


def register(app: Flask) -> None:
    """Add the pages to an application."""
