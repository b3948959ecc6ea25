"""Which of a group's failing executions have a finding that its sums count."""

from sqlalchemy import ColumnElement, exists, select, text, tuple_

from mesedi_server.store.assessments import COUNTED_EXECUTIONS, FINDINGS, GROUNDING
from mesedi_server.store.database import Connection
from mesedi_server.store.tables import assessments, occurrences

_o = occurrences.c
_POSITION = _o.occurred_at, _o.execution_pk


def members_with(
    connection: Connection, group_pk: int, finding: str, limit: int = COUNTED_EXECUTIONS
) -> list[ColumnElement[bool]]:
    """Say which of a group's `limit` latest occurrences have an answer with a finding, one of FINDINGS."""
    newest_first = select(*_POSITION).where(_o.group_pk == group_pk)
    last = connection.execute(
        newest_first.order_by(*(part.desc() for part in _POSITION)).offset(limit - 1).limit(1)
    ).one_or_none()
    # The offset keeps it a look into the index for each occurrence, of which there may be few to look at.
    found = exists(
        select(assessments.c.evaluator)
        .where(
            assessments.c.execution_pk == _o.execution_pk,
            assessments.c.evaluator == GROUNDING,
            text(f"({FINDINGS[finding]})"),
        )
        .correlate(occurrences)
        .offset(0)
    )
    return [found] if last is None else [found, tuple_(*_POSITION) >= tuple_(*last)]
