"""What is frozen before the first answer: the dataset, the planned turns, the manifest."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from evaluators.canonical import ListDigest, canonical, text_digest
from evaluators.dataset import Record
from evaluators.errors import CorruptRunError
from evaluators.store.database import BATCH, batches
from evaluators.store.state import begin

# What planning sorts by; SQLite sorts on disk, so that memory does not grow with the dataset.
_TURNS = """
CREATE TEMP TABLE turns (
    position INTEGER PRIMARY KEY, line INTEGER, session_id TEXT, turn_index INTEGER, role TEXT,
    case_id TEXT, declared_revision TEXT, split_group TEXT, tags TEXT, persona_id TEXT
)
"""


class PlannedTurn(NamedTuple):
    """One turn of one stream, a row of `inputs`.

    `ordinal` is its place in the stream; `tags` is a JSON list of strings.
    """

    stream: str
    ordinal: int
    position: int
    session_id: str
    role: str
    case_id: str | None
    case_revision: str | None
    split_group: str
    tags: str
    persona_id: str | None


class SortedTurn(NamedTuple):
    """One turn in the order of planning. `content` is left out for assistant turns."""

    position: int
    session_id: str
    role: str
    case_id: str | None
    declared_revision: str | None
    split_group: str
    tags: str
    persona_id: str | None
    content: str | None


def stage(connection: sqlite3.Connection, records: Iterable[Record]) -> str:
    """Store the records in file order, note what planning needs; return the dataset's digest."""
    connection.execute(_TURNS)
    whole = ListDigest()
    for batch in batches(records):
        whole.add(",".join([record.content for record in batch]))
        connection.executemany(
            "INSERT INTO dataset VALUES (?, ?)", [(r.position, r.content) for r in batch]
        )
        connection.executemany(
            "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [record[:-1] for record in batch],
        )
    return whole.hexdigest()


def repeated_turns(connection: sqlite3.Connection) -> Iterator[tuple[int, str, int, int]]:
    """Yield (line, session id, turn index, first line) of every turn index used twice."""
    yield from connection.execute(
        """
        SELECT line, session_id, turn_index, first FROM (
            SELECT line, session_id, turn_index,
                   min(line) OVER (PARTITION BY session_id, turn_index) AS first
            FROM turns WHERE turn_index IS NOT NULL
        ) WHERE line > first ORDER BY line
        """
    )


def sorted_turns(connection: sqlite3.Connection) -> Iterator[SortedTurn]:
    """Yield the staged turns: sessions by id, turns by index, ties in file order."""
    rows = connection.execute(
        """
        SELECT position, session_id, role, case_id, declared_revision, split_group, tags,
               persona_id, CASE WHEN role = 'assistant' THEN NULL ELSE content END
        FROM turns JOIN dataset USING (position)
        ORDER BY session_id, coalesce(turn_index, 0), position
        """
    )
    return map(SortedTurn._make, rows)


def add_planned(connection: sqlite3.Connection, turns: Iterable[PlannedTurn]) -> None:
    """Store planned turns."""
    for batch in batches(turns):
        connection.executemany("INSERT INTO inputs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", batch)


def repeated_cases(connection: sqlite3.Connection) -> Iterator[tuple[int, str, int]]:
    """Yield (line, case id, first line) of every case id used twice in a stream."""
    yield from connection.execute(
        """
        SELECT DISTINCT line, case_id, first FROM (
            SELECT line, inputs.case_id,
                   min(line) OVER (PARTITION BY stream, inputs.case_id) AS first
            FROM inputs JOIN turns USING (position) WHERE inputs.case_id IS NOT NULL
        ) WHERE line > first ORDER BY line
        """
    )


def plan_digest(connection: sqlite3.Connection) -> str:
    """Digest of the planned turns, by stream and ordinal."""
    whole = ListDigest()
    rows = connection.execute("SELECT * FROM inputs ORDER BY stream, ordinal")
    while batch := rows.fetchmany(BATCH):
        whole.add_values(batch)
    return whole.hexdigest()


def add_artifact(connection: sqlite3.Connection, content: bytes) -> str:
    """Store bytes under their digest, and return it."""
    key = sha256(content).hexdigest()
    connection.execute("INSERT OR IGNORE INTO source_artifacts VALUES (?, ?)", (key, content))
    return key


def freeze(connection: sqlite3.Connection, frozen: dict[str, Any]) -> None:
    """Store the manifest; from here on the run exists."""
    content = canonical(frozen)
    connection.execute("INSERT INTO manifest VALUES (1, ?, ?)", (content, text_digest(content)))
    begin(connection, frozen["id"])


def manifest(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return what was frozen, or raise CorruptRunError."""
    row = connection.execute("SELECT content, digest FROM manifest").fetchone()
    if row is None or text_digest(row[0]) != row[1]:
        raise CorruptRunError("the manifest does not match its digest")
    loaded: dict[str, Any] = json.loads(row[0])
    return loaded
