"""What `capture` takes its dataset from: a file, or a failure group of a server."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import click

from evaluators import rundir
from evaluators.commands.shared import FILE
from evaluators.counting import counted

KEY_VARIABLE = "MESEDI_API_KEY"

_OPTIONS = (
    click.option("--from-group", metavar="ID", help="A failure group instead of a file."),
    click.option("--server", metavar="URL", help="The server that has it."),
    click.option(
        "--passing", type=click.IntRange(min=0), help="Answers that passed; as many as failed."
    ),
    click.option("--limit", type=click.IntRange(min=1), help="Executions of it, the newest."),
    click.option(
        "--api-key-file", type=FILE, help=f"Holds a key of scope read; else {KEY_VARIABLE} does."
    ),
)


@dataclass(frozen=True, slots=True)
class Download:
    """A group to fetch, and the key to do it with."""

    server: str
    group_id: str
    passing: int | None
    limit: int | None
    api_key: str = field(repr=False)


def group_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a failure group."""
    return reduce(lambda taken, option: option(taken), reversed(_OPTIONS), command)


def wanted(
    dataset: Path | None,
    *,
    from_group: str | None,
    server: str | None,
    passing: int | None,
    limit: int | None,
    api_key_file: Path | None,
) -> Path | Download:
    """Return what the options ask for; raises UsageError."""
    if dataset is None and from_group is not None:
        if not server:
            raise click.UsageError("--from-group needs a --server")
        return Download(server, from_group, passing, limit, _api_key(api_key_file))
    if dataset is None or from_group is not None:
        raise click.UsageError("give either --dataset or --from-group")
    if any(each is not None for each in (server, passing, limit, api_key_file)):
        raise click.UsageError(
            "--server, --passing, --limit and --api-key-file need a --from-group"
        )
    return dataset


@contextmanager
def file_of(wanted: Path | Download, out: Path) -> Iterator[tuple[Path, dict[str, Any] | None]]:
    """Give the dataset, and where it came from; what was fetched is gone again afterwards.

    Raises DownloadError.
    """
    if isinstance(wanted, Path):
        yield wanted, None
        return
    from evaluators.downloading import Group, download  # noqa: PLC0415 - a third of the start-up

    group = Group(wanted.server, wanted.group_id, wanted.passing, wanted.limit)
    with rundir.unfinished(out) as folder:
        file = folder / f"{rundir.slug(group.id)}.jsonl"
        yield file, download(group, wanted.api_key, file)


def tell_what_is_missing(source: dict[str, Any] | None) -> None:
    """Say which executions of a group are not in the capture."""
    if source is None:
        return
    missing = {
        "executions_without_answer": (
            "execution that has",
            "executions that have",
            "sent no answer",
        ),
        "executions_beyond_limit": (
            "execution that is",
            "executions that are",
            "older than the limit reaches",
        ),
    }
    for name, (one, several, words) in missing.items():
        if source[name]:
            click.echo(
                f"Not in the capture: {counted(source[name], one, several)} {words}", err=True
            )


def _api_key(file: Path | None) -> str:
    if file is not None:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        raise click.UsageError(
            f"a key of scope read is needed: in {KEY_VARIABLE}, or in --api-key-file"
        )
    return key
