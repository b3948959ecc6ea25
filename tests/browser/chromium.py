"""The browser of these tests: the system's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

INSTALL = "no Chromium here; on Debian or Ubuntu: apt-get install chromium"
"""What to do where these tests are skipped. MESEDI_TEST_BROWSER names a browser elsewhere."""

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_QUIET = ("--no-first-run", "--disable-background-networking", "--disable-component-update")


def find() -> str | None:
    """Where the browser is, if there is one."""
    given = os.environ.get("MESEDI_TEST_BROWSER", "")
    return given or next(filter(None, map(shutil.which, _PROGRAMS)), None)


@contextmanager
def running(program: str) -> Iterator:
    """Start the browser, and stop it at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()
