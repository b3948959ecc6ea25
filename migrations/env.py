"""Run the migrations, one migrator at a time, one transaction a migration."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from alembic import context

from mesedi_server.store.tables import metadata

LOCK = 0x6D657365  # "mese"


@contextmanager
def only_migrator(connection: sa.Connection) -> Iterator[None]:
    # Polled, not waited for: a session that waits in pg_advisory_lock holds a snapshot, and CREATE INDEX CONCURRENTLY
    # in another migrator would wait for that snapshot for ever.
    while not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(LOCK))):
        connection.rollback()
        time.sleep(0.2)
    connection.commit()
    try:
        yield
    finally:
        connection.rollback()
        connection.execute(sa.select(sa.func.pg_advisory_unlock(LOCK)))
        connection.commit()


def run(connection: sa.Connection | None, url: str) -> None:
    context.configure(
        connection=connection,
        url=url,
        target_metadata=metadata,
        transaction_per_migration=True,
        literal_binds=connection is None,
        dialect_opts={"paramstyle": "named"},
    )
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    url = context.config.attributes["database_url"]
    if context.is_offline_mode():
        run(None, url)
        return
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.connect() as connection, only_migrator(connection):
        # A migration that waits longer for a table stops the server's queries behind it.
        connection.execute(sa.text("SET lock_timeout = '4s'"))
        connection.commit()
        run(connection, url)
    engine.dispose()


main()
