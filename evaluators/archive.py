"""Archives: one run in one zip file, to be kept and read, never to be written to again.

A zip holds exactly `archive.json` and `run.sqlite3`. The database is marked as archived by its
application id, so that a copy of it stays read-only too; a directory made from an archive has
`archive.json` beside it, which every command that writes looks for first. An archive can come from
anywhere: nothing in it is believed before it was checked, and nothing is left behind when it fails.
"""

import errno
import json
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from evaluators import rundir
from evaluators.capture import summary
from evaluators.errors import CorruptRunError, RunError
from evaluators.jsonlines import LineError, read_object
from evaluators.store import archives, plan
from evaluators.store.database import opened

MAX_SIZE = 512 * 1024 * 1024
"""Bytes of a database that can be archived."""

_MAX_DESCRIPTION = 64 * 1024
_CHUNK = 1024 * 1024
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal runs make equal archives
_END = 22  # bytes of a zip's last record, without a comment


@dataclass(frozen=True, slots=True)
class Description:
    """What `archive.json` says."""

    run_id: str
    sha256: str
    size: int
    database: str = rundir.DATABASE
    import_mode: str = "read_only"
    schema_version: int = 1


def export(directory: Path, out: Path, *, force: bool = False) -> Description:
    """Write a run's archive. Raises RunError when it exists (unless `force`) or is too large."""
    rundir.refuse_output(directory, out, force=force)
    if rundir.database(directory).stat().st_size > MAX_SIZE:
        raise RunError(f"{directory} is larger than {MAX_SIZE} bytes, the most that is archived")
    with TemporaryDirectory(prefix=".archive-", dir=out.parent) as folder:
        database, packed = Path(folder) / rundir.DATABASE, Path(folder) / "new.zip"
        run_id = archives.copy(directory, database)
        description = Description(run_id, _digest(database), database.stat().st_size)
        _pack(description, database, packed)
        packed.replace(out)
    return description


def _pack(description: Description, database: Path, out: Path) -> None:
    text = json.dumps(asdict(description), indent=2) + "\n"
    with zipfile.ZipFile(out, "x", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(_member(rundir.ARCHIVE), text)
        with database.open("rb") as source, packed.open(_member(rundir.DATABASE), "w") as target:
            shutil.copyfileobj(source, target, _CHUNK)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o600 << 16
    return member


def verify(path: Path) -> Description:
    """Check an archive and return what it says; write nothing that stays. Raises RunError."""
    with TemporaryDirectory(prefix="archive-") as folder:
        return _unpack(path, Path(folder))


def import_archive(path: Path, out: Path) -> Description:
    """Make a read-only run directory from an archive.

    Args:
        path: a file that `export` wrote.
        out: the new run directory; must not exist.

    Raises RunError (CorruptRunError for an archive that is not whole) and leaves nothing behind.
    """
    if out.exists():
        raise RunError(f"{out} exists")
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".archive-", dir=out.parent) as folder:
        made = Path(folder) / "run"
        made.mkdir(mode=0o700)
        description = _unpack(path, made)
        archives.mark(made / rundir.DATABASE)
        _write_copies(made, description)
        made.rename(out)
    return description


def _write_copies(directory: Path, description: Description) -> None:
    with opened(directory) as connection:
        frozen = plan.manifest(connection)
        rundir.write_copy(directory, "manifest.json", frozen)
        rundir.write_copy(directory, "run.json", summary(connection, frozen))
    rundir.write_copy(directory, rundir.ARCHIVE, asdict(description))
    (directory / rundir.DATABASE).chmod(0o400)


# What an archive may hold


def _unpack(path: Path, folder: Path) -> Description:
    """Write the database of an archive into a folder, once all of it was checked."""
    with _zip(path) as packed:
        description = _described(packed)
        database = folder / rundir.DATABASE
        with packed.open(rundir.DATABASE) as source:
            _copy(source, database, description)
    archives.refuse_unsafe(database)
    with opened(folder) as connection:
        if archives.verify_all(connection) != description.run_id:
            raise CorruptRunError(f"{rundir.ARCHIVE} names another run than the database")
    return description


_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    ValueError,
)
"""What the reader of zip files raises where bytes were changed; a bad offset is EINVAL besides."""


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        _refuse_more_members(path)
        with zipfile.ZipFile(path) as packed:
            _check_members(packed.infolist())
            yield packed
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise CorruptRunError(f"{path} is no archive: {error}") from error


def _refuse_more_members(path: Path) -> None:
    # A list of millions of members would be read into memory before anyone could count it.
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END))
        end = file.read()
    if len(end) < _END or end[:4] != b"PK\x05\x06":
        raise CorruptRunError(f"{path} is no archive: it does not end as a zip file of ours does")
    members, listed = int.from_bytes(end[10:12], "little"), int.from_bytes(end[12:16], "little")
    if members != len(_LIMITS) or listed > _MAX_DESCRIPTION:
        raise CorruptRunError(f"an archive holds exactly {' and '.join(_LIMITS)}")


_LIMITS = {rundir.ARCHIVE: _MAX_DESCRIPTION, rundir.DATABASE: MAX_SIZE}


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    if sorted(member.filename for member in members) != sorted(_LIMITS):
        raise CorruptRunError(f"an archive holds exactly {' and '.join(_LIMITS)}")
    for member in members:
        if member.flag_bits & 1:
            raise CorruptRunError(f"{member.filename} is encrypted")
        if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise CorruptRunError(f"{member.filename} is packed in a way that is not supported")
        if member.file_size > _LIMITS[member.filename]:
            raise CorruptRunError(
                f"{member.filename} has more than {_LIMITS[member.filename]} bytes"
            )


def _described(packed: zipfile.ZipFile) -> Description:
    with packed.open(rundir.ARCHIVE) as file:
        text = file.read(_MAX_DESCRIPTION + 1)
    try:
        value = read_object(text, is_first=True)
    except LineError as error:
        raise CorruptRunError(f"{rundir.ARCHIVE} {error}") from error
    if set(value) != set(Description.__slots__):
        raise CorruptRunError(f"{rundir.ARCHIVE} has other fields than an archive")
    for name, kind in Description.__annotations__.items():
        if type(value[name]) is not kind:
            raise CorruptRunError(f"{rundir.ARCHIVE}: {name} is no {kind.__name__}")
    return _known(Description(**value))


def _known(description: Description) -> Description:
    expected = Description(description.run_id, description.sha256, description.size)
    if description != expected:
        raise CorruptRunError(f"{rundir.ARCHIVE} is of a kind that this program does not know")
    if not 0 < description.size <= MAX_SIZE:
        raise CorruptRunError(f"{rundir.ARCHIVE}: size is not from 1 to {MAX_SIZE}")
    return description


def _copy(source: IO[bytes], path: Path, description: Description) -> None:
    """Unpack at most the stated size, whatever the archive would unpack to."""
    path.touch(mode=0o600, exist_ok=False)
    seen, whole = 0, sha256()
    with path.open("wb") as target:
        while chunk := source.read(_CHUNK):
            seen += len(chunk)
            if seen > description.size:
                break
            whole.update(chunk)
            target.write(chunk)
    if seen != description.size or whole.hexdigest() != description.sha256:
        raise CorruptRunError(f"{rundir.DATABASE} is not the one that {rundir.ARCHIVE} describes")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        whole = sha256()
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    return whole.hexdigest()
