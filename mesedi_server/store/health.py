"""What `/ready` and `/stats` ask."""

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from mesedi_server.store.database import Connection
from mesedi_server.store.tables import executions, failure_groups, probes


class Stats(Struct, frozen=True):
    """A project in four numbers."""

    total_executions: int
    completed_executions: int
    crashed_24h: int
    open_failure_groups: int


def write(connection: Connection) -> None:
    """Write for real: a full disk or a read-only standby shows here."""
    statement = insert(probes).values(name="ready", written_at=func.now())
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[probes.c.name], set_={"written_at": func.now()}
        )
    )


def overdue_s(connection: Connection) -> float:
    """Tell how long the oldest due execution has been waiting; 0: none waits."""
    oldest = select(func.min(executions.c.detect_due_at)).where(
        executions.c.detect_due_at <= func.now()
    )
    wait = select(func.extract("epoch", func.now() - oldest.scalar_subquery()))
    return float(connection.execute(wait).scalar_one() or 0.0)


def stats(connection: Connection, project_pk: int) -> Stats:
    """Count a project's executions and the groups that need somebody."""
    x, g = executions.c, failure_groups.c
    counts = select(
        func.count(),
        func.count().filter(x.status == "completed"),
        func.count().filter(
            x.status == "crashed", x.started_at > func.now() - func.make_interval(0, 0, 0, 1)
        ),
    ).where(x.project_pk == project_pk)
    open_groups = select(func.count()).where(
        g.project_pk == project_pk, g.state.in_(("open", "acknowledged")), g.occurrence_count > 0
    )
    total, completed, crashed = connection.execute(counts).one()
    return Stats(total, completed, crashed, int(connection.execute(open_groups).scalar_one()))
