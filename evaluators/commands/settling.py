"""The commands `settle` and `budget`: what only a person may do with the judge ledger."""

from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import click

from evaluators import settling
from evaluators.commands.shared import as_json, print_json, run
from evaluators.judges import LARGEST_COST_MICROS

_reason = click.option("--reason", required=True, help="Why; kept in the run.")


@click.command()
@run
@click.argument("call")
@click.option("--reply", type=click.File("rb"), help="The raw text that the judge gave.")
@click.option("--failed", is_flag=True, help="The judge gave none.")
@_reason
@as_json
def settle(
    run: Path, call: str, reply: BinaryIO | None, reason: str, *, failed: bool, as_json: bool
) -> None:
    """Say what became of a judge call whose outcome is unknown.

    It is never sent again. `evaluate` then turns the reply into a result.
    """
    if (reply is None) != failed:
        raise click.UsageError("give either --reply FILE or --failed")
    settled = settling.settle(run, call, None if reply is None else _text(reply), reason)
    if as_json:
        print_json(settled.to_json())
    else:
        click.echo(f"{call}: {settled.status}; mesedi-eval evaluate takes it up")


@click.command()
@run
@click.option("--max-judge-calls", type=click.IntRange(min=0, max=2**31), required=True)
@click.option("--max-judge-cost-micros", type=click.IntRange(min=0, max=LARGEST_COST_MICROS))
@_reason
@as_json
def budget(
    run: Path,
    max_judge_calls: int,
    max_judge_cost_micros: int | None,
    reason: str,
    *,
    as_json: bool,
) -> None:
    """Raise the judge budget of a run. Both values stay in its reports."""
    before, after = settling.raise_budget(
        run, reason, max_calls=max_judge_calls, max_cost_micros=max_judge_cost_micros
    )
    if as_json:
        print_json({"from": asdict(before), "to": asdict(after), "reason": reason})
    else:
        click.echo(f"{before.in_words()} before, {after.in_words()} now")


def _text(reply: BinaryIO) -> str:
    try:
        return reply.read().decode()
    except UnicodeDecodeError as error:
        raise click.UsageError("the reply is not UTF-8") from error


COMMANDS = (settle, budget)
