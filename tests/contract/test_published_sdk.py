"""The published SDK `mesedi` 0.7.0, unchanged, against live server processes (`make test-contract`).

It has the import name of our own SDK, so it lives in an environment of its own, made here from PyPI.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from mesedi_server.config import Settings
from mesedi_server.store import projects
from mesedi_server.store.database import Database
from tests.server.live import LiveServer, web_process, worker_process

pytestmark = pytest.mark.contract

REQUIREMENT = "mesedi==0.7.0"
PIPELINE = Path(__file__).with_name("pipeline.py")

INSTALL_S = 300
RUN_S = 120
PATIENCE_S = 30.0
POLL_S = 0.1

# What pip says where no index can be reached.
NO_NETWORK = "from versions: none"

GROUPS = {
    "scores": {
        "grounding_failure:judge/strict:faithfulness": "failed_verdict",
        "grounding_failure:judge/mild:faithfulness": "mean_below_floor",
        "grounding_failure:judge/nan:faithfulness": "failed_verdict",
    },
    "validators": {"citations:missing": "failed_check"},
    "instant": {},
    "many-events": {},
    "human": {"hitl_timeout:explicit": "explicit"},
    "budget": {},
    "remote-halt": {},
    "crash": {},  # its signature depends on where the file lies
}
EVENTS = {
    "scores": 7,
    "validators": 2,
    "instant": 0,
    "many-events": 230,
    "human": 2,
    "budget": 3,
    "crash": 0,
}
ENDS = {
    "scores": ("completed", None),
    "validators": ("completed", None),
    "instant": ("completed", None),
    "many-events": ("completed", None),
    "human": ("completed", None),
    "budget": ("halted", "halt:step_count"),
    "remote-halt": ("halted", "halt:remote_signal"),
}


@dataclass
class Played:
    """What the pipeline said of itself, and what the server knows of it, by run."""

    account: dict
    executions: dict[str, dict]


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    """A Python that has the published SDK."""
    folder = tmp_path_factory.mktemp("published-sdk")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=INSTALL_S)
    program = str(folder / "bin" / "python")
    pip = [program, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"]
    done = subprocess.run(
        [*pip, "install", "--quiet", REQUIREMENT],
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if NO_NETWORK in done.stderr:
        pytest.skip(f"PyPI cannot be reached, so {REQUIREMENT} was not tried: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    return program


@pytest.fixture(scope="module")
def played(python, servers, template, broker_url) -> Iterator[Played]:
    """The pipeline run once, from its first request to the groups."""
    with servers.fresh_database(template) as url:
        settings = Settings(database_url=url, broker_url=broker_url)
        ingest, admin = make_keys(url)
        with (
            web_process(settings) as server,
            worker_process(settings),
            ThreadPoolExecutor() as pool,
        ):
            run = pool.submit(run_pipeline, python, server, ingest)
            halt_when_it_runs(server, admin, run.done)
            yield Played(run.result(RUN_S), wait_for_the_groups(server, admin))


def make_keys(url: str) -> list[str]:
    database = Database(url, connections=1)
    with database.transaction() as connection:
        project = projects.create(connection, "contract")
        keys = [projects.create_key(connection, project, [scope]) for scope in ("ingest", "admin")]
    database.close()
    return keys


def run_pipeline(python: str, server: LiveServer, key: str) -> dict:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, PIPELINE],
        env=environment | {"MESEDI_API_KEY": key, "MESEDI_BASE_URL": server.url},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def halt_when_it_runs(server: LiveServer, key: str, is_over: Callable[[], bool]) -> None:
    def find() -> str | None:
        rows = server.send("GET", "/executions", key=key).json["executions"]
        running = [row["execution_id"] for row in rows if row["tenant_id"] == "remote-halt"]
        return running[0] if running else None

    execution_id = wait_until(lambda: find() or is_over())
    if isinstance(execution_id, str):
        server.send("POST", f"/executions/{execution_id}/halt", {"reason": "operator"}, key)


def wait_for_the_groups(server: LiveServer, key: str) -> dict[str, dict]:
    def look() -> dict[str, dict] | None:
        rows = server.send("GET", "/executions", key=key).json["executions"]
        shown = {
            row["tenant_id"]: server.send("GET", f"/executions/{row['execution_id']}", key=key).json
            for row in rows
        }
        examined = [content["execution"]["examined_at"] for content in shown.values()]
        return shown if set(shown) == set(GROUPS) and all(examined) else None

    return wait_until(look)


def wait_until(look: Callable):
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        if found := look():
            return found
        time.sleep(POLL_S)
    raise AssertionError(f"nothing came within {PATIENCE_S:g} s")


def test_the_sdk_lost_nothing_and_was_refused_nothing(played):
    account = played.account

    assert account["is_drained"] is True
    assert (account["rejected"], account["lost"], account["complete"]) == (0, 0, True)
    assert account["delivered"] >= 2 * len(GROUPS)


@pytest.mark.parametrize("run", EVENTS)
def test_every_event_has_arrived(played, run):
    assert len(played.executions[run]["events"]) == EVENTS[run]


@pytest.mark.parametrize("run", ENDS)
def test_every_run_has_ended_as_it_did(played, run):
    execution = played.executions[run]["execution"]

    assert (execution["status"], execution["crash_signature"]) == ENDS[run]
    assert execution["closed_at"] is not None
    assert (execution["sdk_language"], execution["sdk_version"]) == ("python", "0.7.0")


@pytest.mark.parametrize("run", [run for run in GROUPS if run != "crash"])
def test_the_groups_are_those_of_the_run(played, run):
    groups = played.executions[run]["failure_groups"]

    assert {group["signature"]: group["rule"] for group in groups} == GROUPS[run]


def test_a_crash_is_grouped_by_the_signature_that_the_sdk_made(played):
    content = played.executions["crash"]

    (group,) = content["failure_groups"]
    assert group["failure_class"] == "crashes"
    assert group["signature"] == content["execution"]["crash_signature"]
    assert len(group["signature"]) == 16


def test_a_person_was_waited_for_twice(played):
    execution = played.executions["human"]["execution"]

    assert (execution["pause_count"], execution["paused_at"]) == (2, None)
