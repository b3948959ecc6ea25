"""Commands for suites: everything from capture to artifacts in one step."""

from dataclasses import asdict
from pathlib import Path

import click

from evaluators import example_suite, suite
from evaluators.commands.shared import (
    EXIT_CODES,
    FILE,
    FOLDER,
    RUN,
    answer,
    as_json,
    at_work,
    force,
)
from evaluators.reports import release


@click.command("init-suite")
@click.argument("folder", type=FOLDER)
@force
@as_json
def init_suite(*, folder: Path, force: bool, as_json: bool) -> None:
    """Write an example that runs as it is: a dataset and a suite, without target or judge."""
    paths = [str(path) for path in example_suite.write(folder, force=force)]
    answer({"files": paths}, paths, as_json=as_json)


@click.command("run-suite")
@click.argument("file", type=FILE)
@click.option("--out", type=FOLDER, default=Path("reports"), show_default=True)
@click.option("--resume", "resumed", type=RUN, help="Go on with a run of this very suite.")
@as_json
def run_suite(*, file: Path, out: Path, resumed: Path | None, as_json: bool) -> int:
    """Capture, evaluate, compare with a baseline, apply the gates and write the artifacts."""
    loaded = suite.load(file)
    with at_work() as progress:
        outcome = suite.run(loaded, out, resumed=resumed, progress=progress)
    lines = [
        f"Run: {outcome.run_dir}",
        f"Evaluation: {outcome.evaluation_id}",
        f"Decision: {outcome.decision}",
        *([f"Capture failed: {outcome.capture_error}"] if outcome.capture_error else []),
        *release.lines({"release": outcome.release}),
        *outcome.artifacts,
    ]
    printed = {name: value for name, value in asdict(outcome).items() if name != "release"}
    answer(printed, lines, as_json=as_json)
    return EXIT_CODES[outcome.decision]


COMMANDS = (init_suite, run_suite)
