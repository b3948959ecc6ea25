"""Real server processes on a test's database and broker, and plain HTTP to talk to them."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse

from mesedi_server.config import Settings

START_S = 30.0
STOP_S = 15.0
ANSWER_S = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass(frozen=True)
class LiveServer:
    """A web process: `process.pid` is its supervisor's, which has worker processes of its own."""

    host: str
    port: int
    process: subprocess.Popen

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def connect(self, timeout_s: float = ANSWER_S) -> HTTPConnection:
        return HTTPConnection(self.host, self.port, timeout=timeout_s)

    def send(self, method: str, path: str, content=None, key: str = "", **headers: str) -> Answer:
        """Make one request; `content` is JSON, bytes, or an iterable of bytes to send in chunks."""
        connection = self.connect()
        try:
            response = start(connection, method, path, content, key, **headers)
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


def start(
    connection: HTTPConnection, method: str, path: str, content=None, key: str = "", **headers: str
) -> HTTPResponse:
    """Send a request and return the answer when its head is there, its body still to be read."""
    if isinstance(content, list | dict):
        content = json.dumps(content).encode()
    sent = {"Content-Type": "application/json"} if content is not None else {}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    is_chunked = content is not None and not isinstance(content, bytes)
    connection.request(method, path, content, sent, encode_chunked=is_chunked)
    return connection.getresponse()


@contextmanager
def web_process(settings: Settings, **environment: str) -> Iterator[LiveServer]:
    """Run `mesedi-server web` until the block ends."""
    port = free_port()
    program = ["web", "--host", "127.0.0.1", "--port", str(port)]
    with _running(program, settings, environment) as (process, log):
        server = LiveServer("127.0.0.1", port, process)
        _wait_until_it_answers(server, log)
        yield server


@contextmanager
def worker_process(settings: Settings, **environment: str) -> Iterator[subprocess.Popen]:
    """Run `mesedi-server worker`, beat included, until the block ends."""
    with _running(["worker"], settings, environment) as (process, _):
        yield process


@contextmanager
def judge_worker_process(settings: Settings, **environment: str) -> Iterator[subprocess.Popen]:
    """Run `mesedi-server judge-worker`, beat included, until the block ends."""
    with _running(["judge-worker"], settings, environment) as (process, _):
        yield process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def _running(program: list[str], settings: Settings, environment: dict[str, str]):
    variables = {
        "MESEDI_DATABASE_URL": settings.database_url,
        "MESEDI_BROKER_URL": settings.broker_url,
        "MESEDI_WEB_WORKERS": "1",
        "MESEDI_WORKER_PROCESSES": "1",
    }
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mesedi_server.cli", *program],
            env=os.environ | variables | environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            yield process, log
        finally:
            _end(process)


def _wait_until_it_answers(server: LiveServer, log) -> None:
    give_up_at = time.monotonic() + START_S
    while time.monotonic() < give_up_at and server.process.poll() is None:
        try:
            if server.send("GET", "/health").status == 200:
                return
        except (OSError, HTTPException):
            time.sleep(0.02)
    log.seek(0)
    raise AssertionError(f"the web process does not answer: {log.read().decode()[-2000:]}")


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
