"""The command `mesedi-eval`.

Exit codes: 0 pass, 2 violated, 3 inconclusive, 1 for everything that kept it from answering, the
option parser's own errors included.
"""

import gc
import sys
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import click

from evaluators import transcripts
from evaluators.assess import run as assess_lines
from evaluators.capture import capture as capture_dataset
from evaluators.capture import status as run_status
from evaluators.commands import archiving, capturing, comparing, reviewing, settling, suites
from evaluators.commands.shared import EXIT_CODES
from evaluators.commands.shared import FILE as _FILE
from evaluators.commands.shared import FOLDER as _FOLDER
from evaluators.commands.shared import as_json as _as_json
from evaluators.commands.shared import evaluation_id as _evaluation_id
from evaluators.commands.shared import print_json as _print
from evaluators.commands.shared import progress_bars as _progress
from evaluators.commands.shared import run as _run
from evaluators.counting import counted
from evaluators.errors import EvaluatorsError
from evaluators.evaluation import evaluate_saved
from evaluators.judges import LARGEST_COST_MICROS
from evaluators.ledger import Budget
from evaluators.loading import evaluators as load_evaluators
from evaluators.loading import judge as load_judge
from evaluators.loading import target as load_target
from evaluators.reports import details as details_report
from evaluators.reports import text as text_report
from evaluators.resuming import captured_from
from evaluators.resuming import resume as resume_capture
from evaluators.spec import STREAMS
from evaluators.spec import load as load_spec
from evaluators.summary import summarize, viewed
from evaluators.targets import Target
from evaluators.version import PACKAGE_VERSION

EXIT_ERROR = 1
_GARBAGE_THRESHOLD = 50_000  # next to nothing here refers to itself; looking costs 5 % of a run

_target = click.option("--target", metavar="MODULE:FACTORY", help="What answers the questions.")
_compare_target = click.option(
    "--compare-target", metavar="MODULE:FACTORY", help="What answers them a second time."
)


@click.group()
@click.version_option(PACKAGE_VERSION, prog_name="mesedi-eval")
def cli() -> None:
    """Check captured answers against their evidence.

    Exit codes: 0 pass, 2 violated, 3 inconclusive, 1 usage or configuration error.
    """


@cli.command()
@click.option("--dataset", type=_FILE, help="JSON lines, one turn a line.")
@capturing.group_options
@click.option("--out", type=_FOLDER, default=Path("reports"), show_default=True)
@click.option("--persona", type=_FILE, help="A file that is frozen with the run.")
@_target
@_compare_target
@click.option("--max-target-calls", type=click.IntRange(min=0), help="Requests of the whole run.")
@_as_json
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
    wanted = capturing.wanted(dataset, **group)
    targets = _targets(target, compare_target, Path() if dataset is None else dataset.parent)
    if max_target_calls is not None and not targets:
        raise click.UsageError("--max-target-calls needs a --target")
    with _progress() as progress, capturing.file_of(wanted, out) as (file, source):
        directory = capture_dataset(
            file,
            out,
            persona=persona,
            targets=targets,
            max_target_calls=max_target_calls,
            source=source,
            progress=progress,
        )
    capturing.tell_what_is_missing(source)
    if as_json:
        _print({"run_directory": str(directory), **run_status(directory)})
    else:
        click.echo(directory)


@cli.command()
@_run
@click.option("--spec", type=_FILE, required=True, help="What is checked (YAML).")
@click.option("--new-evaluation", is_flag=True, help="Add an evaluation besides the others.")
@click.option("--judge-factory", metavar="MODULE:FUNCTION", help="What judges.")
@click.option(
    "--evaluator-factory", multiple=True, metavar="MODULE:FUNCTION", help="A registered evaluator."
)
@click.option(
    "--max-judge-calls", type=click.IntRange(min=0, max=2**31), help="Frozen for the whole run."
)
@click.option(
    "--max-judge-cost-micros",
    type=click.IntRange(min=0, max=LARGEST_COST_MICROS),
    help="Frozen too.",
)
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=1, show_default=True, help="Calls at once."
)
@_as_json
def evaluate(
    *,
    run: Path,
    spec: Path,
    judge_factory: str | None,
    evaluator_factory: tuple[str, ...],
    max_judge_calls: int | None,
    max_judge_cost_micros: int | None,
    concurrency: int,
    new_evaluation: bool,
    as_json: bool,
) -> int:
    """Evaluate a run by a spec, or go on where it stopped.

    Factories are looked for in the working folder and beside the spec. A judge is loaded for
    judged criteria only, an evaluator for criteria that name a registered one.
    """
    if max_judge_cost_micros is not None and max_judge_calls is None:
        raise click.UsageError("--max-judge-cost-micros needs --max-judge-calls")
    budget = None if max_judge_calls is None else Budget(max_judge_calls, max_judge_cost_micros)
    with _progress() as progress:
        wanted = load_spec(spec)
        evaluation_id = evaluate_saved(
            run,
            wanted,
            new_evaluation=new_evaluation,
            judge=load_judge(judge_factory, wanted, spec.parent),
            budget=budget,
            concurrency=concurrency,
            evaluators=load_evaluators(evaluator_factory, wanted, spec.parent),
            progress=progress,
        )
    with viewed(run, evaluation_id, verify=False) as view:
        summary = summarize(view)
    _print_summary(summary, as_json=as_json)
    return EXIT_CODES[summary["decision"]]


@cli.command("evaluation-status")
@_run
@_evaluation_id
@click.option("--details", is_flag=True, help="With every input and result, as JSON.")
@_as_json
def evaluation_status(
    run: Path, evaluation_id: str | None, *, details: bool, as_json: bool
) -> None:
    """Print what an evaluation says, without running anything."""
    with viewed(run, evaluation_id) as view:
        summary = summarize(view)
        if details:
            details_report.write(view, summary, sys.stdout)
        else:
            _print_summary(summary, as_json=as_json)


@cli.command()
@_run
@_as_json
def status(run: Path, *, as_json: bool) -> None:
    """Print how far a capture came."""
    found = run_status(run)
    if as_json:
        _print(found)
        return
    for name, value in found.items():
        if name != "schema_version" and value is not None:
            click.echo(f"{name.replace('_', ' ')}: {_words(value)}")


@cli.command("export-transcripts")
@_run
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option("--stream", type=click.Choice(STREAMS), default="primary", show_default=True)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@_as_json
def export_transcripts(run: Path, out: Path, stream: str, *, force: bool, as_json: bool) -> None:
    """Write the committed turns as JSON lines."""
    turns = transcripts.export(run, out, stream=stream, force=force)
    if as_json:
        _print({"path": str(out), "records": turns})
    else:
        click.echo(f"{counted(turns, 'record')} in {out}")


@cli.command()
@_run
@_target
@_compare_target
@click.option("--dataset", type=_FILE, help="Refuse unless this is what was captured.")
@click.option("--persona", type=_FILE, help="Refuse unless this is what was captured.")
@click.option("--check", is_flag=True, help="Look whether it may go on; write nothing.")
@_as_json
def resume(
    run: Path,
    target: str | None,
    compare_target: str | None,
    dataset: Path | None,
    persona: Path | None,
    *,
    check: bool,
    as_json: bool,
) -> None:
    """Go on with a capture that stopped."""
    beside = dataset or captured_from(run)
    with _progress() as progress:
        remaining = resume_capture(
            run,
            targets=_targets(target, compare_target, beside.parent),
            dataset=dataset,
            persona=persona,
            check=check,
            progress=progress,
        )
    if as_json:
        _print({"run_directory": str(run), "checked_only": check, **asdict(remaining)})
        return
    turns, requests = sum(remaining.turns.values()), sum(remaining.requests.values())
    done, asked = ("to commit", "to send") if check else ("committed", "sent")
    click.echo(f"{counted(turns, 'turn')} {done}, {counted(requests, 'request')} {asked}: {run}")


@cli.command()
@_run
@_evaluation_id
@click.option("--out", type=_FOLDER, help="By default RUN/reports/EVALUATION.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@_as_json
def report(
    run: Path, evaluation_id: str | None, out: Path | None, *, force: bool, as_json: bool
) -> None:
    """Write report.html, junit.xml and summary.md of an evaluation."""
    from evaluators.reports.files import write  # noqa: PLC0415 - an eighth of the start-up time

    with viewed(run, evaluation_id) as view:
        folder = out or run / "reports" / view.evaluation.id
        paths = [str(path) for path in write(view, folder, force=force)]
    if as_json:
        _print({"files": paths})
    else:
        click.echo("\n".join(paths))


@cli.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option(
    "--verdicts",
    "are_verdicts",
    is_flag=True,
    help="Read saved faithfulness verdicts instead; a line also holds verdict, min_correctness.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines, as always.")
def assess(file: BinaryIO, *, are_verdicts: bool, as_json: bool) -> int:
    """Ground single answers, without a capture: JSON lines in, an assessment a line out.

    A line holds question, answer and context (or passages, a list). A malformed line is named and
    makes the exit code 1.
    """
    del as_json
    return assess_lines(file, sys.stdout, sys.stderr, are_verdicts=are_verdicts)


for _module in (settling, comparing, reviewing, archiving, suites):
    for _command in _module.COMMANDS:
        cli.add_command(_command)


def main() -> NoReturn:
    """Run the command and end the process with its exit code."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is UTF-8, whatever the locale says
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run the command and return its exit code, which is never the option parser's own 2."""
    try:
        code = cli.main(arguments, prog_name="mesedi-eval", standalone_mode=False)
    except click.ClickException as error:
        error.show()
    except click.Abort:
        click.echo("Interrupted.", err=True)
    except SystemExit as error:
        # Nothing of ours ends this way: code that was loaded wanted to leave, and must not pass for a result.
        click.echo(f"Error: code that was loaded ended the command ({error})", err=True)
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        sys.stderr.close()
    except (EvaluatorsError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
    else:
        return code if isinstance(code, int) else 0
    return EXIT_ERROR


def _targets(primary: str | None, compare: str | None, folder: Path) -> dict[str, Target]:
    named = {"primary": primary, "compare": compare}
    return {stream: load_target(name, folder) for stream, name in named.items() if name is not None}


def _print_summary(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print(summary)
    else:
        click.echo("\n".join(text_report.lines(summary)))


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
    return str(value)
