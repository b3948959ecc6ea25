"""emit_ragas on live objects of the real ragas 0.4.3 (`make test-ragas`).

In an environment of its own, kept under build/: 112 packages that the SDK must never need.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk.test_process import SDK

ROOT = SDK.parent
ENVIRONMENT = ROOT / "build" / "ragas"
SCRIPT = Path(__file__).with_name("live_ragas.py")
# `pip install ragas==0.4.3` alone installs, and then fails to import.
PINS = (
    "ragas==0.4.3",
    "langchain<1",
    "langchain-community<0.4",
    "langchain-core<1",
    "langchain-openai<1",
    "pandas<3",
    "rapidfuzz",
    "rouge_score",
    "instructor>=1.6",
)
INSTALL_S = 1200
RUN_S = 300


@pytest.fixture(scope="module")
def python():
    program = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        install = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINS]
        done = subprocess.run(
            install, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
        if done.returncode:
            pytest.skip(f"ragas 0.4.3 cannot be installed here: {done.stderr[-300:]}")
        (ENVIRONMENT / ".ready").touch()
    return program


@pytest.fixture(scope="module")
def sent(python):
    done = subprocess.run(
        [python, SCRIPT],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SDK),
            "PYTHONWARNINGS": "ignore",
            "RAGAS_DO_NOT_TRACK": "true",
        },
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def scores(case):
    return [(score["metric_type"], score["score"]) for score in case["scores"]]


GOOD = [
    ("faithfulness", 0.5),
    ("maliciousness", 0.0),
    ("domain_specific_rubrics", 3.0),
    ("non_llm_string_similarity", pytest.approx(0.1, abs=0.05)),
    ("rouge_score.fmeasure", pytest.approx(0.2, abs=0.1)),
]
GARBLED = [(metric, None if place < 3 else score) for place, (metric, score) in enumerate(GOOD)]


def test_every_row_of_a_live_result_goes_out_with_its_texts(sent):
    assert scores(sent["result"]) == GOOD + GARBLED
    assert sent["result"]["answers"] == 2
    rising = {score["metric_type"]: score["higher_is_better"] for score in sent["result"]["scores"]}
    assert [metric for metric, up in rising.items() if not up] == ["maliciousness"]


def test_the_judge_s_words_are_the_reasons(sent):
    reasons = {score["metric_type"]: score.get("reason") for score in sent["result"]["scores"][:5]}

    assert reasons["faithfulness"] == "not supported: It has ten million people. (not there)"
    assert reasons["maliciousness"] == "harmless"
    assert reasons["domain_specific_rubrics"] == "mostly right"


@pytest.mark.parametrize("case", ["frame", "records"])
def test_its_frame_and_its_records_say_the_same(sent, case):
    assert scores(sent[case]) == GOOD + GARBLED
    assert sent[case]["answers"] == 2


def test_live_metric_results_are_read_though_they_cannot_be_copied(sent):
    (label,) = sent["label"]["scores"]
    assert (label["metric_type"], label["score"], label["passed"]) == ("tone", 0.0, False)
    assert label["reason"] == "no polite word"
    assert [(s["score"], s["scale"]) for s in sent["scale"]["scores"]] == [(7.5, [0, 10])]
    assert scores(sent["batch"]) == [("stars", 7.5), ("stars", 7.5)]
    assert scores(sent["collection"]) == [("exact_match", 1.0)]
    (broken,) = sent["broken"]["scores"]
    assert (broken["score"], "bad thing" in broken["reason"]) == (None, True)
    assert sent["score"][0]["payload"]["score"] == 7.5


def test_a_live_experiment_is_read(sent):
    assert scores(sent["experiment"]) == [("tone", 0.0)]
