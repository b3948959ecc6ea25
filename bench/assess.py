"""Measure the assessing of failing answers by a real worker: rate, CPU, memory.

    python -m bench.assess [--answers 100000] [--processes 2]

Each answer has some 600 characters with five quantities and two citations, and five passages of 600 characters out of
20,000. The answers come in and are examined first, which is not measured; then a worker assesses them, beside its
database on the same cores.
"""

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil

from bench.evaluators import WORDS
from mesedi_server import migrating, tether
from mesedi_server.embedded import EmbeddedServers
from mesedi_server.embedded.servers import Addresses
from mesedi_server.store import assessments, events, failure_groups, projects
from mesedi_server.store.database import Database
from mesedi_server.store.failure_groups import GroupFilter
from mesedi_server.store.paging import Paging
from mesedi_server.tasks.detect import examine_all

CORPUS = 20_000
PASSAGES = 5
BATCH = 500
UNITS = ("mg", "days", "kg", "minutes", "°C", "%", "ml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mesedi-bench-")))
        folder.chmod(0o755)
        addresses = stack.enter_context(EmbeddedServers(folder / "data"))
        migrating.upgrade(addresses.database_url)
        database = stack.enter_context(closing(Database(addresses.database_url, connections=2)))
        project_pk = fill(database, arguments.answers)
        with worker(addresses, arguments.processes) as process:
            measure(database, process, server(folder), arguments.answers)
        show_sums(database, project_pk)


def fill(database: Database, answers: int) -> int:
    """Send failing executions with an answer each, and examine them; return the project's key."""
    chance = random.Random(7)
    corpus = [text(chance, quantities=4) for _ in range(CORPUS)]
    with database.transaction() as connection:
        project_pk = projects.create(connection, "bench").pk
    started = time.monotonic()
    for first in range(0, answers, BATCH):
        sent = [
            e for n in range(first, min(first + BATCH, answers)) for e in run(chance, corpus, n)
        ]
        with database.statement() as connection:
            events.store(connection, project_pk, json.dumps(sent), settle_s=0, debounce_s=0)
    stored = time.monotonic()
    while examine_all(database, settle_s=0):
        pass
    print(
        f"{answers} answers stored in {stored - started:.0f} s,"
        f" examined in {time.monotonic() - stored:.0f} s"
    )
    return project_pk


def run(chance: random.Random, corpus: list[str], number: int) -> Iterator[dict]:
    """Yield the events of an execution that fails: its score, its answer."""
    passages = chance.choices(corpus, k=PASSAGES)
    quoted = " ".join(chance.choice(passages).split()[:40])
    answer = f"{quoted} [1]. {text(chance, quantities=2)[:300]} [{chance.randint(2, 6)}]"
    payload = {
        "answer_id": f"ans-{number}",
        "question": f"What should I know about pump {number}?",
        "answer": answer,
        "context": {"passages": passages},
    }
    score = {"evaluator_id": "ragas", "metric_type": "faithfulness", "score": 0.3}
    for kind, body in (("eval_score", score), ("answer", payload)):
        yield {
            "event_id": f"{kind}-{number}",
            "execution_id": f"exec-{number}",
            "event_type": kind,
            "payload": body,
            "evaluator_id": body.get("evaluator_id"),
            "metric_type": body.get("metric_type"),
            "score": body.get("score"),
            "higher_is_better": True if kind == "eval_score" else None,
        }


def text(chance: random.Random, quantities: int) -> str:
    """Write some 600 characters."""
    words = chance.choices(WORDS, k=110)
    for place in chance.sample(range(len(words)), quantities):
        words[place] = f"{chance.randint(1, 500)} {chance.choice(UNITS)}"
    return " ".join(words)


@contextmanager
def worker(addresses: Addresses, processes: int) -> Iterator[psutil.Process]:
    environment = {
        **os.environ,
        "MESEDI_DATABASE_URL": addresses.database_url,
        "MESEDI_BROKER_URL": addresses.broker_url,
        "MESEDI_WORKER_PROCESSES": str(processes),
    }
    command = [sys.executable, "-m", "mesedi_server.cli", "worker"]
    child = tether.start(command, env=environment)
    try:
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait()


def server(folder: Path) -> psutil.Process:
    """Find the database server of a folder among others of this machine."""
    [lock] = folder.rglob("postmaster.pid")
    return psutil.Process(int(lock.read_text().split()[0]))


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and its children."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def measure(
    database: Database, process: psutil.Process, postgres: psutil.Process, answers: int
) -> None:
    """Watch the worker until everything is assessed."""
    while (done := count(database)) == 0:
        time.sleep(0.05)
    first, started = done, time.monotonic()
    before = cpu_s(process), cpu_s(postgres)
    memory: dict[int, float] = {}
    while done < answers:
        tenth = done * 10 // answers
        memory[tenth] = max(memory.get(tenth, 0.0), largest_mb(process))
        time.sleep(0.25)
        done = count(database)
    seconds, assessed = time.monotonic() - started, answers - first
    used = cpu_s(process) - before[0], cpu_s(postgres) - before[1]
    print(f"assessed: {assessed / seconds:.0f} answers/s")
    print(
        f"CPU µs/answer: worker {used[0] / assessed * 1e6:.0f}, database {used[1] / assessed * 1e6:.0f}"
    )
    shown = ", ".join(f"{tenth * 10} % {mb:.0f}" for tenth, mb in sorted(memory.items()))
    print(f"largest worker process, MB, by share assessed: {shown}")


def count(database: Database) -> int:
    with database.transaction() as connection:
        statement = "SELECT count(*) FROM assessments"
        return connection.exec_driver_sql(statement).scalar_one()


def largest_mb(process: psutil.Process) -> float:
    """Resident memory of the largest of the worker's processes."""
    return max(child.memory_info().rss for child in process.children(recursive=True)) / 1e6


def show_sums(database: Database, project_pk: int) -> None:
    """Time what a group's page reads."""
    with database.transaction() as connection:
        [group] = failure_groups.list_page(
            connection, project_pk, GroupFilter(), Paging(limit=10)
        ).items
        started = time.perf_counter()
        counts = assessments.counts_of_group(connection, group.pk)
        elapsed_ms = (time.perf_counter() - started) * 1000
    print(f"sums of the latest {counts.executions} failing executions read in {elapsed_ms:.1f} ms")


if __name__ == "__main__":
    main()
