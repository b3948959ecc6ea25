"""Fixtures of every test that needs a database or a broker; nothing starts for the others."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.services import Services

_SERVICES = pytest.StashKey[dict]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Start the servers once, in the process that outlives all test processes."""
    if _SERVICES not in node.config.stash:
        node.config.stash[_SERVICES] = _started(node.config)
    node.workerinput.update(node.config.stash[_SERVICES])


@pytest.fixture(scope="session")
def servers(request) -> Iterator["Services"]:
    """The PostgreSQL and the broker of this session."""
    from tests.services import Services, session_services

    worker = getattr(request.config, "workerinput", {})
    if trouble := worker.get("trouble"):
        pytest.fail(trouble)
    if "services" in worker:
        yield Services(**worker["services"])
    else:
        with session_services() as services:
            yield services


@pytest.fixture(scope="session")
def template(servers) -> str:
    """Name a migrated, empty database."""
    from mesedi_server import migrating

    return servers.template_database(migrating.upgrade)


@pytest.fixture
def database_url(servers, template) -> Iterator[str]:
    """A migrated, empty database for one test."""
    with servers.fresh_database(template) as url:
        yield url


@pytest.fixture(scope="session")
def broker_url(servers, request) -> str:
    """The broker, with a number of its own for each test process."""
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    return servers.broker_for(int(worker.removeprefix("gw")))


def _started(config) -> dict:
    from mesedi_server.embedded import EmbeddedError
    from tests.services import session_services

    stack = ExitStack()
    config.add_cleanup(stack.close)
    try:
        return {"services": asdict(stack.enter_context(session_services()))}
    except EmbeddedError as error:
        # For the tests that need them to tell; the others need nothing.
        return {"trouble": str(error)}
