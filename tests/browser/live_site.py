"""A live server for a browser to visit: web and worker processes on a database of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mesedi_server.config import Settings
from tests.server.live import LiveServer, web_process, worker_process

COMMAND_S = 60


@dataclass(frozen=True)
class Site:
    """A server, and its commands."""

    server: LiveServer
    settings: Settings

    @property
    def url(self) -> str:
        return self.server.url

    def command(self, *words: str, given: str = "") -> str:
        """Run `mesedi-server`; return what it prints."""
        return self._run([sys.executable, "-m", "mesedi_server.cli", *words], given)

    def link(self, *words: str) -> str:
        """Make a link that signs in once; by default the operator."""
        return self.command("sign-in-link", "--address", self.url, *words)

    def pipeline(self, key: str, script: str) -> None:
        """Run a pipeline with the SDK, in a process of its own; `script` is indented by nothing."""
        begin = f"import mesedi\nmesedi.configure(api_key={key!r}, base_url={self.url!r})\n"
        end = "\nassert mesedi.flush(timeout=30) == 0 and mesedi.stats().complete, mesedi.stats()\n"
        self._run([sys.executable, "-c", begin + script + end])

    def _run(self, words: list[str], given: str = "") -> str:
        addresses = {
            "MESEDI_DATABASE_URL": self.settings.database_url,
            "MESEDI_BROKER_URL": self.settings.broker_url,
        }
        paths = [path for path in sys.path if path]
        done = subprocess.run(
            words,
            env=os.environ | addresses | {"PYTHONPATH": os.pathsep.join(paths)},
            input=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextmanager
def running(database_url: str, broker_url: str) -> Iterator[Site]:
    """Run web and worker until the block ends."""
    settings = Settings(database_url=database_url, broker_url=broker_url)
    quick = {"MESEDI_DEBOUNCE_SECONDS": "0"}
    with web_process(settings, **quick) as server, worker_process(settings, **quick):
        yield Site(server, settings)
