"""Take the pictures of `docs/screenshots/`: a server of its own, the demo's results, seven pictures, light and dark."""

import sys
from pathlib import Path

from mesedi_server import migrating
from tests.browser import chromium, live_site
from tests.browser.live_site import Site
from tests.browser.walking import open_help_desk, wait_for
from tests.services import session_services

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
MAX_BYTES = 150_000
PROJECT = "docs assistant"
WINDOW = {"width": 1280, "height": 860}
QUALITY = 66


def main() -> None:
    """Take all pictures."""
    program = chromium.find()
    if program is None:
        sys.exit(chromium.INSTALL)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with session_services() as services:
        template = services.template_database(migrating.upgrade)
        with (
            services.fresh_database(template) as url,
            live_site.running(url, services.broker_for(0)) as site,
            chromium.running(program) as browser,
        ):
            _take(site, browser)


def _take(site: Site, browser) -> None:
    project = f"/p/{site.command('create-project', PROJECT)}"
    for name, scopes in (("production pipeline", "ingest"), ("nightly report", "read")):
        site.command("create-key", "--project", PROJECT, "--scopes", scopes, "--name", name)
    site.command("demo", "--project", PROJECT)
    window = browser.new_page(base_url=site.url, viewport=WINDOW)
    _picture(window, "sign-in", "/sign-in")
    window.goto(site.link())
    wait_for(window, f"{project}/groups", "promptfoo")
    group = open_help_desk(window, project.rpartition("/")[2])
    for name, address in _pages(window, project, group).items():
        _picture(window, name, address)


def _pages(window, project: str, group: str) -> dict[str, str]:
    """Addresses of the pages behind the sign-in, by the names of their pictures."""
    window.goto(group)
    window.get_by_role("link", name="demo-").first.click()
    return {
        "groups": f"{project}/groups",
        "group": group,
        "marks": f"{group}#grounding",
        "execution": window.url,
        "thresholds": f"{project}/thresholds/grounding_failure",
        "settings": f"{project}/settings/keys",
    }


def _picture(window, name: str, address: str) -> None:
    window.goto(address)
    for scheme in ("light", "dark"):
        window.emulate_media(color_scheme=scheme)
        _save(window, FOLDER / f"{name}-{scheme}.jpg")


def _save(window, path: Path) -> None:
    window.screenshot(path=path, type="jpeg", quality=QUALITY)
    size = path.stat().st_size
    if size >= MAX_BYTES:
        sys.exit(f"{path.name} has {size} bytes; {MAX_BYTES} are too many for a picture")
    print(f"{path.name}: {size // 1000} kB")


if __name__ == "__main__":
    main()
