"""The command `assess`: single answers, without a run."""

import sys
from typing import BinaryIO

import click

from evaluators.assess import run as assess_lines


@click.command()
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


COMMANDS = (assess,)
