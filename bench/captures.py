"""Measure a capture of a large failure group: time, and memory of the server and of the command.

    python -m bench.captures [--failing 50000]

The project of `bench.fill` with one group, as many executions again that did not fail, and eight passages an answer.
Memory is the highest resident set of the web process and of `mesedi-eval`; the second row, of a tenth of the group,
tells whether it grows.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.fill import PROJECT, fill
from bench.system import System, running
from mesedi_server.store import projects
from mesedi_server.store.database import Database

_MB = 1024 * 1024
_PASSAGES = """
UPDATE events SET payload = payload || jsonb_build_object('context', jsonb_build_object('excerpts', (
    SELECT jsonb_agg(md5(events.event_id || p) || repeat(' Returns are possible within 30 days.', 12))
    FROM generate_series(1, 8) AS p)))
WHERE event_type = 'answer'
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--failing", type=int, default=50_000)
    failing = parser.parse_args().failing
    with running() as system:
        fill(system.database_url, 10 * failing, failing, 1)
        key, group = _prepare(system.database_url)
        print(
            f"{'executions':>10} {'s':>7} {'records':>8} {'MB':>6} {'web MB':>7} {'command MB':>11}"
        )
        for limit in (failing // 10, failing):
            _measure(system, key, group, limit)


def _prepare(database_url: str) -> tuple[str, str]:
    database = Database(database_url, connections=1, patient=True)
    with database.transaction() as connection:
        connection.exec_driver_sql(_PASSAGES)
        key = projects.create_key(connection, projects.by_name(connection, PROJECT), ["read"])
        group = connection.exec_driver_sql("SELECT group_id FROM failure_groups").scalar_one()
    database.close()
    return key, group


def _measure(system: System, key: str, group: str, limit: int) -> None:
    with tempfile.TemporaryDirectory(prefix="mesedi-bench-") as folder:
        words = ["capture", "--from-group", group, "--server", f"http://127.0.0.1:{system.port}"]
        command = [sys.executable, "-m", "evaluators", *words, "--out", folder]
        begin = time.monotonic()
        child = subprocess.Popen(
            [*command, "--limit", str(limit)],
            env=os.environ | {"MESEDI_API_KEY": key},
            stdout=subprocess.DEVNULL,
        )
        web = 0
        while child.poll() is None:
            web = max(web, sum(_resident(one) for one in system.web.children(recursive=True)))
            time.sleep(0.05)
        took = time.monotonic() - begin
        if child.returncode != 0:
            raise SystemExit(f"the capture failed with {child.returncode}")
        transcript = next(Path(folder).glob("*/transcripts/*.jsonl"))
        with transcript.open("rb") as file:
            records = sum(1 for _ in file)
        size = transcript.stat().st_size / _MB
    own = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{limit:10} {took:7.1f} {records:8} {size:6.0f} {web / _MB:7.0f} {own:11.0f}")


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    main()
