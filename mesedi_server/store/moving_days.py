"""Projects that have changed their zone: their counts move to its days, some executions at a time.

Counts are exact at every step: whoever counts meanwhile goes by the zone that an execution has been moved to (migration
0004).
"""

from sqlalchemy import func, or_, select

from mesedi_server.store.database import Connection
from mesedi_server.store.tables import projects

_p = projects.c


def projects_that_move(connection: Connection) -> list[int]:
    """List the projects whose counts are not all by the days of their zone yet."""
    moves = or_(_p.counted_zone != _p.time_zone, _p.next_zone.is_not(None))
    return list(connection.execute(select(_p.pk).where(moves).order_by(_p.pk)).scalars())


def move(connection: Connection, project_pk: int, *, limit: int) -> bool:
    """Move the counts of up to `limit` executions; examinations of the project wait until the transaction ends.

    Returns:
        Whether there may be more to move.
    """
    return bool(connection.execute(select(func.move_to_zone(project_pk, limit))).scalar_one())
