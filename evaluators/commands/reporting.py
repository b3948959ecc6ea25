"""Commands that print or write what an evaluation says; nothing is run."""

import sys
from pathlib import Path

import click

from evaluators.commands.choosing import chosen
from evaluators.commands.shared import FOLDER, answer, as_json, evaluation_id, force, run
from evaluators.reports import details as details_report
from evaluators.reports import text as text_report
from evaluators.reports.files import write
from evaluators.summary import summarize


@click.command("evaluation-status")
@run
@evaluation_id
@click.option("--details", is_flag=True, help="With every input and result, as JSON.")
@as_json
def evaluation_status(
    run: Path, evaluation_id: str | None, *, details: bool, as_json: bool
) -> None:
    """Print what an evaluation says, without running anything."""
    with chosen(run, evaluation_id) as view:
        summary = summarize(view)
        if details:
            details_report.write(view, summary, sys.stdout)
        else:
            answer(summary, text_report.lines(summary), as_json=as_json)


@click.command()
@run
@evaluation_id
@click.option("--out", type=FOLDER, help="By default RUN/reports/EVALUATION.")
@force
@as_json
def report(
    run: Path, evaluation_id: str | None, out: Path | None, *, force: bool, as_json: bool
) -> None:
    """Write report.html, junit.xml and summary.md of an evaluation."""
    with chosen(run, evaluation_id) as view:
        folder = out or run / "reports" / view.evaluation.id
        paths = [str(path) for path in write(view, folder, force=force)]
    answer({"files": paths}, paths, as_json=as_json)


COMMANDS = (evaluation_status, report)
