"""`mesedi-server up`: everything in one command, on an embedded PostgreSQL and Valkey."""

import errno
import os
import shlex
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from mesedi_server import __version__, migrating, sealing
from mesedi_server.config import command_line, from_environment
from mesedi_server.embedded import Addresses, EmbeddedServers, FolderInUseError, connect_addresses
from mesedi_server.errors import ConfigurationError
from mesedi_server.store import people, projects
from mesedi_server.store.database import Database
from mesedi_server.supervisor import Program, Supervisor

FIRST_PROJECT = "default"
"""Name of the project that a new data folder begins with."""
DEMO_PROJECT = "demo"
"""Name of the project that the demo's results go to, where no other is named."""
OPERATOR = "operator"
"""Name of the person that sign-in links are for, where no other is named."""

USUAL_ADDRESS = "http://127.0.0.1:8080"
"""Where a server listens unless it is told otherwise."""

_READY_S = 60.0
_MODULE = [sys.executable, "-m", "mesedi_server.cli"]


def run(data_dir: Path, host: str, port: int) -> int:
    """Start all servers, migrate, and run until told to stop; return the exit code.

    Raises:
        EmbeddedError: the folder or the servers do not allow it.
        SchemaError: the data are of a newer version.
        ConfigurationError: the port is taken, or a setting is wrong.
    """
    _check_settings()
    _check_not_running(data_dir)
    _check_port(host, port)
    url = f"http://{_written(host)}:{port}"
    servers = EmbeddedServers(data_dir)
    with servers as addresses:
        migrating.upgrade(addresses.database_url)
        address_file(data_dir).write_text(f"{url}\n")
        secret = os.environ.get("MESEDI_SECRET_KEY") or sealing.secret_of_folder(data_dir)
        programs = _programs(addresses, secret, data_dir, host, port)
        supervisor = Supervisor(programs, check=servers.casualty)
        greeting = (url, addresses.database_url, data_dir)
        threading.Thread(target=_greet, args=greeting, daemon=True).start()
        return supervisor.run()


def own_command(data_dir: Path, *words: str) -> str:
    """Return a command of this program about a data folder, for a shell in any folder."""
    return command_line(_own_program(), str(data_dir.absolute()), *words)


def address_file(data_dir: Path) -> Path:
    """Where a data folder keeps the address that its server was last started with."""
    return data_dir / "address"


def last_address(data_dir: Path) -> str:
    """Return the address that a data folder's server was last started with, or the usual one."""
    try:
        return address_file(data_dir).read_text().strip()
    except OSError:
        return USUAL_ADDRESS


def _own_program() -> str:
    script = Path(sys.argv[0]).absolute()
    return shlex.join([str(script)] if script.name == "mesedi-server" else _MODULE)


def _check_settings() -> None:
    """Refuse at once what each process would refuse, again and again."""
    from_environment(os.environ | {"MESEDI_DATABASE_URL": "ours", "MESEDI_BROKER_URL": "ours"})


def _check_not_running(data_dir: Path) -> None:
    if connect_addresses(data_dir) is None:
        return
    raise FolderInUseError(
        f"The server of {data_dir.absolute()} runs already, at {last_address(data_dir)}. "
        f"`{own_command(data_dir, 'sign-in-link')}` prints a link to sign in there; "
        "a second server takes another --data DIR and another --port."
    )


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = "is in use by another program. Stop it, or choose another with --port."
            else:
                reason = (
                    f"cannot be listened on: {error.strerror}. Choose others with --host, --port."
                )
            raise ConfigurationError(f"{host}:{port} {reason}") from error


def _written(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _welcome(database_url: str, data_dir: Path, url: str) -> str:
    database = Database(database_url, connections=1, patient=True)
    try:
        with database.transaction() as connection:
            lines = [f"mesedi-server {__version__} is running at {url}", ""]
            key = None
            # The demo may have been there before the first start came this far.
            if {project.name for project in projects.everyone(connection)} <= {DEMO_PROJECT}:
                first = projects.create(connection, FIRST_PROJECT)
                key = projects.create_key(connection, first, ["ingest"], name="first key")
            user_pk = people.ensure_operator(connection, OPERATOR)
            token = people.create_sign_in_link(connection, user_pk)
    finally:
        database.close()
    lines.append(f"  Sign in (once, within a day): {url}/sign-in?token={token}")
    if key is not None:
        lines.append(f"  Ingest key (shown only now):  {key}")
    lines += [f"  Data:                         {data_dir.absolute()}", "", "Ctrl-C stops it."]
    return "\n".join(lines)


def _programs(
    addresses: Addresses, secret: str, data_dir: Path, host: str, port: int
) -> list[Program]:
    environment = {
        "MESEDI_DATABASE_URL": addresses.database_url,
        "MESEDI_BROKER_URL": addresses.broker_url,
        "MESEDI_SECRET_KEY": secret,
        "MESEDI_COMMAND": os.environ.get("MESEDI_COMMAND") or _own_program(),
        "MESEDI_DATA": str(data_dir.absolute()),
        # One of each keeps the memory of a laptop's server small.
        "MESEDI_WEB_WORKERS": os.environ.get("MESEDI_WEB_WORKERS") or "1",
        "MESEDI_WORKER_PROCESSES": os.environ.get("MESEDI_WORKER_PROCESSES") or "1",
    }
    return [
        Program("web", [*_MODULE, "web", "--host", host, "--port", str(port)], environment),
        Program("worker", [*_MODULE, "worker"], environment),
        Program("judge worker", [*_MODULE, "judge-worker"], environment),
    ]


def _greet(url: str, database_url: str, data_dir: Path) -> None:
    """Print the welcome when the server answers; before, a key that is shown only once could get lost."""
    give_up_at = time.monotonic() + _READY_S
    while time.monotonic() < give_up_at:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):  # noqa: S310 - our own address
                break
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    else:
        return
    sys.stdout.write(f"{_welcome(database_url, data_dir, url)}\n")
    sys.stdout.flush()
