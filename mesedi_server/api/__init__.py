"""The JSON edge: one module a resource. Every route names the scope that it needs."""

from flask import Flask

from mesedi_server.api import (
    api_keys,
    audit_log,
    datasets,
    events,
    executions,
    failure_groups,
    halts,
    health,
    judges,
    labels,
    projects,
    thresholds,
)


def register(app: Flask) -> None:
    """Add the API's routes to an application."""
    for module in (
        api_keys,
        audit_log,
        datasets,
        events,
        executions,
        failure_groups,
        halts,
        health,
        judges,
        labels,
        projects,
        thresholds,
    ):
        app.register_blueprint(module.blueprint)
