"""People who use the pages of a project."""

from dataclasses import dataclass
from itertools import count

from flask import Flask
from sqlalchemy import insert

from mesedi_server.store import people
from mesedi_server.store.database import Database
from mesedi_server.store.tables import memberships, users
from tests.server.pages.browsing import Browser
from tests.server.tenants import Tenant

_numbers = count(1)


@dataclass(frozen=True)
class Staff:
    """Signs people in."""

    app: Flask
    database: Database
    tenant: Tenant

    def link(self, role: str | None, name: str | None = None) -> str:
        """Make a person of the project, and the address that signs them in."""
        with self.database.transaction() as connection:
            name = name or f"{role} {next(_numbers)}"
            user_pk = connection.execute(
                insert(users).values(name=name).returning(users.c.pk)
            ).scalar_one()
            if role is not None:
                connection.execute(
                    insert(memberships).values(
                        user_pk=user_pk, project_pk=self.tenant.project.pk, role=role
                    )
                )
            return f"/sign-in?token={people.create_sign_in_link(connection, user_pk)}"

    def browser(self, role: str | None, name: str | None = None) -> Browser:
        """A browser that somebody of this role is signed in with."""
        browser = Browser(self.app)
        browser.call("GET", self.link(role, name))
        return browser
