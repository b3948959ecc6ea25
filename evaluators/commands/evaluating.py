"""The command `evaluate`."""

from pathlib import Path

import click

from evaluators.commands.shared import (
    EXIT_CODES,
    FILE,
    answer,
    as_json,
    at_work,
    run,
)
from evaluators.evaluation import evaluated
from evaluators.judges import LARGEST_COST_MICROS
from evaluators.ledger import Budget
from evaluators.loading import evaluators as load_evaluators
from evaluators.loading import judge as load_judge
from evaluators.reports import text as text_report
from evaluators.results import Means
from evaluators.spec import load as load_spec
from evaluators.summary import summarize, viewed


@click.command()
@run
@click.option("--spec", type=FILE, required=True, help="What is checked (YAML).")
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
@as_json
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
    with at_work() as progress:
        wanted = load_spec(spec)
        means = Means.of(
            wanted,
            load_judge(judge_factory, wanted, spec.parent),
            load_evaluators(evaluator_factory, wanted, spec.parent),
            concurrency,
        )
        found = evaluated(
            run, means, new_evaluation=new_evaluation, budget=budget, progress=progress
        )
    with viewed(run, found.id, verify=False) as view:
        summary = summarize(view, found.counted)
    answer(summary, text_report.lines(summary), as_json=as_json)
    return EXIT_CODES[summary["decision"]]


COMMANDS = (evaluate,)
