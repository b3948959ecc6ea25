"""The commands about people and keys, on a database of one's own."""

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from mesedi_server import cli, passwords
from mesedi_server.errors import MesediError
from mesedi_server.store import audit_log, members, people, projects
from mesedi_server.store.paging import Paging
from mesedi_server.store.tables import users

PASSWORD = "correct horse battery"


@pytest.fixture
def command(module_database_url):
    """Runs `mesedi-server` and returns what it prints; what it refuses is raised."""

    def run(*words: str, given: str = "") -> str:
        environment = {"MESEDI_DATABASE_URL": module_database_url, "MESEDI_DATA": ""}
        done = CliRunner().invoke(cli.cli, words, input=given, env=environment)
        if done.exception is not None:
            raise done.exception
        return done.stdout.strip()

    return run


@pytest.fixture
def project(command, database, request):
    """A project of the test's own."""
    project_id = command("create-project", request.node.name)
    with database.transaction() as connection:
        return projects.by_name(connection, project_id)


def names(database) -> set[str]:
    with database.transaction() as connection:
        return set(connection.execute(select(users.c.name)).scalars())


def test_a_person_is_made_a_member_and_given_a_password(command, database, project):
    command("create-user", "Mira", "--project", project.name, "--role", "member")
    command("set-password", "Mira", given=f"{PASSWORD}\n")

    with database.transaction() as connection:
        account = people.account(connection, "Mira")
        assert passwords.is_right(PASSWORD, account.password_hash)
        assert members.get(connection, project.pk, "Mira").role == "member"
        lines = audit_log.list_page(connection, project.pk, Paging()).items
    assert [(line.actor, line.action) for line in lines] == [("command line", "member.added")]


def test_a_link_for_a_person_makes_them_no_admin(command, database, project):
    command("create-user", "Vera", "--project", project.name)

    link = command("sign-in-link", "--user", "Vera", "--address", "https://m.example/")

    assert link.startswith("https://m.example/sign-in?token=")
    with database.transaction() as connection:
        assert members.get(connection, project.pk, "Vera").role == "viewer"


def test_the_operator_gets_a_password_on_an_empty_server(command, database):
    command("set-password", given=f"{PASSWORD}\n")

    with database.transaction() as connection:
        account = people.account(connection, "operator")
    assert passwords.is_right(PASSWORD, account.password_hash)


@pytest.mark.parametrize(
    ("words", "given", "reason"),
    [
        (["sign-in-link", "--user", "Nobody"], "", "unknown person 'Nobody'"),
        (["set-password", "Nobody"], PASSWORD, "unknown person 'Nobody'"),
        (["set-password"], "short", "at least 10 characters"),
        (["remove-user", "Nobody"], "", "unknown person 'Nobody'"),
        (["create-user", "a\nb", "--project", "x"], "", "no control characters"),
        (["create-project", " "], "", "name: between 1 and 80 characters"),
        (["create-user", "Eve", "--project", "nowhere"], "", "unknown project 'nowhere'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(command, database, words, given, reason):
    before = names(database)

    with pytest.raises(MesediError, match=reason):
        command(*words, given=given)

    assert names(database) == before


def test_a_removed_person_is_gone_from_every_project(command, database, project):
    command("create-user", "Leaver", "--project", project.name)

    command("remove-user", "Leaver")

    assert "Leaver" not in names(database)
    with database.transaction() as connection:
        found = [member.name for member in members.of_project(connection, project.pk)]
    assert "Leaver" not in found


def test_a_key_made_by_command_is_audited(command, database, project):
    key = command("create-key", "--project", project.name, "--scopes", "read", "--name", "ci")

    with database.transaction() as connection:
        lines = audit_log.list_page(connection, project.pk, Paging()).items
    assert [(line.action, line.details["scopes"]) for line in lines] == [("key.created", ["read"])]
    assert key not in str(lines)
