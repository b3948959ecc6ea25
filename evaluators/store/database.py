"""The file itself: its tables, its versions, how it is opened."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from evaluators import rundir
from evaluators.errors import CorruptRunError, RunError

Connection: TypeAlias = sqlite3.Connection
"""An open run; its name for modules that have nothing to do with SQL."""

_Item = TypeVar("_Item")

VERSION = 2
ARCHIVED = 0x6D656172
"""The application id ("mear") of a database that came through an archive."""
BATCH = 1000
_READABLE = (1, 2)
_BUSY_TIMEOUT_S = 60  # readers of a big report hold writers up

_SCHEMA = """
CREATE TABLE manifest (
    only INTEGER PRIMARY KEY CHECK (only = 1), content TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE run_state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    status TEXT NOT NULL
        CHECK (status IN ('running', 'captured', 'failed', 'interrupted', 'succeeded')),
    phase TEXT NOT NULL,
    failure_kind TEXT,
    exception_type TEXT,
    updated_at TEXT NOT NULL
);
CREATE TABLE source_artifacts (digest TEXT PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE dataset (position INTEGER PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE inputs (
    stream TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    position INTEGER NOT NULL REFERENCES dataset,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    case_id TEXT,
    case_revision TEXT,
    split_group TEXT NOT NULL,
    tags TEXT NOT NULL,
    persona_id TEXT,
    PRIMARY KEY (stream, ordinal)
) WITHOUT ROWID;
CREATE TABLE attempts (
    id TEXT PRIMARY KEY,
    stream TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    input_digest TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'unknown_outcome')),
    failure_kind TEXT,
    exception_type TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    FOREIGN KEY (stream, ordinal) REFERENCES inputs
);
CREATE INDEX attempts_of_turn ON attempts (stream, ordinal);
CREATE TABLE observations (
    stream TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('generated', 'recorded')),
    attempt_id TEXT REFERENCES attempts CHECK ((origin = 'generated') = (attempt_id IS NOT NULL)),
    answer TEXT CHECK ((origin = 'generated') = (answer IS NOT NULL)),
    captured_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (stream, ordinal),
    FOREIGN KEY (stream, ordinal) REFERENCES inputs
) WITHOUT ROWID;
CREATE TABLE records (
    stream TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (stream, ordinal),
    FOREIGN KEY (stream, ordinal) REFERENCES inputs
) WITHOUT ROWID;
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    time TEXT NOT NULL,
    reference TEXT
);
"""


def create(path: Path) -> None:
    """Make an empty run database that only its owner can read."""
    path.touch(mode=0o600, exist_ok=False)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    finally:
        connection.close()


@contextmanager
def opened(
    directory: Path, *, write: bool = False, is_locked: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open the database of a run, read-only unless `write`.

    Who writes holds the run's lock; `is_locked` says that a reader holds it too.

    Raises RunError for a version that cannot be read (or written), CorruptRunError for a file
    that is no database.
    """
    path = rundir.database(directory)
    try:
        connection = _connect(path, "rw") if write else _connect_reader(path, is_locked=is_locked)
        try:
            _check_version(connection, path, write=write)
            yield connection
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        raise RunError(f"{path} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise CorruptRunError(f"{path} is damaged: {error}") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path.resolve()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=_BUSY_TIMEOUT_S,
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("SELECT 1 FROM sqlite_master")  # whatever is wrong shows here
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _connect_reader(path: Path, *, is_locked: bool) -> sqlite3.Connection:
    try:
        return _connect(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
            raise
    # A process killed while it committed leaves a journal that only a writer may apply.
    with nullcontext() if is_locked else rundir.locked(path.parent):
        _connect(path, "rw").close()
    return _connect(path, "ro")


def _check_version(connection: sqlite3.Connection, path: Path, *, write: bool) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in _READABLE:
        raise RunError(f"{path} has version {version}, which this program does not know")
    if write and version != VERSION:
        raise RunError(f"{path} has version {version}: it can be read, not written")
    if write and connection.execute("PRAGMA application_id").fetchone()[0] == ARCHIVED:
        raise RunError(f"{path} belongs to a read-only archive")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what happens inside, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def count(connection: sqlite3.Connection, statement: str, *parameters: object) -> int:
    """Return the one number that a statement selects."""
    found: int = connection.execute(statement, parameters).fetchone()[0]
    return found


def has_tables(connection: sqlite3.Connection, kind: str, version: int) -> bool:
    """Say whether a run has the tables of a kind; raises RunError for those of another version."""
    statement = "SELECT count(*) FROM sqlite_master WHERE name = ?"
    if not count(connection, statement, f"{kind}_schema"):
        return False
    found = count(connection, f"SELECT coalesce(max(version), 0) FROM {kind}_schema")
    if found != version:
        raise RunError(f"{kind} tables of version {found} are not known to this program")
    return True


def batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Group items so that none but a thousand are in memory."""
    left = iter(items)
    while batch := list(islice(left, BATCH)):
        yield batch
