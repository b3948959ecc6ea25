"""A browser and a live server for each module: Playwright's event loop must not outlive it."""

from collections.abc import Callable, Iterator

import pytest

from tests.browser import chromium, live_site
from tests.browser.live_site import Site


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """The system's Chromium; where there is none, the tests are skipped."""
    pytest.importorskip("playwright", reason="no Playwright here; make dev installs it")
    program = chromium.find()
    if program is None:
        pytest.skip(chromium.INSTALL)
    with chromium.running(program) as browser:
        yield browser


@pytest.fixture(scope="module")
def site(browser, servers, template, broker_url) -> Iterator[Site]:
    """A live server with an empty database."""
    with servers.fresh_database(template) as url, live_site.running(url, broker_url) as site:
        yield site


@pytest.fixture
def open_window(browser, site) -> Iterator[Callable]:
    """Opens windows that forget everything, fetch nothing from elsewhere, and run nothing of ours.

    Whatever breaks one of these rules fails the test at its end.
    """
    contexts, faults = [], []

    def open_one(**options):
        plain = {"base_url": site.url, "viewport": {"width": 1280, "height": 800}}
        context = browser.new_context(**(plain | options))
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda line: _read(line.text, faults))
        page.on("request", lambda request: _check(request, site.url, faults))
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def window(open_window):
    """A window, as a person's browser has it on a laptop."""
    return open_window()


def _read(line: str, faults: list[str]) -> None:
    # Chromium says so of pages that tell people about errors, too.
    if "the server responded with a status of 40" not in line:
        faults.append(f"console: {line}")


def _check(request, url: str, faults: list[str]) -> None:
    if not request.url.startswith((f"{url}/", "data:image/svg+xml,")):
        faults.append(f"fetched from elsewhere: {request.url}")
    if request.resource_type in ("script", "xhr", "fetch", "websocket"):
        faults.append(f"{request.resource_type}: {request.url}")
