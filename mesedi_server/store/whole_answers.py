"""Answers as evaluators read them: whole, one at a time."""

from collections.abc import Collection, Iterator

from msgspec import Struct

from mesedi_server.store.assessments import ANSWER_ID
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text

LATEST_EVENTS = 50
"""Events of an execution that are looked at, its newest `answer` events."""

_FETCHED = 20
"""Answers that are in memory at once: each may have two megabytes."""

# Of several events with one answer_id the last counts (wire.md 2).
_READ = f"""
SELECT e.execution_pk, e.answer_id, coalesce(e.payload::text, 'null'), e.siblings
FROM jsonb_array_elements_text(%(executions)s::jsonb) AS wanted (pk)
CROSS JOIN LATERAL (
    SELECT *, count(*) OVER () AS siblings FROM (
        SELECT DISTINCT ON (answer_id) execution_pk, answer_id, payload
        FROM (SELECT execution_pk, {ANSWER_ID} AS answer_id, payload, sequence, timestamp, event_id
            FROM events WHERE execution_pk = wanted.pk::bigint AND event_type = 'answer'
            ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT {LATEST_EVENTS}) AS latest
        ORDER BY answer_id, sequence DESC, timestamp DESC, event_id DESC) AS last) AS e
"""


class WholeAnswer(Struct, frozen=True):
    """The newest event of one answer."""

    execution_pk: int
    answer_id: str
    """As in `AssessmentRow`."""
    payload: str
    """The event's payload, JSON."""
    siblings: int
    """How many answers the execution has, this one included."""


def of_executions(connection: Connection, execution_pks: Collection[int]) -> Iterator[WholeAnswer]:
    """Read the answers of some executions, a few at a time; other statements may run in between."""
    if not execution_pks:
        return
    parameters = {"executions": json_text(list(execution_pks))}
    rows = connection.exec_driver_sql(_READ, parameters, execution_options={"yield_per": _FETCHED})
    try:
        for row in rows:
            yield WholeAnswer(*row)
    finally:
        rows.close()
