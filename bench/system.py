"""A whole server under measurement: database, broker, web and worker, on folders and ports of their own."""

import json
import os
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from mesedi_server import migrating, tether
from mesedi_server.embedded import EmbeddedServers
from mesedi_server.store import projects
from mesedi_server.store.database import Database


@dataclass(frozen=True)
class System:
    """Where the server listens, a key for everything, and its processes."""

    port: int
    key: str
    database_url: str
    web: psutil.Process
    worker: psutil.Process

    def get(self, path: str) -> dict:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {self.key}"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far, by part."""
        return {
            "web": _cpu_s(self.web),
            "worker": _cpu_s(self.worker),
            "database": sum(
                _cpu_s(process, own=True)
                for process in psutil.process_iter(["name"])
                if process.info["name"] == "postgres"
            ),
        }


@contextmanager
def running(web_workers: int = 1, web_threads: int = 8) -> Iterator[System]:
    """Start everything, with safe commits, and stop it at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mesedi-bench-")))
        folder.chmod(0o755)
        addresses = stack.enter_context(EmbeddedServers(folder / "data"))
        migrating.upgrade(addresses.database_url)
        environment = {
            **os.environ,
            "MESEDI_DATABASE_URL": addresses.database_url,
            "MESEDI_BROKER_URL": addresses.broker_url,
            "MESEDI_WEB_WORKERS": str(web_workers),
            "MESEDI_WEB_THREADS": str(web_threads),
            "MESEDI_WORKER_PROCESSES": "1",
        }
        port = _free_port()
        mesedi = [sys.executable, "-m", "mesedi_server.cli"]
        children = [
            tether.start([*mesedi, "web", "--port", str(port)], env=environment),
            tether.start([*mesedi, "worker"], env=environment),
        ]
        for child in children:
            stack.callback(child.wait)
            stack.callback(child.terminate)
        _await(f"http://127.0.0.1:{port}/health")
        key = _key(addresses.database_url)
        yield System(port, key, addresses.database_url, *(psutil.Process(c.pid) for c in children))


def _key(database_url: str) -> str:
    database = Database(database_url, connections=1)
    with database.transaction() as connection:
        key = projects.create_key(connection, projects.create(connection, "bench"), ["admin"])
    database.close()
    return key


def _cpu_s(process: psutil.Process, *, own: bool = False) -> float:
    try:
        family = [process] if own else [process, *process.children(recursive=True)]
        return sum(sum(member.cpu_times()[:2]) for member in family)
    except psutil.NoSuchProcess:
        return 0.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await(url: str) -> None:
    give_up_at = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.05)
        else:
            return
