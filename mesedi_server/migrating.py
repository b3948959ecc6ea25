"""The database's schema: where it stands, and how it is brought up to date."""

from importlib import resources
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from mesedi_server.errors import SchemaError
from mesedi_server.store.database import Database, driver_url


def folder() -> Path:
    """Where the migrations are: in the installed package, or beside it in a checkout."""
    packaged = Path(str(resources.files("mesedi_server"))) / "migrations"
    return packaged if packaged.is_dir() else packaged.parents[1] / "migrations"


def upgrade(database_url: str, *, sql: bool = False) -> None:
    """Bring the schema up to date.

    Args:
        database_url: the database to change.
        sql: print the statements instead of running them.

    Raises:
        SchemaError: the schema is newer than this code.
    """
    if not sql:
        _refuse_newer(current(database_url))
    command.upgrade(config(database_url), "head", sql=sql)


def current(database_url: str) -> str | None:
    """Name the database's revision; None: never migrated."""
    database = Database(database_url, connections=1, patient=True)
    try:
        with database.transaction() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        database.close()


def check(database_url: str) -> None:
    """Refuse to go on unless the schema is at this code's head.

    Raises:
        SchemaError: it is older or newer; the message says what to do.
    """
    found = current(database_url)
    _refuse_newer(found)
    if found != head():
        raise SchemaError(
            f"The database's schema is at {found or 'nothing yet'}, this version needs {head()}. "
            "Run `mesedi-server migrate` once, then start again."
        )


def head() -> str:
    """Name this code's newest revision."""
    return str(ScriptDirectory(str(folder())).get_current_head())


def _refuse_newer(found: str | None) -> None:
    known = {script.revision for script in ScriptDirectory(str(folder())).walk_revisions()}
    if found is not None and found not in known:
        raise SchemaError(
            f"The database's schema ({found}) is newer than this version of mesedi-server, "
            f"which knows {head()} at most. Install the newer version, or restore a backup."
        )


def config(database_url: str) -> Config:
    """Tell Alembic where the migrations are, and which database they are for."""
    found = Config(folder() / "alembic.ini")
    # Attributes, not ini options: those would interpolate a % in the password.
    found.attributes["database_url"] = driver_url(database_url)
    return found
