"""Write the next migration, from the difference between `store/tables.py` and a freshly migrated database."""

import sys

from alembic import command
from alembic.script import ScriptDirectory

from mesedi_server import migrating
from tests.services import session_services


def main(message: str) -> None:
    number = f"{int(migrating.head()) + 1:04d}"
    with (
        session_services() as services,
        services.fresh_database(services.template_database(migrating.upgrade)) as url,
    ):
        config = migrating.config(url)
        command.revision(config, message, autogenerate=True, rev_id=number)
    path = ScriptDirectory(str(migrating.folder())).get_revision(number).path
    print(f"{path}: read it, then put {number} into migrations/HEAD")


if __name__ == "__main__":
    main(sys.argv[1])
