"""Turns and their answers: what is committed, and by whom it was said."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from evaluators import rundir
from evaluators.canonical import canonical, digest, parsed, text_digest
from evaluators.store.plan import PlannedTurn

_OBSERVATION = "stream, ordinal, origin, attempt_id, captured_at, digest, answer"


@dataclass(frozen=True, slots=True)
class Observation:
    """What is stored of one answer. `text` is exact; a context of None is missing, {} is not."""

    id: str
    stream: str
    ordinal: int
    attempt_id: str | None
    origin: str
    text: str
    context: dict[str, Any] | None
    usage: dict[str, Any] | None
    captured_at: str
    digest: str

    @property
    def context_status(self) -> str:
        """Say whether there is a context at all."""
        return "missing" if self.context is None else "provided"

    evidence_completeness = "unknown"


def turns_from(
    connection: sqlite3.Connection, stream: str, ordinal: int, limit: int
) -> list[tuple[PlannedTurn, str]]:
    """Return up to `limit` planned turns from an ordinal on, each with its dataset record."""
    rows = connection.execute(
        "SELECT inputs.*, content FROM inputs JOIN dataset USING (position) "
        "WHERE stream = ? AND ordinal >= ? ORDER BY ordinal LIMIT ?",
        (stream, ordinal, limit),
    )
    return [(PlannedTurn._make(row[:-1]), row[-1]) for row in rows]


def first_unanswered(connection: sqlite3.Connection, stream: str) -> PlannedTurn | None:
    """Return the first planned answer that is not committed."""
    row = connection.execute(
        "SELECT inputs.* FROM inputs LEFT JOIN records USING (stream, ordinal) "
        "WHERE inputs.stream = ? AND role = 'assistant' AND records.ordinal IS NULL "
        "ORDER BY inputs.ordinal LIMIT 1",
        (stream,),
    ).fetchone()
    return None if row is None else PlannedTurn._make(row)


def said(
    connection: sqlite3.Connection, stream: str, session_id: str, before: int
) -> list[tuple[int, str, str]]:
    """Return (ordinal, role, text) of a session's committed turns before an ordinal, in order."""
    # Backwards from there, as sessions lie together: the sessions before it are not walked through.
    rows = connection.execute(
        "SELECT session_id, ordinal, role, answer, content FROM records "
        "JOIN inputs USING (stream, ordinal) JOIN dataset USING (position) "
        "LEFT JOIN observations USING (stream, ordinal) "
        "WHERE records.stream = ? AND records.ordinal < ? ORDER BY records.ordinal DESC",
        (stream, before),
    )
    own = takewhile(lambda row: row[0] == session_id, rows)
    found = [(ordinal, role, answer_parts(*texts)[0]) for _, ordinal, role, *texts in own]
    return found[::-1]


def committed(connection: sqlite3.Connection, stream: str) -> Iterator[tuple[str, str | None]]:
    """Yield (dataset record, generated answer or None) of every committed turn, in order."""
    yield from connection.execute(
        "SELECT content, answer FROM records JOIN inputs USING (stream, ordinal) "
        "JOIN dataset USING (position) LEFT JOIN observations USING (stream, ordinal) "
        "WHERE stream = ? ORDER BY ordinal",
        (stream,),
    )


def commit_recorded(
    connection: sqlite3.Connection, run_id: str, stream: str, begin: int, end: int
) -> int:
    """Commit the turns from an ordinal up to another, with the dataset's answers; count them."""
    captured_at = rundir.now()
    answers = connection.execute(
        "SELECT ordinal, content FROM inputs JOIN dataset USING (position) "
        "WHERE stream = ? AND ordinal >= ? AND ordinal < ? AND role = 'assistant'",
        (stream, begin, end),
    )
    heads = [
        ([run_id, stream, ordinal, "recorded", None, captured_at], content)
        for ordinal, content in answers
    ]
    connection.executemany(
        f"INSERT INTO observations ({_OBSERVATION}) VALUES (?, ?, ?, ?, ?, ?, NULL)",
        [(*head[1:], observation_digest(head, content)) for head, content in heads],
    )
    return connection.execute(
        "INSERT INTO records SELECT stream, ordinal FROM inputs "
        "WHERE stream = ? AND ordinal >= ? AND ordinal < ?",
        (stream, begin, end),
    ).rowcount


def commit_generated(
    connection: sqlite3.Connection,
    run_id: str,
    turn: PlannedTurn,
    attempt_id: str,
    answer: dict[str, Any],
) -> None:
    """Commit a turn with the answer (text, context, usage) that a target gave."""
    captured_at = rundir.now()
    content = canonical(answer)
    head = [run_id, turn.stream, turn.ordinal, "generated", attempt_id, captured_at]
    connection.execute(
        f"INSERT INTO observations ({_OBSERVATION}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*head[1:], observation_digest(head, content), content),
    )
    commit_given(connection, turn)


def commit_given(connection: sqlite3.Connection, turn: PlannedTurn) -> None:
    """Commit a turn that nobody answers."""
    connection.execute("INSERT INTO records VALUES (?, ?)", (turn.stream, turn.ordinal))


def observation_id(run_id: str, stream: str, ordinal: int) -> str:
    """Name an observation; there is one for each answer of a run."""
    return f"{run_id}:{stream}:{ordinal}"


def observation_digest(head: Sequence[object], content: str) -> str:
    """Cover a whole observation.

    `head` is run id, stream, ordinal, origin, attempt id and time; `content` the JSON that holds
    text, context and usage: the dataset record, or the generated answer.
    """
    return digest([*head, text_digest(content)])


def observation(
    connection: sqlite3.Connection, run_id: str, stream: str, ordinal: int
) -> Observation | None:
    """Return one stored answer, or None where none is committed."""
    row = connection.execute(
        "SELECT origin, attempt_id, answer, captured_at, digest, content FROM observations "
        "JOIN inputs USING (stream, ordinal) JOIN dataset USING (position) "
        "WHERE stream = ? AND ordinal = ?",
        (stream, ordinal),
    ).fetchone()
    if row is None:
        return None
    origin, attempt_id, answer, captured_at, stored, content = row
    text, context, usage = answer_parts(answer, content)
    return Observation(
        observation_id(run_id, stream, ordinal),
        stream,
        ordinal,
        attempt_id,
        origin,
        text,
        context,
        usage,
        captured_at,
        stored,
    )


def answer_parts(
    answer: str | None, record: str
) -> tuple[str, dict[str, Any] | None, dict[str, Any] | None]:
    """Return text, context and usage of a generated answer or, without one, of the record."""
    if answer is not None:
        given = parsed(answer)
        return given["text"], given["context"], given["usage"]
    recorded = parsed(record)
    metadata = recorded.get("metadata") or {}
    return recorded.get("text", ""), metadata.get("context"), metadata.get("usage")
