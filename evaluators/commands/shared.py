"""What the commands have in common: arguments, exit codes, output."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import click

from evaluators.progress import Progress, quiet

EXIT_CODES = {"pass": 0, "fail": 2, "inconclusive": 3}

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
RUN = click.Path(exists=True, file_okay=False, path_type=Path)

run = click.argument("run", type=RUN)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
evaluation_id = click.option("--evaluation-id", help="Which evaluation; the latest by default.")
force = click.option("--force", is_flag=True, help="Replace files that exist.")


@contextmanager
def at_work() -> Iterator[Progress]:
    """Show progress, and what targets, judges and evaluators print, on the error output alone."""
    with redirect_stdout(sys.stderr), _progress_bars() as progress:
        yield progress


@contextmanager
def _progress_bars() -> Iterator[Progress]:
    """Show a bar for each kind of work on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield quiet
        return
    with ExitStack() as shown:
        bars: dict[str, Any] = {}

        def tell(doing: str, steps: int, total: int) -> None:
            if doing not in bars:
                shown.close()
                bar = partial(click.progressbar, label=doing, file=sys.stderr)
                bars[doing] = shown.enter_context(
                    bar(length=total, update_min_steps=max(1, total // 200))
                )
            bars[doing].update(steps)

        yield tell


def print_json(value: object) -> None:
    """Print a value as JSON, indented."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def answer(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a value as JSON when asked to, else the lines that say the same."""
    if as_json:
        print_json(value)
    else:
        click.echo("\n".join(lines))
