"""Projects to test with, and clients that speak for them."""

import json
from dataclasses import dataclass
from itertools import count

from flask import Flask
from werkzeug.test import TestResponse

from mesedi_server.store import projects
from mesedi_server.store.database import Database
from mesedi_server.store.projects import Project

_numbers = count(1)


@dataclass(frozen=True)
class Caller:
    """Calls the application with one API key; `content` is JSON, or bytes to send as they are."""

    app: Flask
    key: str | None

    def send(self, method: str, path: str, content=None, **headers: str) -> TestResponse:
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        if self.key is not None:
            sent["Authorization"] = f"Bearer {self.key}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.app.test_client().open(path, method=method, data=body, headers=sent)

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.send("GET", path, **headers)

    def post(self, path: str, content=None, **headers: str) -> TestResponse:
        return self.send("POST", path, content, **headers)

    def put(self, path: str, content=None, **headers: str) -> TestResponse:
        return self.send("PUT", path, content, **headers)

    def patch(self, path: str, content=None, **headers: str) -> TestResponse:
        return self.send("PATCH", path, content, **headers)

    def delete(self, path: str, **headers: str) -> TestResponse:
        return self.send("DELETE", path, **headers)


@dataclass(frozen=True)
class Tenant:
    """A project with a caller for each scope."""

    project: Project
    ingest: Caller
    read: Caller
    admin: Caller


def new_tenant(app: Flask, database: Database) -> Tenant:
    """Make a project that no other test uses."""
    with database.transaction() as connection:
        project = projects.create(connection, f"project {next(_numbers)}")
        keys = [projects.create_key(connection, project, [scope]) for scope in projects.SCOPES]
    return Tenant(project, *(Caller(app, key) for key in keys))
