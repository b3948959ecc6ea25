"""Evaluations of a run: frozen inputs, one result each. The tables come with the first one."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from evaluators.canonical import ListDigest, canonical, parsed, text_digest
from evaluators.errors import CorruptRunError
from evaluators.store import calls
from evaluators.store.database import batches, count, has_tables
from evaluators.store.state import add_event

TABLE_VERSION = 1

_SCHEMA = """
CREATE TABLE evaluation_schema (version INTEGER NOT NULL);
CREATE TABLE evaluation_manifests (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE evaluation_inputs (
    evaluation INTEGER NOT NULL REFERENCES evaluation_manifests,
    number INTEGER NOT NULL,
    stream TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    criterion_id TEXT NOT NULL,
    observation_digest TEXT,
    question_ordinal INTEGER,
    PRIMARY KEY (evaluation, number),
    FOREIGN KEY (stream, ordinal) REFERENCES inputs
) WITHOUT ROWID;
CREATE TABLE evaluation_results (
    evaluation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (evaluation, number),
    FOREIGN KEY (evaluation, number) REFERENCES evaluation_inputs
);
CREATE TABLE evaluation_waiting (
    evaluation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    content TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (evaluation, number),
    FOREIGN KEY (evaluation, number) REFERENCES evaluation_inputs
);
"""


class FrozenInput(NamedTuple):
    """One answer and one criterion, as they were when the evaluation began.

    `observation_digest` is None where no answer was captured, `question_ordinal` where no user
    turn came before it.
    """

    stream: str
    ordinal: int
    criterion_id: str
    observation_digest: str | None
    question_ordinal: int | None

    @property
    def key(self) -> str:
        """Name of the input, unique in its evaluation."""
        return f"{self.stream}/{self.ordinal}/{self.criterion_id}"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation: its number in this database and its manifest."""

    sequence: int
    manifest: dict[str, Any]

    @property
    def id(self) -> str:
        """The id that people use."""
        found: str = self.manifest["id"]
        return found


class Case(NamedTuple):
    """An input with all that is stored of it.

    `record` is the dataset's record of the turn, `answer` a generated answer, `question` the
    record of the question; `result` is None while it is pending. A result that waits for a person is
    shown like another.
    """

    number: int
    input: FrozenInput
    session_id: str
    case_id: str
    case_revision: str
    split_group: str
    tags: list[str]
    persona_id: str | None
    record: str
    answer: str | None
    question: str | None
    result: dict[str, Any] | None


def exist(connection: sqlite3.Connection) -> bool:
    """Say whether the run was ever evaluated. Raises RunError for tables of another version."""
    return has_tables(connection, "evaluation", TABLE_VERSION)


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of evaluations unless they are there."""
    if exist(connection):
        return
    for statement in f"{_SCHEMA}{calls.SCHEMA}".split(";"):
        connection.execute(statement)
    connection.execute("INSERT INTO evaluation_schema VALUES (?)", (TABLE_VERSION,))


# Evaluations


def inputs_now(
    connection: sqlite3.Connection, streams: Iterable[str], criterion_ids: list[str]
) -> Iterator[FrozenInput]:
    """Yield what an evaluation that begins now would freeze: every planned answer and criterion.

    The question is the nearest committed user turn before the answer in its session.
    """
    for stream in streams:
        session, question = None, None
        for ordinal, session_id, role, observed, is_committed in connection.execute(
            """
            SELECT inputs.ordinal, session_id, role, observations.digest, records.ordinal NOTNULL
            FROM inputs LEFT JOIN observations USING (stream, ordinal)
            LEFT JOIN records USING (stream, ordinal)
            WHERE stream = ? ORDER BY inputs.ordinal
            """,
            (stream,),
        ):
            if session_id != session:
                session, question = session_id, None
            if role == "user" and is_committed:
                question = ordinal
            elif role == "assistant":
                for criterion_id in criterion_ids:
                    yield FrozenInput(stream, ordinal, criterion_id, observed, question)


def inputs_digest(inputs: Iterable[FrozenInput]) -> str:
    """Digest of a list of inputs."""
    whole = ListDigest()
    for batch in batches(inputs):
        whole.add_values(batch)
    return whole.hexdigest()


def add(
    connection: sqlite3.Connection, manifest: dict[str, Any], inputs: Iterable[FrozenInput]
) -> Evaluation:
    """Store a new evaluation with its inputs."""
    content = canonical(manifest)
    cursor = connection.execute(
        "INSERT INTO evaluation_manifests (id, identity, content, digest) VALUES (?, ?, ?, ?)",
        (manifest["id"], manifest["identity"], content, text_digest(content)),
    )
    evaluation = Evaluation(int(cursor.lastrowid or 0), manifest)
    connection.executemany(
        "INSERT INTO evaluation_inputs VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((evaluation.sequence, number, *each) for number, each in enumerate(inputs)),
    )
    add_event(connection, "evaluation_created", manifest["id"])
    return evaluation


def of_identity(connection: sqlite3.Connection, identity: str) -> Evaluation | None:
    """Return the evaluation with this identity."""
    return _one(connection, "identity = ?", identity)


def of_id(connection: sqlite3.Connection, evaluation_id: str) -> Evaluation | None:
    """Return the evaluation with this id."""
    return _one(connection, "id = ?", evaluation_id)


def latest(connection: sqlite3.Connection) -> Evaluation | None:
    """Return the evaluation that was created last."""
    return _one(connection, "sequence = (SELECT max(sequence) FROM evaluation_manifests)")


def total(connection: sqlite3.Connection) -> int:
    """Count the evaluations of the run."""
    return count(connection, "SELECT count(*) FROM evaluation_manifests")


def _one(connection: sqlite3.Connection, condition: str, *values: object) -> Evaluation | None:
    row = connection.execute(
        f"SELECT sequence, id, content, digest FROM evaluation_manifests WHERE {condition}", values
    ).fetchone()
    if row is None:
        return None
    sequence, evaluation_id, content, stored = row
    # Over the text as it was written: what later versions add has no say in it.
    if text_digest(content) != stored or json.loads(content)["id"] != evaluation_id:
        raise CorruptRunError(f"evaluation {evaluation_id} does not match its digest")
    evaluation = Evaluation(sequence, json.loads(content))
    if evaluation.manifest["judge"] is not None:
        calls.check_named(connection, evaluation.sequence)
    _verify_inputs(connection, evaluation)
    return evaluation


def _verify_inputs(connection: sqlite3.Connection, evaluation: Evaluation) -> None:
    rows = connection.execute(
        "SELECT stream, ordinal, criterion_id, observation_digest, question_ordinal "
        "FROM evaluation_inputs WHERE evaluation = ? ORDER BY number",
        (evaluation.sequence,),
    )
    found = inputs_digest(FrozenInput._make(row) for row in rows)
    if found != evaluation.manifest["inputs_digest"]:
        raise CorruptRunError(f"the inputs of {evaluation.id} do not match their digest")


# Cases


def planned(connection: sqlite3.Connection, evaluation: Evaluation) -> int:
    """Count the inputs."""
    statement = "SELECT count(*) FROM evaluation_inputs WHERE evaluation = ?"
    return count(connection, statement, evaluation.sequence)


def pending_count(connection: sqlite3.Connection, evaluation: Evaluation) -> int:
    """Count the inputs without a final result."""
    statement = "SELECT count(*) FROM evaluation_results WHERE evaluation = ?"
    return planned(connection, evaluation) - count(connection, statement, evaluation.sequence)


_CASES = """
SELECT n.number, n.stream, n.ordinal, n.criterion_id, n.observation_digest, n.question_ordinal,
       i.session_id, i.case_id, i.case_revision, i.split_group, i.tags, i.persona_id,
       {texts}, o.digest, coalesce(r.content, w.content), coalesce(r.digest, w.digest)
FROM evaluation_inputs AS n
JOIN inputs AS i USING (stream, ordinal)
{joins}
LEFT JOIN observations AS o USING (stream, ordinal)
LEFT JOIN evaluation_results AS r ON r.evaluation = n.evaluation AND r.number = n.number
LEFT JOIN evaluation_waiting AS w ON w.evaluation = n.evaluation AND w.number = n.number
WHERE n.evaluation = ? AND n.number >= ? {condition}
ORDER BY n.number LIMIT ?
"""
_WITH_TEXTS = {
    "texts": "d.content, o.answer, qd.content",
    "joins": """
        JOIN dataset AS d USING (position)
        LEFT JOIN inputs AS q ON q.stream = n.stream AND q.ordinal = n.question_ordinal
        LEFT JOIN dataset AS qd ON qd.position = q.position
    """,
}
_WITHOUT_TEXTS = {"texts": "'{}', NULL, NULL", "joins": ""}


def pending(
    connection: sqlite3.Connection, evaluation: Evaluation, begin: int, limit: int
) -> list[Case]:
    """Return up to `limit` cases without a final result, from a number on."""
    statement = _CASES.format(**_WITH_TEXTS, condition="AND r.number IS NULL")
    rows = connection.execute(statement, (evaluation.sequence, begin, limit))
    return [_case(row) for row in rows]


def cases(
    connection: sqlite3.Connection, evaluation: Evaluation, *, texts: bool = True
) -> Iterator[Case]:
    """Yield all cases in order; without `texts` their records are empty objects."""
    statement = _CASES.format(**(_WITH_TEXTS if texts else _WITHOUT_TEXTS), condition="")
    return (_case(row) for row in connection.execute(statement, (evaluation.sequence, 0, -1)))


def _case(row: tuple[Any, ...]) -> Case:
    frozen = FrozenInput._make(row[1:6])
    session_id, case_id, case_revision, split_group, tags, persona_id = row[6:12]
    record, answer, question, observed, content, stored = row[12:]
    if frozen.observation_digest not in {None, observed}:
        raise CorruptRunError(f"{frozen.key}: the captured answer is not the one that was frozen")
    return Case(
        row[0],
        frozen,
        session_id,
        case_id,
        case_revision,
        split_group,
        [] if tags == "[]" else parsed(tags),
        persona_id,
        record,
        answer,
        question,
        None if content is None else _result(frozen, content, stored),
    )


def _result(frozen: FrozenInput, content: str, stored: str) -> dict[str, Any]:
    if text_digest(content) != stored:
        raise CorruptRunError(f"{frozen.key}: the result does not match its digest")
    result: dict[str, Any] = parsed(content)
    if result["input_key"] != frozen.key:
        raise CorruptRunError(f"{frozen.key}: the result belongs to {result['input_key']}")
    return result


def add_results(
    connection: sqlite3.Connection,
    evaluation: Evaluation,
    results: Iterable[tuple[int, dict[str, Any]]],
) -> None:
    """Store results by the number of their input; a second one for an input is an error."""
    rows = _rows(evaluation, results)
    connection.executemany("INSERT INTO evaluation_results VALUES (?, ?, ?, ?)", rows)
    connection.executemany(
        "DELETE FROM evaluation_waiting WHERE evaluation = ? AND number = ?",
        [(sequence, number) for sequence, number, _, _ in rows],
    )


def put_waiting(
    connection: sqlite3.Connection,
    evaluation: Evaluation,
    results: Iterable[tuple[int, dict[str, Any]]],
) -> None:
    """Store results that wait for a person, in place of what was stored of them before."""
    connection.executemany(
        "INSERT OR REPLACE INTO evaluation_waiting VALUES (?, ?, ?, ?)", _rows(evaluation, results)
    )


def _rows(
    evaluation: Evaluation, results: Iterable[tuple[int, dict[str, Any]]]
) -> list[tuple[int, int, str, str]]:
    contents = [(number, canonical(result)) for number, result in results]
    return [(evaluation.sequence, number, text, text_digest(text)) for number, text in contents]
