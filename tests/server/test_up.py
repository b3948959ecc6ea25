"""`mesedi-server up` as a person meets it: started, used, stopped, started again."""

import html
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from queue import Empty, Queue

import pytest

from mesedi_server import migrating
from mesedi_server.embedded import EmbeddedServers

MESEDI = [sys.executable, "-m", "mesedi_server.cli"]
PATIENCE_S = 60.0


class Up:
    """A running `mesedi-server up`, and what it has printed."""

    def __init__(self, data: Path, port: int, program: Sequence[str] = MESEDI) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MESEDI_")}
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [*program, "up", "--port", str(port), "--data", str(data)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self.printed = ""
        self._lines: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, text: str) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while text not in self.printed:
            try:
                line = self._lines.get(timeout=max(0.1, give_up_at - time.monotonic()))
            except Empty:
                pytest.fail(f"{text!r} was not printed, only: {self.printed}")
            if line is None:
                pytest.fail(f"ended without printing {text!r}: {self.printed}")
            self.printed += line

    def found(self, pattern: str) -> str | None:
        match = re.search(pattern, self.printed)
        return match and match.group(0)

    def call(self, method: str, path: str, key: str, body: object = None) -> dict:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)

    @cached_property
    def operator(self) -> urllib.request.OpenerDirector:
        """A browser in which the operator has signed in."""
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(self.found(r"http\S+/sign-in\?token=\S+"), timeout=20).close()
        return browser

    def page(self, path: str) -> str:
        """Open a page as the operator."""
        with self.operator.open(self.url + path, timeout=20) as response:
            return response.read().decode()

    def interrupt(self) -> int:
        """Press Ctrl-C: the signal reaches everything that runs in the foreground."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """Kill what still runs, and read what it said to the end."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self.process.stdout.close()

    def rest(self) -> str:
        """Return what it printed at last, after its end."""
        return "".join(filter(None, self._lines.queue))

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def up(data: Path, port: int, program: Sequence[str] = MESEDI):
    running = Up(data, port, program)
    try:
        running.wait_for("Ctrl-C stops it.")
        yield running
    finally:
        running.end()


@pytest.fixture
def data(tmp_path):
    # Readable for the account that root hands the servers to.
    return tmp_path / "data"


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(data: Path, *words: str) -> str:
    done = subprocess.run(
        [*MESEDI, *words, "--data", str(data)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def score(event_id: str, value: float) -> dict:
    payload = {"evaluator_id": "ragas", "metric_type": "faithfulness", "score": value}
    return {
        "event_id": event_id,
        "execution_id": "exec-1",
        "event_type": "eval_score",
        "payload": payload,
    }


def test_a_first_start_is_usable_at_once_and_a_second_goes_on_with_the_data(data, port):
    with up(data, port) as first:
        key = first.found(r"mesedi_sk_\S+")
        first.call("POST", "/events", key, [score("evt-1", 0.2)])
        first.call("PATCH", "/executions/exec-1", key, {"status": "completed"})
        reader = command(data, "create-key", "--project", "default", "--scopes", "read")
        groups = _wait_for_groups(first, reader)
        assert first.interrupt() == 0
        assert _servers_of(data) == []

    with up(data, port) as second:
        assert second.found(r"mesedi_sk_\S+") is None
        assert second.found(r"/sign-in\?token=\S+")
        assert second.call("GET", "/failure-groups", reader)["failure_groups"] == groups
        assert [group["signature"] for group in groups] == ["grounding_failure:ragas:faithfulness"]


def test_a_first_start_that_is_broken_off_takes_no_key_along(data, port):
    broken_off = Up(data, port)
    try:
        while not (data / "address").exists():
            assert broken_off.process.poll() is None
            time.sleep(0.01)
        # The database is ready, and the web process needs longer than this to answer.
        time.sleep(0.5)
        broken_off.interrupt()
    finally:
        broken_off.end()
    with up(data, port) as running:
        running.interrupt()

    assert "Ingest key" in broken_off.rest() + running.printed


def test_a_demo_before_the_first_welcome_takes_no_key_along(data, port):
    with EmbeddedServers(data) as addresses:
        migrating.upgrade(addresses.database_url)
    command(data, "demo")

    with up(data, port) as running:
        running.interrupt()

    assert running.found("Ingest key")


def test_the_secret_key_is_made_once_and_reaches_all_processes(data, port):
    judge = {"url": "https://judge.example.com/v1", "model": "m", "key": "sk-0123456789abcdef"}

    with up(data, port) as first:
        secret = (data / "secret-key").read_text()
        admin = command(data, "create-key", "--project", "default", "--scopes", "admin")
        assert first.call("PUT", "/project/judge", admin, judge)["judge"]["has_key"]
        first.interrupt()
    with up(data, port) as second:
        second.interrupt()

    assert (data / "secret-key").read_text() == secret
    assert stat.S_IMODE((data / "secret-key").stat().st_mode) == 0o600
    assert secret.strip() not in first.printed + second.printed


def test_commands_reach_a_stopped_server_too(data, port):
    with up(data, port) as running:
        running.interrupt()

    project_id = command(data, "create-project", "shop")
    key = command(data, "create-key", "--project", "shop", "--scopes", "ingest,read")
    link = command(data, "sign-in-link")

    assert re.fullmatch(r"proj-[0-9a-f]{12}", project_id)
    assert re.fullmatch(r"mesedi_sk_\S{40,}", key)
    assert link.startswith(f"http://127.0.0.1:{port}/sign-in?token=")


SCRIPT = Path(sys.executable).with_name("mesedi-server")


@pytest.mark.parametrize("program", [MESEDI, [os.path.relpath(SCRIPT)]], ids=["module", "script"])
def test_a_command_that_a_page_prints_runs_in_any_folder(tmp_path, port, program):
    # The folder's name is relative, as that of `make run` is, and needs quotes.
    data = Path(os.path.relpath(tmp_path / "my data"))
    with up(data, port, program) as running:
        printed = running.page("/")
        command = html.unescape(re.search(r"<code>(.* create-key .*)</code>", printed)[1])
        key = subprocess.run(
            command, shell=True, cwd="/", capture_output=True, text=True, check=True
        ).stdout.strip()
        running.call("POST", "/events", key, [score("evt-1", 0.2)])


def test_the_demo_says_when_and_where_its_groups_appear_and_is_stored_once(data, port):
    with up(data, port) as running:
        first = command(data, "demo")
        reader = command(data, "create-key", "--project", "demo", "--scopes", "read")
        _wait_for_groups(running, reader)
        page = running.page(first.split()[-1].removeprefix(running.url))
        own = running.page("/")
        running.interrupt()

    again = command(data, "demo")

    assert re.match(r"\d\d executions are stored, 0 were there already\.", first)
    assert f"within seconds:\n  {running.url}/p/proj-" in first
    assert '<span class="role">admin</span>' in page
    assert "grounding_failure" in page
    assert "Send the first score" in own
    assert again.split()[-1] == first.split()[-1]
    assert re.match(r"0 executions are stored, \d\d were there already\.", again)
    assert (
        "The server does not run; their groups appear when it does:"
        f" {shlex.join(MESEDI)} up --data {data}" in again
    )


def test_a_used_port_is_told_with_the_way_out(data, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()

        refused = _refused("up", "--port", str(port), "--data", str(data))

    assert "is in use by another program" in refused
    assert "--port" in refused


def test_a_folder_in_use_is_told_with_the_way_out(data, port):
    with up(data, port), socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        free = other.getsockname()[1]
        other.close()

        refused = _refused("up", "--port", str(free), "--data", str(data))

    assert f"The server of {data} runs already, at http://127.0.0.1:{port}." in refused
    assert f"{shlex.join(MESEDI)} sign-in-link --data {data}" in refused
    assert "--data DIR" in refused


def test_a_second_start_is_told_where_the_first_runs(data, port):
    with up(data, port):
        refused = _refused("up", "--port", str(port), "--data", str(data))

    assert f"The server of {data} runs already, at http://127.0.0.1:{port}." in refused


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path, port):
    (tmp_path / "file").write_text("in the way")

    refused = _refused("up", "--port", str(port), "--data", str(tmp_path / "file" / "data"))

    assert "cannot be used" in refused
    assert "--data" in refused


def test_a_killed_server_starts_again_with_its_data(data, port):
    with up(data, port) as running:
        key = running.found(r"mesedi_sk_\S+")
        running.call("POST", "/events", key, [score("evt-1", 0.2)])
        running.process.kill()
        running.process.wait(PATIENCE_S)

    with up(data, port) as again:
        answer = again.call("POST", "/events", key, [score("evt-1", 0.2)])

    assert answer["duplicates"] == 1


def test_settings_that_are_missing_are_named():
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MESEDI_")}

    done = subprocess.run(
        [*MESEDI, "web"], capture_output=True, text=True, env=environment, check=False
    )

    assert done.returncode == 1
    assert "MESEDI_DATABASE_URL is not set" in done.stderr
    assert "Traceback" not in done.stderr


def _refused(*words: str) -> str:
    done = subprocess.run(
        [*MESEDI, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("wrong", [{"MESEDI_WEB_THREADS": "many"}, {"MESEDI_SETTLE_SECONDS": "-1"}])
def test_a_wrong_setting_is_told_at_once_and_nothing_is_started(data, port, wrong):
    begun = time.monotonic()
    done = subprocess.run(
        [*MESEDI, "up", "--port", str(port), "--data", str(data)],
        capture_output=True,
        text=True,
        env=os.environ | wrong,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"mesedi-server: {next(iter(wrong))} must be ")
    assert done.stderr.count("\n") == 1
    assert not data.exists()
    assert time.monotonic() - begun < PATIENCE_S / 4


def _wait_for_groups(running: Up, key: str) -> list[dict]:
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        if groups := running.call("GET", "/failure-groups", key)["failure_groups"]:
            return groups
        time.sleep(0.05)
    pytest.fail("no group appeared")


def _servers_of(data: Path) -> list[str]:
    """Programs that still have a file of the data folder on their command line, or work in it."""
    listed = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    return [line for line in listed.splitlines() if str(data) in line and "ps -eo" not in line]
