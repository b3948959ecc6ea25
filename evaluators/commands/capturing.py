"""Commands that make a run and say how far it came."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from evaluators import transcripts
from evaluators.capture import capture as capture_dataset
from evaluators.capture import status as run_status
from evaluators.commands import sources
from evaluators.commands.shared import FILE, FOLDER, as_json, at_work, print_json, run
from evaluators.counting import counted
from evaluators.loading import target as load_target
from evaluators.resuming import captured_from
from evaluators.resuming import resume as resume_capture
from evaluators.spec import STREAMS
from evaluators.targets import Target

_COUNT = click.IntRange(min=0, max=2**31)
_target = click.option("--target", metavar="MODULE:FACTORY", help="What answers the questions.")
_compare_target = click.option(
    "--compare-target", metavar="MODULE:FACTORY", help="What answers them a second time."
)


@click.command()
@click.option("--dataset", type=FILE, help="JSON lines, one turn a line.")
@sources.group_options
@click.option("--out", type=FOLDER, default=Path("reports"), show_default=True)
@click.option("--persona", type=FILE, help="A file that is frozen with the run.")
@_target
@_compare_target
@click.option("--max-target-calls", type=_COUNT, help="Requests of the whole run.")
@as_json
def capture(
    *,
    dataset: Path | None,
    out: Path,
    persona: Path | None,
    target: str | None,
    compare_target: str | None,
    max_target_calls: int | None,
    as_json: bool,
    **group: Any,
) -> None:
    """Freeze a dataset and its answers; print the new run directory.

    Without --target the answers are those of the dataset. --from-group fetches the dataset from a
    server: the failing answers of a failure group, and as many that did not fail.
    """
    wanted = sources.wanted(dataset, **group)
    if max_target_calls is not None and target is None and compare_target is None:
        raise click.UsageError("--max-target-calls needs a --target")
    beside = Path() if dataset is None else dataset.parent
    with at_work() as progress:
        targets = _targets(target, compare_target, beside)
        with sources.file_of(wanted, out) as (file, source):
            directory = capture_dataset(
                file,
                out,
                persona=persona,
                targets=targets,
                max_target_calls=max_target_calls,
                source=source,
                progress=progress,
            )
    sources.tell_what_is_missing(source)
    if as_json:
        print_json({"run_directory": str(directory), **run_status(directory)})
    else:
        click.echo(directory)


@click.command()
@run
@_target
@_compare_target
@click.option("--dataset", type=FILE, help="Refuse unless this is what was captured.")
@click.option("--persona", type=FILE, help="Refuse unless this is what was captured.")
@click.option("--max-target-calls", type=_COUNT, help="Raise what the whole run may request.")
@click.option("--check", is_flag=True, help="Look whether it may go on; write nothing.")
@as_json
def resume(
    *,
    run: Path,
    target: str | None,
    compare_target: str | None,
    dataset: Path | None,
    persona: Path | None,
    max_target_calls: int | None,
    check: bool,
    as_json: bool,
) -> None:
    """Go on with a capture that stopped."""
    beside = dataset or captured_from(run)
    with at_work() as progress:
        remaining = resume_capture(
            run,
            targets=_targets(target, compare_target, beside.parent),
            dataset=dataset,
            persona=persona,
            max_target_calls=max_target_calls,
            check=check,
            progress=progress,
        )
    if as_json:
        print_json({"run_directory": str(run), "checked_only": check, **asdict(remaining)})
        return
    turns, requests = sum(remaining.turns.values()), sum(remaining.requests.values())
    done, asked = ("to commit", "to send") if check else ("committed", "sent")
    click.echo(f"{counted(turns, 'turn')} {done}, {counted(requests, 'request')} {asked}: {run}")


@click.command()
@run
@as_json
def status(run: Path, *, as_json: bool) -> None:
    """Print how far a capture came."""
    found = run_status(run)
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name != "schema_version" and value is not None:
            click.echo(f"{name.replace('_', ' ')}: {_words(value)}")


@click.command("export-transcripts")
@run
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option("--stream", type=click.Choice(STREAMS), default="primary", show_default=True)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@as_json
def export_transcripts(run: Path, out: Path, stream: str, *, force: bool, as_json: bool) -> None:
    """Write the committed turns as JSON lines."""
    turns = transcripts.export(run, out, stream=stream, force=force)
    if as_json:
        print_json({"path": str(out), "records": turns})
    else:
        click.echo(f"{counted(turns, 'record')} in {out}")


def _targets(primary: str | None, compare: str | None, folder: Path) -> dict[str, Target]:
    named = {"primary": primary, "compare": compare}
    return {stream: load_target(name, folder) for stream, name in named.items() if name is not None}


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
    return str(value)


COMMANDS = (capture, resume, status, export_transcripts)
