"""Everything that was captured, against its digests, and what was sent, against the diary."""

import sqlite3
from hashlib import sha256
from typing import Any

from evaluators.canonical import ListDigest
from evaluators.errors import CorruptRunError
from evaluators.store import attempts, calls
from evaluators.store.answers import observation_digest
from evaluators.store.database import BATCH
from evaluators.store.plan import manifest, plan_digest


def verify(connection: sqlite3.Connection) -> dict[str, Any]:
    """Check everything that was captured against its digests; return the manifest.

    Raises CorruptRunError with the first thing that does not match.
    """
    frozen = manifest(connection)
    _expect(_dataset_digest(connection) == frozen["dataset_digest"], "the dataset")
    _expect(plan_digest(connection) == frozen["plan_digest"], "the plan")
    for key, content in connection.execute("SELECT digest, content FROM source_artifacts"):
        _expect(sha256(content).hexdigest() == key, f"source artifact {key}")
    _verify_observations(connection, frozen["id"])
    _verify_prefixes(connection)
    attempts.verify(connection)
    calls.verify(connection)
    return frozen


def _expect(matches: bool, what: str) -> None:  # noqa: FBT001 - the fact is the point
    if not matches:
        raise CorruptRunError(f"{what} does not match its digest: the run was changed or damaged")


def _dataset_digest(connection: sqlite3.Connection) -> str:
    whole = ListDigest()
    rows = connection.execute("SELECT content FROM dataset ORDER BY position")
    while batch := rows.fetchmany(BATCH):
        whole.add(",".join([content for (content,) in batch]))
    return whole.hexdigest()


def _verify_observations(connection: sqlite3.Connection, run_id: str) -> None:
    rows = connection.execute(
        "SELECT stream, ordinal, origin, attempt_id, captured_at, coalesce(answer, content), digest "
        "FROM observations JOIN inputs USING (stream, ordinal) JOIN dataset USING (position)"
    )
    for *parts, content, stored in rows:
        matches = observation_digest([run_id, *parts], content) == stored
        _expect(matches, f"observation {parts[0]}:{parts[1]}")


def _verify_prefixes(connection: sqlite3.Connection) -> None:
    for stream, count, last in connection.execute(
        "SELECT stream, count(*), max(ordinal) FROM records GROUP BY stream"
    ):
        if last != count - 1:
            raise CorruptRunError(f"the committed turns of {stream} have a gap")
    lost = connection.execute(
        """
        SELECT stream, ordinal FROM records JOIN inputs USING (stream, ordinal)
        LEFT JOIN observations USING (stream, ordinal)
        WHERE role = 'assistant' AND digest IS NULL LIMIT 1
        """
    ).fetchone()
    if lost is not None:
        raise CorruptRunError("turn {}:{} is committed but has no observation".format(*lost))
