"""kill -9 at random moments: what is finished stays as it is, the rest is done by a rerun.

Seven kills a test in the ordinary run; `make test-eval-kills` does a hundred each
(MESEDI_EVAL_KILLS, MESEDI_EVAL_SEED).
"""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from evaluators import cli, evaluate_saved, evaluation_summary
from evaluators.capture import status
from evaluators.resuming import resume
from evaluators.store import evaluations
from evaluators.store.database import opened
from tests.evaluators.records import captured, pairs, spec, write

KILLS = int(os.environ.get("MESEDI_EVAL_KILLS", "7"))
SEED = int(os.environ.get("MESEDI_EVAL_SEED", "5"))
ROOT = Path(cli.__file__).parents[1]
ANSWERS = 1200
SPEC = """
id: checks
revision: r1
criteria:
  - id: traceability
    revision: v1
    evaluator: grounding
"""
COUNTING_TARGET = """
import os
from evaluators.targets import RecoveryContract


class Bot:
    contract = RecoveryContract("0" * 64, "stateless", "idempotent", max_attempts=1000)

    def chat(self, messages, *, request_id):
        with open(os.environ["ASKED"], "a") as file:
            file.write(request_id + "\\n")
        return f"answer to {len(messages)}"


def make():
    return "counting", Bot()
"""


def start(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "evaluators", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_after(process, delay_s):
    """Kill a process after a while; say whether it was still at work."""
    try:
        process.wait(timeout=delay_s)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait() < 0


def duration(*arguments, **environment):
    begin = time.monotonic()
    start(*arguments, **environment).wait()
    return time.monotonic() - begin


def results(run):
    connection = sqlite3.connect(f"file:{run / 'run.sqlite3'}?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT number, content FROM evaluation_results"))
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


@pytest.fixture
def chance():
    print(f"MESEDI_EVAL_SEED={SEED}")
    return random.Random(SEED)


def test_a_killed_evaluation_goes_on_and_repeats_nothing(tmp_path, chance):
    spec_file = tmp_path / "spec.yaml"
    spec_file.write_text(SPEC)
    fresh = captured(tmp_path, pairs(ANSWERS))
    shutil.copytree(fresh, tmp_path / "timed")
    takes_s = duration("evaluate", tmp_path / "timed", "--spec", spec_file)

    kills = 0
    while kills < KILLS:
        run = tmp_path / f"run-{kills}"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(fresh, run)
        finished = {}
        for _ in range(20):
            process = start("evaluate", run, "--spec", spec_file)
            was_killed = kill_after(process, chance.uniform(0.05, takes_s))
            status(run)  # undoes a torn transaction, as any reader does
            stored = results(run)
            assert finished.items() <= stored.items()
            finished = stored
            kills += was_killed
            if not was_killed:
                break
        evaluate_saved(run, spec(id="checks", qualification="draft"))
        summary = evaluation_summary(run)
        assert summary["counts"] == {"met": ANSWERS}
        assert finished.items() <= results(run).items()
        with opened(run) as connection:
            assert evaluations.latest(connection).sequence == 1


def test_a_killed_capture_of_recorded_answers_goes_on_or_left_no_run(tmp_path, chance):
    dataset = write(tmp_path / "data.jsonl", pairs(ANSWERS * 2))
    out = tmp_path / "runs"
    takes_s = duration("capture", "--dataset", dataset, "--out", out)
    whole = next(path for path in out.iterdir())
    expected = (whole / "transcripts" / "recorded.jsonl").read_bytes()
    seen = {whole}

    kills = 0
    while kills < KILLS:
        process = start("capture", "--dataset", dataset, "--out", out)
        kills += kill_after(process, chance.uniform(0.05, takes_s))
        made = {path for path in out.iterdir() if not path.name.startswith(".")} - seen
        for run in made:
            resume(run)
            assert status(run)["status"] == "captured"
            assert status(run)["observations"] == ANSWERS * 2
            assert (run / "transcripts" / "recorded.jsonl").read_bytes() == expected
        seen |= made


def test_a_killed_target_capture_asks_again_only_what_was_in_flight(tmp_path, chance):
    answers = 30
    (tmp_path / "counting_target.py").write_text(COUNTING_TARGET)
    dataset = write(tmp_path / "data.jsonl", pairs(answers))
    asked = tmp_path / "asked"
    target = ("--target", "counting_target:make")
    made = ("capture", "--dataset", dataset, "--out", tmp_path / "runs", *target)
    takes_s = duration(*made, ASKED=str(asked))

    kills = 0
    while kills < KILLS:
        asked.write_text("")
        before = set((tmp_path / "runs").glob("[!.]*"))
        process = start(*made, ASKED=str(asked))
        interruptions = kill_after(process, chance.uniform(takes_s / 3, takes_s))
        runs = set((tmp_path / "runs").glob("[!.]*")) - before
        for run in runs:
            for _ in range(50):
                process = start("resume", run, *target, ASKED=str(asked))
                if not kill_after(process, chance.uniform(0.1, takes_s)):
                    break
                interruptions += 1
            if status(run)["status"] != "captured":
                assert start("resume", run, *target, ASKED=str(asked)).wait() == 0
            _check_requests(run, asked, answers, interruptions)
        kills += interruptions


def _check_requests(run, asked, answers, interruptions):
    sent = Counter(asked.read_text().split())
    found = status(run)
    assert found["observations"] == found["attempts"]["succeeded"] == answers
    assert len(sent) == answers
    assert sent.total() <= answers + interruptions
    assert sent.total() <= sum(found["attempts"].values())
    assert "running" not in found["attempts"]
    transcript = (run / "transcripts" / "counting.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in transcript[1::2]] == ["answer to 1"] * answers
