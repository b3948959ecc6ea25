"""Examinations, when a test wants them."""

from mesedi_server import examination
from mesedi_server.store.database import Database

_ENOUGH = 100


def examine_all(database: Database) -> None:
    """Examine whatever waits, what is put off for its neighbours included."""
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE executions SET detect_due_at = now() WHERE detect_due_at > now()"
        )
    for _ in range(_ENOUGH):
        if examination.examine_due(database, settle_s=0) == 0:
            return
    raise AssertionError("something is due again and again")
