"""Measure how long the server takes for each page of a large project.

    python -m bench.fill --data DIR
    python -m bench.pages --data DIR [--visits 100]

Each visit asks for another group, execution or filter where the page has one. The time is the application's own, from
the request's arrival to the answer's last byte, in one process; p95 must stay under 60 ms. On a machine that does other
things too, the CPU time beside it (application and database, a visit) tells more.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from flask import Flask
from werkzeug.test import Client

from bench.fill import PROJECT
from mesedi_server.app import create_served_app
from mesedi_server.config import Settings
from mesedi_server.embedded import EmbeddedServers
from mesedi_server.store import people, projects
from mesedi_server.store.database import Database

TARGET_MS = 60.0
WARM_UP = 3

_GROUPS = "SELECT group_id FROM failure_groups WHERE project_pk = %(project)s"
_EXECUTIONS = "SELECT execution_id FROM executions WHERE project_pk = %(project)s ORDER BY pk DESC"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that bench.fill made")
    parser.add_argument("--visits", type=int, default=100)
    arguments = parser.parse_args()
    with EmbeddedServers(arguments.data) as addresses:
        settings = Settings(database_url=addresses.database_url, broker_url=addresses.broker_url)
        measure(create_served_app(settings), addresses.database_url, arguments.visits)


def measure(app: Flask, database_url: str, visits: int) -> None:
    """Visit each page and print its times in milliseconds."""
    database = Database(database_url, connections=1)
    with database.transaction() as connection:
        project = projects.by_name(connection, PROJECT)
        link = people.create_sign_in_link(connection, people.ensure_operator(connection, "bench"))
        parameters = {"project": project.pk}
        groups = list(connection.exec_driver_sql(_GROUPS, parameters).scalars())
        limited = f"{_EXECUTIONS} LIMIT 200000"
        executions = list(connection.exec_driver_sql(limited, parameters).scalars())
    database.close()
    client = app.test_client()
    client.get(f"/sign-in?token={link}")
    print(f"{'page':44} {'p50':>7} {'p95':>7} {'max':>7} {'CPU':>7}  kB")
    for title, address in _addresses(groups, executions).items():
        _print_row(
            title, client, lambda address=address: f"/p/{project.project_id}{address()}", visits
        )


def _addresses(groups: Sequence[str], executions: Sequence[str]) -> dict[str, Callable[[], str]]:
    choose = random.Random(1).choice
    releases = [f"r{number}" for number in range(12)]
    environments = ("production", "staging")
    return {
        "groups": lambda: "/groups",
        "groups, 7 days": lambda: "/groups?days=7",
        "groups, 90 days": lambda: "/groups?days=90",
        "groups, all days, all states": lambda: "/groups?days=all&state=all",
        "groups, a later page": lambda: f"/groups?offset={choose(range(50, 4000, 50))}",
        "groups of a release": lambda: f"/groups?release={choose(releases)}&days=90",
        "groups of a release, all days": lambda: f"/groups?release={choose(releases)}&days=all",
        "groups of an environment": lambda: f"/groups?environment={choose(environments)}",
        "groups of an environment, 90 days": (
            lambda: f"/groups?environment={choose(environments)}&days=90"
        ),
        "groups by everything": (
            lambda: (
                f"/groups?environment={choose(environments)}&release={choose(releases)}"
                f"&metric=metric-{choose(range(5))}&state=all&q=judge&days=90"
            )
        ),
        "groups of an evaluator, 90 days": (
            lambda: f"/groups?evaluator=judge-{choose(range(1000)):04}&days=90"
        ),
        "groups, search": lambda: f"/groups?q=judge-{choose(range(100)):02}",
        "group": lambda: f"/groups/{choose(groups)}",
        "group, one of the largest": lambda: f"/groups/{choose(groups[:50])}?days=90",
        "execution": lambda: f"/executions/{choose(executions)}",
        "executions": lambda: "/executions",
        "executions, search": lambda: f"/executions?q={choose(executions)[-5:]}",
        "executions of a release": lambda: f"/executions?release={choose(releases)}",
        "executions of a pair": lambda: f"/executions?evaluator=judge-{choose(range(1000)):04}",
        "thresholds": lambda: "/thresholds",
        "thresholds of grounding_failure": lambda: "/thresholds/grounding_failure",
        "settings": lambda: "/settings",
        "keys": lambda: "/settings/keys",
        "members": lambda: "/settings/members",
        "audit log": lambda: "/settings/audit-log",
    }


def _print_row(title: str, client: Client, address: Callable[[], str], visits: int) -> None:
    for _ in range(WARM_UP):
        client.get(address())
    times_ms, size, cpu_s = [], 0, _cpu_s()
    for _ in range(visits):
        start = time.perf_counter()
        response = client.get(address())
        size = len(response.get_data())
        times_ms.append((time.perf_counter() - start) * 1000)
        assert response.status_code == 200, (title, response.status_code)
    times_ms.sort()
    p50, p95 = times_ms[len(times_ms) // 2], times_ms[int(len(times_ms) * 0.95)]
    cpu_ms = (_cpu_s() - cpu_s) / visits * 1000
    mark = "" if p95 < TARGET_MS else "  too slow"
    print(
        f"{title:44} {p50:7.1f} {p95:7.1f} {times_ms[-1]:7.1f} {cpu_ms:7.1f}  {size // 1000}{mark}",
        flush=True,
    )


def _cpu_s() -> float:
    """Return what this process and the database that it started have used so far."""
    own = psutil.Process()
    family = [own, *own.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in family)


if __name__ == "__main__":
    main()
