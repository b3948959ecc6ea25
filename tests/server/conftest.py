"""What tests of the server share: the application on a database of the module's own."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from flask import Flask

from mesedi_server import runtime
from mesedi_server.app import create_app
from mesedi_server.config import Settings
from mesedi_server.store.database import Database
from tests.server.tenants import Tenant, new_tenant


@pytest.fixture(scope="module")
def module_database_url(servers, template) -> Iterator[str]:
    """A migrated, empty database for the tests of one module."""
    with servers.fresh_database(template) as url:
        yield url


@pytest.fixture(scope="module")
def settings(module_database_url, broker_url) -> Settings:
    return Settings(database_url=module_database_url, broker_url=broker_url)


@pytest.fixture(scope="module")
def app(settings) -> Iterator[Flask]:
    application = create_app(settings)
    yield application
    database_of(application).close()


@pytest.fixture(scope="module")
def database(app) -> Database:
    """The database that the application uses."""
    return database_of(app)


@pytest.fixture
def make_tenant(app, database) -> Callable[[], Tenant]:
    """Makes projects of the test's own, with a caller for each scope."""
    return partial(new_tenant, app, database)


@pytest.fixture
def tenant(make_tenant) -> Tenant:
    """A project of the test's own, with a caller for each scope."""
    return make_tenant()


def database_of(application: Flask) -> Database:
    with application.app_context():
        return runtime.runtime().database
