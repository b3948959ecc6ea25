"""Which evaluation a command reads."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from evaluators.summary import View, viewed


@contextmanager
def chosen(
    directory: Path, evaluation_id: str | None, option: str = "--evaluation-id"
) -> Iterator[View]:
    """Open an evaluation for reading; say which one when the run has several and none was named."""
    with viewed(directory, evaluation_id) as view:
        if evaluation_id is None and view.evaluations > 1:
            click.echo(
                f"{directory} has {view.evaluations} evaluations; this is the latest, "
                f"{view.evaluation.id} ({option} names another)",
                err=True,
            )
        yield view
