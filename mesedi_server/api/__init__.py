"""The JSON edge: one module a resource. Every route names the scope that it needs."""

from flask import Flask

from mesedi_server.api import (
    events,
    executions,
    failure_groups,
    halts,
    health,
    thresholds,
)


def register(app: Flask) -> None:
    """Add the API's routes to an application."""
    for module in (events, executions, failure_groups, halts, health, thresholds):
        app.register_blueprint(module.blueprint)
