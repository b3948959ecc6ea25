"""What people say about answers of a run: appended, never changed. The tables come with the first.

Each row's digest covers the row before it, so that none can be changed or taken out of the middle.
"""

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from evaluators.canonical import canonical, digest
from evaluators.errors import CorruptRunError
from evaluators.store.database import has_tables
from evaluators.store.state import add_event

TABLE_VERSION = 1

_SCHEMA = (
    "CREATE TABLE review_schema (version INTEGER NOT NULL)",
    """
    CREATE TABLE reviews (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        content TEXT NOT NULL,
        digest TEXT NOT NULL
    )
    """,
)

Json = dict[str, Any]


def exist(connection: sqlite3.Connection) -> bool:
    """Say whether the run was ever reviewed. Raises RunError for tables of another version."""
    return has_tables(connection, "review", TABLE_VERSION)


def stored(connection: sqlite3.Connection) -> Iterator[Json]:
    """Yield all reviews in the order of their import. Raises CorruptRunError."""
    if exist(connection):
        for review, _ in _chain(connection):
            yield review


def add(connection: sqlite3.Connection, reviews: Iterable[Json]) -> None:
    """Append reviews."""
    if not exist(connection):
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO review_schema VALUES (?)", (TABLE_VERSION,))
    tail = deque(_chain(connection), maxlen=1)
    last = tail[0][1] if tail else ""
    for review in reviews:
        content = canonical(review)
        last = digest([last, content])
        connection.execute(
            "INSERT INTO reviews (id, content, digest) VALUES (?, ?, ?)",
            (review["annotation"]["id"], content, last),
        )
    add_event(connection, "reviews_imported")


def _chain(connection: sqlite3.Connection) -> Iterator[tuple[Json, str]]:
    last = ""
    rows = connection.execute("SELECT id, content, digest FROM reviews ORDER BY sequence")
    for review_id, content, found in rows:
        last = digest([last, content])
        review: Json = json.loads(content) if last == found else {}
        if not review or review["annotation"]["id"] != review_id:
            raise CorruptRunError(f"review {review_id} does not match its digest")
        yield review, last


class CommittedTurn(NamedTuple):
    """A committed turn: its dataset record, and the generated answer if there is one."""

    ordinal: int
    session_id: str
    case_id: str | None
    answer: str | None
    record: str


def committed_turns(connection: sqlite3.Connection, stream: str) -> Iterator[CommittedTurn]:
    """Yield the committed turns of a stream in order."""
    rows = connection.execute(
        """
        SELECT ordinal, session_id, case_id, answer, content
        FROM records JOIN inputs USING (stream, ordinal) JOIN dataset USING (position)
        LEFT JOIN observations USING (stream, ordinal)
        WHERE stream = ? ORDER BY ordinal
        """,
        (stream,),
    )
    return map(CommittedTurn._make, rows)
