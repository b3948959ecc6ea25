"""Real worker processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mesedi_server import tether

PATIENCE_S = 45.0


class Worker:
    """`mesedi-server worker` on a database and a broker; its processes are a group of their own."""

    def __init__(self, database_url: str, broker_url: str, log: Path, **settings: str) -> None:
        self._environment = {
            **os.environ,
            "MESEDI_DATABASE_URL": database_url,
            "MESEDI_BROKER_URL": broker_url,
            "MESEDI_WORKER_PROCESSES": "1",
            "PYTHONFAULTHANDLER": "1",
            **settings,
        }
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = tether.start(
                [sys.executable, "-m", "mesedi_server.cli", "worker"],
                env=self._environment,
                output=output,
            )

    def kill(self) -> None:
        """Kill -9, all its processes at once."""
        process, self._process = self._process, None
        # Once it has ended its number may be another's.
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)

    def until(self, is_so: Callable[[], object]) -> float:
        """Look until the worker has made it so; return after how many seconds."""
        start = time.monotonic()
        while not is_so():
            assert self._process is not None
            code = self._process.poll()
            assert code is None, f"the worker has ended with {code}: {self.said()}"
            assert time.monotonic() < start + PATIENCE_S, f"it never came to be so: {self.said()}"
            time.sleep(0.01)
        return time.monotonic() - start

    def said(self) -> str:
        return self._log.read_text()


@contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    worker.start()
    try:
        yield worker
    finally:
        worker.kill()
