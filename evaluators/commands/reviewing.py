"""Commands for review by people: tasks out, annotations in, and what follows from them."""

from dataclasses import asdict
from pathlib import Path

import click

from evaluators import promotion, qualification, review
from evaluators.commands.choosing import chosen
from evaluators.commands.shared import (
    EXIT_CODES,
    FILE,
    FOLDER,
    NEW_FILE,
    answer,
    as_json,
    evaluation_id,
    force,
    run,
)
from evaluators.labels import import_labels
from evaluators.spec import STREAMS
from evaluators.summary import STATUSES

_SHARE = click.FloatRange(0, 1)


@click.command("review-export")
@run
@evaluation_id
@click.option("--out", type=NEW_FILE, required=True, help="JSON lines, a task a line.")
@click.option(
    "--status", "statuses", type=click.Choice(STATUSES), multiple=True, help="Only these results."
)
@force
@as_json
def review_export(
    *,
    run: Path,
    evaluation_id: str | None,
    out: Path,
    statuses: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Write tasks for reviewers: answers with their evidence, without the evaluator's results."""
    tasks = review.export(run, out, evaluation_id=evaluation_id, statuses=statuses, force=force)
    answer({"path": str(out), "tasks": tasks}, [f"{tasks} tasks in {out}"], as_json=as_json)


@click.command("review-import")
@run
@click.argument("file", type=FILE)
@click.option("--labels", "are_labels", is_flag=True, help="The file holds a server's labels.")
@click.option("--criterion", metavar="ID", help="With --labels: what they decide.")
@evaluation_id
@as_json
def review_import(
    *,
    run: Path,
    file: Path,
    are_labels: bool,
    criterion: str | None,
    evaluation_id: str | None,
    as_json: bool,
) -> None:
    """Store the annotations of a file of tasks: all of them, or none.

    Tasks whose annotation is blank are passed over; what is stored already stays as it is. Labels
    that people gave on a server are passed over where the run holds another text, or none.
    """
    if are_labels:
        imported = import_labels(run, file, evaluation_id=evaluation_id, criterion=criterion)
        rest = "of answers that this run does not hold"
    elif criterion is not None or evaluation_id is not None:
        raise click.UsageError("--criterion and --evaluation-id need --labels")
    else:
        imported, rest = review.import_file(run, file), "blank"
    words = f"{imported.added} added, {imported.known} known, {imported.blank} {rest}"
    answer(asdict(imported), [words], as_json=as_json)


@click.command()
@run
@evaluation_id
@click.option("--min-agreement", type=_SHARE, default=1.0, show_default=True)
@click.option("--max-false-passes", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--min-coverage", type=_SHARE, default=1.0, show_default=True)
@as_json
def qualify(
    *,
    run: Path,
    evaluation_id: str | None,
    min_agreement: float,
    max_false_passes: int,
    min_coverage: float,
    as_json: bool,
) -> int:
    """Compare an evaluation with what people decided about the same answers.

    Fails below the agreement or above the false passes that are asked for; is inconclusive when
    nothing can be compared, too little of it has a result, or a review is about other evidence.
    """
    limits = qualification.Limits(min_agreement, max_false_passes, min_coverage)
    with chosen(run, evaluation_id) as view:
        report = qualification.qualify(view, limits)
    answer(report, qualification.lines(report), as_json=as_json)
    return EXIT_CODES[report["decision"]]


@click.command()
@run
@evaluation_id
@click.option("--out", type=FOLDER, required=True, help="For dataset.jsonl, expectations.jsonl.")
@click.option("--stream", type=click.Choice(STREAMS), default="primary", show_default=True)
@force
@as_json
def promote(
    *, run: Path, evaluation_id: str | None, out: Path, stream: str, force: bool, as_json: bool
) -> None:
    """Make a regression dataset of the adjudicated answers, and a file of what is expected."""
    with chosen(run, evaluation_id) as view:
        found = promotion.promote(view, out, stream=stream, force=force)
    answer(found, found["files"], as_json=as_json)


COMMANDS = (review_export, review_import, qualify, promote)
