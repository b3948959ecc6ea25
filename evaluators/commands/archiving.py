"""Commands that keep a run in one file, and make a read-only run of it again."""

from dataclasses import asdict
from pathlib import Path

import click

from evaluators import archive
from evaluators.commands.shared import FILE, FOLDER, NEW_FILE, answer, as_json, force, run


@click.command("archive-export")
@run
@click.option("--out", type=NEW_FILE, required=True, help="The zip file.")
@force
@as_json
def archive_export(*, run: Path, out: Path, force: bool, as_json: bool) -> None:
    """Write a run into one file: its database and a description with the digest."""
    description = archive.export(run, out, force=force)
    answer({"path": str(out), **asdict(description)}, [str(out)], as_json=as_json)


@click.command("archive-verify")
@click.argument("file", type=FILE)
@as_json
def archive_verify(*, file: Path, as_json: bool) -> None:
    """Check everything in an archive, as an import does, and leave nothing behind."""
    description = archive.verify(file)
    words = f"Run {description.run_id}: {description.size} bytes, whole"
    answer(asdict(description), [words], as_json=as_json)


@click.command("archive-import")
@click.argument("file", type=FILE)
@click.option("--out", type=FOLDER, required=True, help="The new run directory.")
@as_json
def archive_import(*, file: Path, out: Path, as_json: bool) -> None:
    """Make a run directory from an archive, once all of it was checked.

    It can be read by every command and is never written to: evaluate, resume and review-import
    refuse it.
    """
    description = archive.import_archive(file, out)
    answer({"run_directory": str(out), **asdict(description)}, [str(out)], as_json=as_json)


COMMANDS = (archive_export, archive_verify, archive_import)
