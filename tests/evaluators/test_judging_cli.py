"""The commands of a judged evaluation, as a user types them."""

import json

import pytest

from tests.evaluators.records import assistant, captured, user

FAITHFUL = """
id: practical
revision: draft-1
criteria:
  - id: practical_faithfulness
    revision: draft-1
    evaluator: faithfulness
"""
CUSTOM = """
id: style
revision: r1
qualification: reviewed
criteria:
  - id: short
    revision: v1
    evaluator: house
    config: {most: 30}
"""
JUDGE = """
from evaluators.adapters import from_function
from tests.evaluators.judge import verdict
import json


def make_judge():
    def answer(system, prompt):
        payload = json.loads(prompt)
        if "lost" in payload["answer"]["text"]:
            raise ConnectionError
        return verdict(payload)
    return from_function(answer, "of-the-module", configuration_digest="0" * 64)
"""
EVALUATOR = """
from evaluators.custom import Evaluator
from evaluators.metrics import Descriptor

METRIC = Descriptor("house.length", "Characters.", "mean", "characters", "lower")


def check(*, answer, conversation, context, config, sources):
    return {
        "outcome": "met" if len(answer) <= config["most"] else "violated",
        "rationale": f"It has {len(answer)} characters.",
        "evidence": [{"source_id": "answer", "quote": answer}],
        "metrics": {"house.length": {"numerator": len(answer), "denominator": 1}},
    }


def make():
    return Evaluator(id="house", revision="v1", function=check, metrics=(METRIC,))
"""


@pytest.fixture
def judged(tmp_path, command):
    """Evaluate four answers, one of which is lost on the way; a spec with a judge beside it."""
    texts = ["Take 1 mg.", "Take 2 mg.", "This one is lost.", "Take 4 mg."]
    run = captured(tmp_path, [turn for text in texts for turn in (user(), assistant(text))])
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "spec.yaml").write_text(FAITHFUL)
    (folder / f"judge_{tmp_path.name}.py").write_text(JUDGE)

    def evaluate(*options):
        factory = f"judge_{tmp_path.name}:make_judge"
        spec = folder / "spec.yaml"
        return command("evaluate", run, "--spec", spec, "--judge-factory", factory, *options)

    return run, evaluate


def counts(command, run):
    return json.loads(command("evaluation-status", run, "--json")[1])["counts"]


def test_a_judge_beside_the_spec_judges_within_its_budget(judged, command):
    run, evaluate = judged

    code, out, err = evaluate("--max-judge-calls", 3, "--concurrency", 2)

    assert (code, err) == (3, "")
    assert "Judge calls reserved: 3/3" in out
    assert "mesedi-eval budget raises it" in out
    assert counts(command, run) == {"met": 2, "budget_blocked": 1, "unknown_outcome": 1}
    assert evaluate("--max-judge-calls", 4)[0] == 1
    assert evaluate()[0] == 3


def test_a_person_raises_the_budget_and_settles_what_is_unknown(judged, command, tmp_path):
    run, evaluate = judged
    evaluate("--max-judge-calls", 3)
    why = ("--reason", "it is worth it")
    assert command("budget", run, "--max-judge-calls", 2, *why)[0] == 1

    code, out, _ = command("budget", run, "--max-judge-calls", 5, *why)

    assert (code, out) == (0, "3 calls before, 5 calls now\n")
    assert evaluate()[0] == 3
    assert counts(command, run) == {"met": 3, "unknown_outcome": 1}
    calls = json.loads(command("evaluation-status", run, "--details")[1])["calls"]
    (lost,) = [call["id"] for call in calls if call["status"] == "unknown_outcome"]
    assert command("settle", run, lost, *why)[0] == 1
    assert command("settle", run, "nobody", "--failed", *why)[0] == 1
    (tmp_path / "reply.txt").write_bytes(b"\xff")
    assert command("settle", run, lost, "--reply", tmp_path / "reply.txt", *why)[0] == 1
    assert command("settle", run, lost, "--failed", "--reason", "it never came")[0] == 0
    assert evaluate()[0] == 3
    assert counts(command, run) == {"met": 3, "invalid": 1}
    assert command("settle", run, lost, "--failed", *why)[0] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--max-judge-calls"),
        (("--max-judge-calls", 3, "--max-judge-cost-micros", 9), "what a call can cost"),
        (("--max-judge-calls", 3, "--judge-factory", "no_such_module:make"), "cannot be imported"),
        (("--max-judge-calls", 3, "--judge-factory", "json:dumps"), "judge factory failed"),
        (("--max-judge-calls", 3, "--judge-factory", "json:JSONDecoder"), "no JudgeContract"),
        (("--max-judge-calls", 3, "--judge-factory", "sys:exit"), "judge factory failed"),
        (("--max-judge-calls", -1), "Invalid value"),
        (("--max-judge-calls", 3, "--concurrency", 0), "Invalid value"),
    ],
)
def test_a_judge_that_cannot_be_used_is_refused(judged, options, message):
    code, _, err = judged[1](*options)
    assert code == 1
    assert message in err


def test_a_registered_evaluator_measures_and_decides(tmp_path, command):
    run = captured(tmp_path, [user(), assistant("Short."), user(), assistant("Long. " * 20)])
    (tmp_path / "spec.yaml").write_text(CUSTOM)
    (tmp_path / "house_style.py").write_text(EVALUATOR)
    evaluate = ("evaluate", run, "--spec", tmp_path / "spec.yaml", "--json")

    missing = command(*evaluate)
    code, out, _ = command(*evaluate, "--evaluator-factory", "house_style:make")

    assert missing[0] == 1
    assert "no evaluator 'house' is registered" in missing[2]
    assert code == 2
    assert json.loads(out)["metrics"]["house.length"]["value"] == 63.0
    details = json.loads(command("evaluation-status", run, "--details")[1])
    assert details["results"][0]["assessment"]["kind"] == "custom"
    assert details["inputs"][0]["payload"]["config"] == {"most": 30}
