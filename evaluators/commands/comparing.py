"""Commands that compare two evaluations and decide about a release; none of them runs a judge."""

from contextlib import ExitStack
from pathlib import Path

import click

from evaluators import comparison as comparisons
from evaluators import gates
from evaluators.checking import checked
from evaluators.commands.choosing import chosen
from evaluators.commands.shared import (
    EXIT_CODES,
    FILE,
    FOLDER,
    RUN,
    answer,
    as_json,
    evaluation_id,
    force,
    run,
)
from evaluators.reports import compared, release
from evaluators.reports import text as text_report
from evaluators.reports.files import ARTIFACTS, write_forms

_BASELINE_ID = "--baseline-evaluation-id"
_CANDIDATE_ID = "--candidate-evaluation-id"
_of_baseline = click.option(_BASELINE_ID, help="Which of the baseline's; the latest by default.")


@click.command()
@click.argument("baseline_run", type=RUN)
@click.argument("candidate_run", type=RUN)
@_of_baseline
@click.option(_CANDIDATE_ID, help="Which of the candidate's; the latest by default.")
@as_json
def compare(
    *,
    baseline_run: Path,
    candidate_run: Path,
    baseline_evaluation_id: str | None,
    candidate_evaluation_id: str | None,
    as_json: bool,
) -> int:
    """Compare two evaluations by the same spec, answer by answer.

    Fails when the candidate fails or an answer that was met is violated now; is inconclusive when
    an answer has no pair or no verdict.
    """
    with (
        chosen(baseline_run, baseline_evaluation_id, _BASELINE_ID) as baseline,
        chosen(candidate_run, candidate_evaluation_id, _CANDIDATE_ID) as candidate,
    ):
        report = comparisons.compare(baseline, candidate)
    answer(report, compared.lines(report), as_json=as_json)
    return EXIT_CODES[report["decision"]]


@click.command()
@run
@evaluation_id
@click.option("--policy", type=FILE, help="Gates (YAML).")
@click.option("--baseline", type=RUN, help="A run to compare with.")
@_of_baseline
@click.option("--out", type=FOLDER, help="Write evaluation.json, index.html and more here.")
@force
@as_json
def check(
    *,
    run: Path,
    evaluation_id: str | None,
    policy: Path | None,
    baseline: Path | None,
    baseline_evaluation_id: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Decide about a release by an evaluation, its gates and a baseline; run nothing.

    With --out the artifacts of the release are written: evaluation.json, index.html, junit.xml,
    summary.md.
    """
    if baseline_evaluation_id is not None and baseline is None:
        raise click.UsageError(f"{_BASELINE_ID} needs a --baseline")
    with ExitStack() as opened:
        view = opened.enter_context(chosen(run, evaluation_id))
        before = None
        if baseline is not None:
            before = opened.enter_context(chosen(baseline, baseline_evaluation_id, _BASELINE_ID))
        summary = checked(view, None if policy is None else gates.load(policy), before)
        paths = [] if out is None else write_forms(view, summary, out, ARTIFACTS, force=force)
    found = {
        "evaluation_id": summary["evaluation_id"],
        "baseline_evaluation_id": None if before is None else before.evaluation.id,
        **summary["release"],
        "artifacts": [str(path) for path in paths],
    }
    lines = [*text_report.lines(summary), *release.lines(summary), *map(str, paths)]
    answer(found, lines, as_json=as_json)
    return EXIT_CODES[found["decision"]]


COMMANDS = (compare, check)
