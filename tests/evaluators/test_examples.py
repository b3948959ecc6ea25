"""The commands of the documentation, on the example that comes with it."""

from pathlib import Path

import click
import pytest

from evaluators import cli, evaluation_summary
from evaluators.spec import load

ROOT = Path(cli.__file__).parents[1]
EXAMPLES = ROOT / "examples" / "evaluators"


@pytest.fixture
def run(tmp_path, capsys):
    def capture_example(name):
        arguments = ["capture", "--dataset", EXAMPLES / f"{name}.jsonl", "--out", tmp_path]
        assert cli.run_command([str(argument) for argument in arguments]) == 0
        return Path(capsys.readouterr().out.strip())

    return capture_example


def evaluate(run, spec, *more):
    return cli.run_command(["evaluate", str(run), "--spec", str(EXAMPLES / spec), *more])


def test_the_answers_as_they_were_are_violated(run):
    directory = run("greenhouse")

    assert evaluate(directory, "grounding-draft.yaml") == 2

    details = evaluation_summary(directory, details=True)
    outcomes = {
        shown["case_id"]: result["status"]
        for shown, result in zip(details["inputs"], details["results"], strict=True)
    }
    assert details["counts"]["met"] == 13
    assert {case: status for case, status in outcomes.items() if status != "met"} == {
        "aphids-strong": "violated",
        "chilli-mat": "violated",
        "feeding-small-can": "violated",
        "spacing-string": "violated",
        "slugs-dose": "needs_review",
        "frost": "missing_evidence",
        "vent-weight": "missing_evidence",
        "thanks": "not_applicable",
    }


def test_the_corrected_answers_pass_once_the_spec_is_reviewed(run):
    directory = run("greenhouse-corrected")

    assert evaluate(directory, "grounding-draft.yaml") == 3
    assert evaluate(directory, "grounding-reviewed.yaml") == 1
    assert evaluate(directory, "grounding-reviewed.yaml", "--new-evaluation") == 0


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_every_example_spec_is_valid(name):
    assert load(EXAMPLES / name).qualification == name.removesuffix(".yaml").rsplit("-", 1)[-1]


@pytest.mark.parametrize("name", ["faithfulness-draft.yaml", "behaviour-rubric-draft.yaml"])
def test_a_spec_that_needs_a_judge_is_refused(run, capsys, name):
    assert evaluate(run("greenhouse"), name) == 1
    assert "needs a judge" in capsys.readouterr().err


def test_every_command_and_option_is_documented():
    page = (ROOT / "docs" / "evaluators.md").read_text()

    context = click.Context(cli.cli)
    commands = {n: cli.cli.get_command(context, n) for n in cli.cli.list_commands(context)}
    options = {opt for each in commands.values() for param in each.params for opt in param.opts}

    words = {*commands, *(option for option in options if option.startswith("--"))}
    assert [word for word in sorted(words) if f"`{word}`" not in page] == []
