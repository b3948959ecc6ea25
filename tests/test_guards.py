"""What must hold of the whole tree, whoever changes what."""

import configparser
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from evaluators.version import PACKAGE_VERSION
from mesedi_server import __version__, migrating
from mesedi_server.config import Settings, from_environment
from mesedi_server.errors import SchemaError
from mesedi_server.store.database import Database
from mesedi_server.store.tables import metadata
from mesedi_server.tasks import celery_app

ROOT = Path(__file__).parents[1]


def test_setup_cfg_lists_every_package():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")

    listed = set(setup["options"]["packages"].split())

    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("detectors", "evaluators", "mesedi_server")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert listed == found | {"mesedi_server.migrations"}


def test_the_evaluators_carry_the_version_of_the_distribution():
    assert __version__ == PACKAGE_VERSION


def test_head_names_the_newest_migration():
    head = ScriptDirectory(str(ROOT / "migrations")).get_current_head()

    assert (ROOT / "migrations" / "HEAD").read_text().strip() == head


def test_tables_and_migrations_agree(database_url):
    database = Database(database_url, connections=1)

    with database.transaction() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), metadata)

    database.close()
    assert difference == []


def test_a_schema_newer_than_the_code_is_refused_with_the_way_out(database_url):
    database = Database(database_url, connections=1)
    with database.transaction() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()

    with pytest.raises(SchemaError, match="newer than this version"):
        migrating.check(database_url)
    with pytest.raises(SchemaError, match="newer than this version"):
        migrating.upgrade(database_url)


def test_an_old_schema_is_refused_with_the_command(servers):
    empty = servers.template_database(lambda _: None)

    with (
        servers.fresh_database(empty) as url,
        pytest.raises(SchemaError, match="mesedi-server migrate"),
    ):
        migrating.check(url)


def test_every_setting_is_documented():
    page = (ROOT / "docs" / "settings.md").read_text()
    source = (ROOT / "mesedi_server" / "config.py").read_text()

    names = set(re.findall(r'"(MESEDI_[A-Z_]+)"', source))

    assert len(names) == len(fields(Settings))
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_an_empty_variable_counts_as_unset():
    given = {
        "MESEDI_DATABASE_URL": "postgresql:///x",
        "MESEDI_BROKER_URL": "redis://y",
        "MESEDI_SETTLE_SECONDS": "",
    }

    assert from_environment(given).settle_s == 60.0


def test_every_task_is_started_by_beat():
    settings = Settings(database_url="postgresql:///x", broker_url="redis://y")
    applications = (
        celery_app.create(settings),
        celery_app.create(settings, celery_app.JUDGE_QUEUE, celery_app.JUDGE_BEAT),
    )
    beat = {entry["task"] for each in applications for entry in each.conf.beat_schedule.values()}
    modules = (ROOT / "mesedi_server" / "tasks").glob("*.py")
    source = "".join(module.read_text() for module in modules)

    registered = {getattr(celery_app, name) for name in re.findall(r"task\(name=(\w+)\)", source)}

    assert registered == beat


@pytest.mark.parametrize("package", ["mesedi", "detectors"])
def test_pure_packages_load_the_standard_library_alone(package):
    script = (
        f"import sys; before = set(sys.modules); import {package}; "
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        f"print(sorted(n for n in loaded if n != {package!r} "
        "and n not in sys.stdlib_module_names and not n.startswith('_sysconfigdata')))"
    )
    path = {"mesedi": ROOT / "sdk", "detectors": ROOT}[package]

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=path, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_two_migrators_at_once_both_succeed(database_url):
    script = f"from mesedi_server import migrating; migrating.upgrade({database_url!r})"

    migrators = [subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) for _ in range(2)]

    assert [migrator.wait(60) for migrator in migrators] == [0, 0]
