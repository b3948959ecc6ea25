"""Copies of a run's database that are never written to again, and a look into foreign ones."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from evaluators.errors import CorruptRunError
from evaluators.store import calls, checks, evaluations, reviews
from evaluators.store.database import ARCHIVED, Connection, opened


def copy(directory: Path, path: Path) -> str:
    """Write a consistent copy of a run's database, marked read-only; return the run's id.

    Everything captured is checked against its digests first. `path` must not exist; only its
    owner can read it.
    """
    path.touch(mode=0o600, exist_ok=False)
    with opened(directory) as connection, closing(sqlite3.connect(path)) as target:
        connection.execute("BEGIN")
        run_id: str = checks.verify(connection)["id"]
        connection.backup(target)
    mark(path)
    return run_id


def mark(path: Path) -> None:
    """Mark a database as archived; no command opens it for writing from here on."""
    with closing(sqlite3.connect(path)) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != ARCHIVED:
            connection.execute(f"PRAGMA application_id = {ARCHIVED}")


def refuse_unsafe(path: Path) -> None:
    """Raise CorruptRunError unless a file is a whole archived database of plain tables.

    Views, triggers and virtual tables could make reading do something else.
    """
    address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            _refuse_unsafe(connection)
    except sqlite3.DatabaseError as error:
        raise CorruptRunError(f"the archived database is damaged: {error}") from error


def _refuse_unsafe(connection: sqlite3.Connection) -> None:
    for kind, name, is_virtual in connection.execute(
        "SELECT type, name, type = 'table' AND coalesce(rootpage, 0) = 0 FROM sqlite_master"
    ):
        if kind not in {"table", "index"} or is_virtual:
            what = "virtual table" if is_virtual else kind
            raise CorruptRunError(f"the archived database has a {what}, {name!r}")
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise CorruptRunError(f"the archived database is damaged: {found}")
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise CorruptRunError("the archived database has rows that refer to nothing")


def verify_all(connection: Connection) -> str:
    """Check captures, evaluations, results, judge calls and reviews against their digests; return the run id.

    Raises CorruptRunError, RunError.
    """
    run_id: str = checks.verify(connection)["id"]
    if evaluations.exist(connection):
        _verify_evaluations(connection)
    for _ in reviews.stored(connection):
        pass
    return run_id


def _verify_evaluations(connection: Connection) -> None:
    for evaluation_id in _ids(connection, "evaluation_manifests"):
        evaluation = evaluations.of_id(connection, evaluation_id)
        if evaluation is not None:
            for _ in evaluations.cases(connection, evaluation, texts=False):
                pass
    for call_id in _ids(connection, "judge_calls"):
        calls.of_id(connection, call_id)


def _ids(connection: Connection, table: str) -> list[str]:
    return [found for (found,) in connection.execute(f"SELECT id FROM {table} ORDER BY rowid")]
