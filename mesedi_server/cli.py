"""The command `mesedi-server`."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from evaluators.counting import counted
from mesedi_server import __version__, config, migrating, passwords
from mesedi_server.embedded import connect_addresses, reach_database
from mesedi_server.errors import MesediError, NotFoundError
from mesedi_server.permission import ROLES, SCOPES
from mesedi_server.schemas import people as person_schema
from mesedi_server.schemas.bodies import load
from mesedi_server.schemas.projects import NAME
from mesedi_server.store import api_keys, due_work, members, people, projects
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.projects import Project
from mesedi_server.up import DEMO_PROJECT, OPERATOR, last_address, own_command

DEFAULT_DATA = "mesedi-data"
"""Folder of the embedded servers, in the working folder, where none is named."""

COMMAND_LINE = "command line"
"""What the audit log calls whoever runs these commands."""

_REDETECT_BATCH = 2000

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="MESEDI_DATA",
    default=DEFAULT_DATA,
    show_default=True,
    help="Data folder of the embedded servers.",
)
_host = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
_port = click.option("--port", default=8080, show_default=True, type=click.IntRange(1, 65535))


@click.group()
@click.version_option(__version__, prog_name="mesedi-server")
def cli() -> None:
    """Catch the failing answers of LLM, agent and RAG pipelines.

    `up` starts everything on this machine. With MESEDI_DATABASE_URL and MESEDI_BROKER_URL set,
    `web`, `worker`, `judge-worker` and `migrate` run on servers of your own.
    """


@cli.command()
@_host
@_port
@_data
def up(host: str, port: int, data: Path) -> None:
    """Start everything: database, broker, web and worker, with the data in one folder."""
    from mesedi_server import up as all_in_one  # noqa: PLC0415 - named like this command

    sys.exit(all_in_one.run(data, host, port))


@cli.command()
@_host
@_port
def web(host: str, port: int) -> None:
    """Answer requests, on MESEDI_DATABASE_URL and MESEDI_BROKER_URL."""
    from mesedi_server import serve  # noqa: PLC0415 - other commands need no web server

    settings = config.from_environment()
    migrating.check(settings.database_url)
    serve.web(settings, host, port)


@cli.command()
def worker() -> None:
    """Examine what comes in, on MESEDI_DATABASE_URL and MESEDI_BROKER_URL; beat runs along."""
    from mesedi_server import serve  # noqa: PLC0415 - other commands need no Celery

    settings = config.from_environment()
    migrating.check(settings.database_url)
    serve.worker(settings)


@cli.command()
def judge_worker() -> None:
    """Ask the judges that projects have set, on MESEDI_DATABASE_URL and MESEDI_BROKER_URL."""
    from mesedi_server import serve  # noqa: PLC0415 - other commands need no Celery

    settings = config.from_environment()
    migrating.check(settings.database_url)
    serve.judge_worker(settings)


@cli.command()
@click.option("--sql", is_flag=True, help="Print the statements instead of running them.")
@_data
def migrate(sql: bool, data: Path) -> None:  # noqa: FBT001 - click passes options so
    """Bring the database's schema up to date."""
    with _database_url(data) as url:
        migrating.upgrade(url, sql=sql)
    if not sql:
        click.echo(f"The schema is at {migrating.head()}.", err=True)


@cli.command()
@click.argument("name")
@_data
def create_project(name: str, data: Path) -> None:
    """Make a project and print its id."""
    name = load(NAME, {"name": name})["name"]
    with _database(data) as database, database.transaction() as connection:
        project = projects.create(connection, name)
        people.ensure_operator(connection, OPERATOR)
    click.echo(project.project_id)


@cli.command()
@click.option("--project", required=True, help="Name or id of the project.")
@click.option(
    "--scopes", default="ingest", show_default=True, help="Of ingest, read, admin; with commas."
)
@click.option("--name", default="", help="What the key is for.")
@_data
def create_key(project: str, scopes: str, name: str, data: Path) -> None:
    """Make an API key and print it: the only time that it is shown."""
    wanted = [scope.strip() for scope in scopes.split(",")]
    unknown = [scope for scope in wanted if scope not in SCOPES]
    if unknown:
        known = ", ".join(SCOPES)
        raise click.BadParameter(f"{unknown[0]!r} is not one of {known}", param_hint="--scopes")
    with _database(data) as database, database.transaction() as connection:
        owner = projects.by_name(connection, project)
        made = api_keys.create(
            connection, owner, wanted, name=name, expires_at=None, actor=COMMAND_LINE
        )
    click.echo(made.key)


@cli.command()
@click.option("--user", default=OPERATOR, show_default=True, help="Whom the link signs in.")
@click.option(
    "--address", envvar="MESEDI_PUBLIC_URL", default="", help="Address that the pages have."
)
@_data
def sign_in_link(user: str, address: str, data: Path) -> None:
    """Print a link that signs a person in once, within a day.

    The operator, whom it is for by default, is admin of all projects; `create-user` makes others.
    """
    with _database(data) as database, database.transaction() as connection:
        user_pk = (
            people.ensure_operator(connection, OPERATOR)
            if user == OPERATOR
            else people.account(connection, user).user_pk
        )
        token = people.create_sign_in_link(connection, user_pk)
    base = address or last_address(data)
    click.echo(f"{base.rstrip('/')}/sign-in?token={token}")


@cli.command()
@click.argument("name")
@click.option("--project", required=True, help="Name or id of a project to let the person into.")
@click.option(
    "--role", type=click.Choice(ROLES), default="viewer", show_default=True, help="As what."
)
@_data
def create_user(name: str, project: str, role: str, data: Path) -> None:
    """Let a person into a project; `sign-in-link` or `set-password` then lets them sign in."""
    name = load(person_schema.PERSON, {"name": name})["name"]
    with _database(data) as database, database.transaction() as connection:
        found = projects.by_name(connection, project)
        members.add(connection, found.pk, name, role, actor=COMMAND_LINE)
    click.echo(f"{name} is {role} of {found.name}.", err=True)


@cli.command()
@click.argument("name", default=OPERATOR)
@_data
def set_password(name: str, data: Path) -> None:
    """Set a person's password (by default the operator's); asks for it, or reads it from a pipe."""
    password = (
        click.prompt("New password", hide_input=True, confirmation_prompt="The new one again")
        if sys.stdin.isatty()
        else sys.stdin.readline().rstrip("\r\n")
    )
    stored = passwords.hashed(password)
    with _database(data) as database, database.transaction() as connection:
        if name == OPERATOR:
            people.ensure_operator(connection, OPERATOR)
        people.set_password(connection, people.account(connection, name).user_pk, stored)
    click.echo(f"{name} signs in with the new password; older sessions and links ended.", err=True)


@cli.command()
@click.argument("name")
@_data
def remove_user(name: str, data: Path) -> None:
    """Delete a person: out of all projects, signed out at once; histories keep the name."""
    with _database(data) as database, database.transaction() as connection:
        people.remove(connection, people.account(connection, name).user_pk)
    click.echo(f"{name} is removed.", err=True)


@cli.command()
@click.option("--project", required=True, help="Name or id of the project.")
@click.option("--since", required=True, help="Start of the span (ISO 8601; UTC without a zone).")
@click.option("--until", help="End of the span.")
@_data
def redetect(project: str, since: str, until: str | None, data: Path) -> None:
    """Examine the executions of a time span again, by the thresholds in force now."""
    start, end = _time(since, "--since"), None if until is None else _time(until, "--until")
    marked = 0
    last: str | None = ""
    with _database(data) as database:
        while last is not None:
            with database.transaction() as connection:
                count, last = due_work.make_due(
                    connection,
                    projects.by_name(connection, project).pk,
                    since=start,
                    until=end,
                    after=last,
                    limit=_REDETECT_BATCH,
                )
            marked += count
    are_due = counted(marked, "execution is", "executions are")
    click.echo(f"{are_due} due again; the workers examine them within seconds.")


@cli.command()
@click.option("--project", help=f"Name or id; by default {DEMO_PROJECT}, made for it.")
@_data
def demo(project: str | None, data: Path) -> None:
    """Store a set of real Ragas and promptfoo results, for a first look that is no empty page.

    It goes straight into the database, whether the server runs or not; a second time changes nothing.
    """
    from mesedi_server import demo as results  # noqa: PLC0415 - named like this command

    is_running = not _is_external() and connect_addresses(data) is not None
    with _database(data) as database:
        with database.transaction() as connection:
            found = projects.by_name(connection, project) if project else _demo_project(connection)
        sent = results.send(database, found)
    stored = counted(sent.stored, "execution is", "executions are")
    click.echo(f"{stored} stored, {sent.known} were there already.")
    click.echo(_outlook(data, is_running=is_running))
    click.echo(f"  {_address(data)}/p/{found.project_id}/groups")


def _demo_project(connection: Connection) -> Project:
    """Return the demo's own project, so that its groups are not taken for somebody's."""
    try:
        return projects.by_name(connection, DEMO_PROJECT)
    except NotFoundError:
        made = projects.create(connection, DEMO_PROJECT)
        people.ensure_operator(connection, OPERATOR)
        return made


def _address(data: Path) -> str:
    given = os.environ.get("MESEDI_PUBLIC_URL", "").strip().rstrip("/")
    return given or last_address(data)


def _outlook(data: Path, *, is_running: bool) -> str:
    """Say when the groups of what is stored appear; their address follows."""
    if _is_external():
        return "Their groups appear while a worker runs:"
    if is_running:
        return "Their groups appear within seconds:"
    return (
        "The server does not run; their groups appear when it does:"
        f" {own_command(data, 'up')} (make run, in a checkout)."
    )


@contextmanager
def _database(data: Path) -> Iterator[Database]:
    with _database_url(data) as url:
        migrating.check(url)
        database = Database(url, connections=1, patient=True)
        try:
            yield database
        finally:
            database.close()


@contextmanager
def _database_url(data: Path) -> Iterator[str]:
    if _is_external():
        yield os.environ["MESEDI_DATABASE_URL"].strip()
        return
    with reach_database(data) as url:
        yield url


def _is_external() -> bool:
    """Say whether the database is one that MESEDI_DATABASE_URL names: a data folder that is named goes first."""
    source = click.get_current_context().get_parameter_source("data")
    is_data_named = source in (
        click.core.ParameterSource.COMMANDLINE,
        click.core.ParameterSource.ENVIRONMENT,
    )
    return not is_data_named and bool(os.environ.get("MESEDI_DATABASE_URL", "").strip())


def _time(text: str, option: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no time like 2026-12-01T12:00:00Z", param_hint=option
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def main() -> None:
    """Run the command; what the server can explain is a message, not a traceback."""
    try:
        cli()
    except MesediError as error:
        sys.exit(f"mesedi-server: {error}")


if __name__ == "__main__":
    main()
