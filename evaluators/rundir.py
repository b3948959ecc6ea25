"""A run directory: where its files are, who may write, how it comes into being.

<out>/<UTC time>_<label>/
  run.sqlite3           the only authority
  coordinator.lock      held by the one process that writes; never deleted
  manifest.json         readable copy of what was frozen
  run.json              readable copy of the state
  transcripts/*.jsonl   derived from the committed records
"""

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from evaluators.errors import LockedRunError, RunError

DATABASE = "run.sqlite3"
LOCK = "coordinator.lock"
ARCHIVE = "archive.json"
"""Beside a database that came from an archive: such a run is never written to again."""
_UNFINISHED = ".capture-"
_ABANDONED_AFTER_S = 60  # a capture that just began may not hold its lock yet


def now() -> str:
    """Return the time as stored: UTC, ISO 8601, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def slug(name: str) -> str:
    """Make a name fit for a file; never empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80] or "run"


def database(directory: Path) -> Path:
    """Return the database of a run directory, or raise RunError where there is none."""
    path = directory / DATABASE
    if not path.is_file():
        raise RunError(f"{directory} is not a run directory: it holds no {DATABASE}")
    return path


def refuse_output(directory: Path, out: Path, *, force: bool) -> None:
    """Raise RunError for a file that must not be written.

    That is one that exists, unless `force`, and always one that the run stands on.
    """
    if not out.exists():
        return
    for name in (DATABASE, LOCK, ARCHIVE):
        own = directory / name
        if own.exists() and own.samefile(out):
            what = "the run's database" if name == DATABASE else f"the run's {name}"
            raise RunError(f"{out} is {what}")
    if not force:
        raise RunError(f"{out} exists; --force replaces it")


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Be the only process that writes to this run; LockedRunError at once when another one does.

    Raises RunError for a read-only archive.
    """
    database(directory)
    if (directory / ARCHIVE).exists():
        raise RunError(f"{directory} is a read-only archive")
    with _lock(directory):
        yield


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedRunError(f"another process works on {directory}") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def unfinished(out: Path) -> Iterator[Path]:
    """Give a locked, hidden directory that is gone again unless `publish` has renamed it."""
    out.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(out)
    directory = out / f"{_UNFINISHED}{uuid4().hex}"
    directory.mkdir(mode=0o700)
    try:
        with _lock(directory):
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def publish(directory: Path, label: str) -> Path:
    """Rename an unfinished directory to its final name, which no other run has."""
    stem = f"{now().replace(':', '-').removesuffix('Z')}_{slug(label)}"
    for attempt in range(1, 1000):
        target = directory.with_name(stem if attempt == 1 else f"{stem}-{attempt}")
        if target.exists():
            continue
        try:
            directory.rename(target)
        except OSError:
            # Another capture took the name between the look and the move.
            if target.exists():
                continue
            raise
        return target
    raise RunError(f"no free name for a run in {directory.parent}")


def write_copy(directory: Path, name: str, value: object) -> None:
    """Replace a readable JSON copy in one step."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    replacement = directory / f".{name}.new"
    replacement.write_text(text, encoding="utf-8")
    replacement.replace(directory / name)


def _remove_abandoned(out: Path) -> None:
    for directory in out.glob(f"{_UNFINISHED}*"):
        try:
            if time.time() - directory.stat().st_mtime < _ABANDONED_AFTER_S:
                continue
            with _lock(directory):
                shutil.rmtree(directory, ignore_errors=True)
        except (LockedRunError, FileNotFoundError):
            continue
