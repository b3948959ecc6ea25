"""kill -9 around a judge call: nothing is asked twice, no reply that was saved is lost.

The judge keeps its own books, and they must agree with the ledger. A few kills in the ordinary
run; `make test-eval-kills` makes some hundred (MESEDI_EVAL_KILLS, MESEDI_EVAL_SEED).
"""

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter

import pytest

from evaluators import evaluation_summary
from tests.evaluators.killed import POINTS, name_of
from tests.evaluators.records import assistant, captured, user
from tests.evaluators.test_kills import KILLS, ROOT, SEED, kill_after

ANSWERS = 12
NONE_UNDER_WAY = (
    "before the reservation",
    "before it commits",
    "before results are stored",
    "before they commit",
)
ONE_MAY_BE = ("before the reply is read", "after it is read")
"""A reply is read while the judge has the next request already."""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    records = [
        turn
        for number in range(ANSWERS)
        for turn in (
            user(session=f"s{number}"),
            assistant(f"Take {number} mg.", session=f"s{number}"),
        )
    ]
    return captured(tmp_path_factory.mktemp("fresh"), records)


def start(run, book, concurrency, point="never", number=0):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.evaluators.killed",
         *map(str, (run, book, concurrency, point, number))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def check(run, book, kills, concurrency):
    """Compare the judge's books with the ledger; return how many outcomes are unknown."""
    asked = Counter(book.read_text().split()) if book.exists() else Counter()
    details = evaluation_summary(run, details=True)
    calls = {name_of(call["request"]["prompt"]): call for call in details["calls"]}
    assert set(asked.values()) <= {1}
    assert set(asked) <= set(calls)
    assert len(calls) == ANSWERS
    unknown = {name for name, call in calls.items() if call["status"] == "unknown_outcome"}
    assert {call["status"] for call in calls.values()} <= {"unknown_outcome", "response_saved"}
    assert set(calls) - unknown <= set(asked)
    assert len(unknown) <= kills * concurrency
    counts = details["criteria"]["faithful"]["counts"]
    assert counts.get("unknown_outcome", 0) == len(unknown)
    assert counts.get("met", 0) == ANSWERS - len(unknown)
    assert details["criteria"]["traceability"]["planned"] == ANSWERS
    assert "pending" not in details["criteria"]["traceability"]["counts"]
    return len(unknown)


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("point", POINTS)
def test_killed_between_two_steps_it_asks_nothing_again_and_loses_nothing(
    tmp_path, fresh, point, concurrency
):
    chance = random.Random(f"{SEED} {point}")
    for kill in range(1 + KILLS // 10):
        run, book, number = (
            tmp_path / f"run-{kill}",
            tmp_path / f"book-{kill}",
            chance.randint(1, ANSWERS),
        )
        shutil.copytree(fresh, run)
        was_killed = start(run, book, concurrency, point, number).wait() < 0
        assert start(run, book, concurrency).wait() == 0
        unknown = check(run, book, was_killed, concurrency)
        if concurrency == 1 and point not in ONE_MAY_BE:
            assert unknown == (was_killed and point not in NONE_UNDER_WAY)
        shutil.rmtree(run)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_killed_at_random_it_asks_nothing_again_and_loses_nothing(tmp_path, fresh, concurrency):
    print(f"MESEDI_EVAL_SEED={SEED}")
    chance = random.Random(SEED)
    shutil.copytree(fresh, tmp_path / "timed")
    begin = time.monotonic()
    assert start(tmp_path / "timed", tmp_path / "unread", concurrency).wait() == 0
    takes_s = time.monotonic() - begin

    kills = 0
    while kills < KILLS:
        run, book = tmp_path / f"run-{kills}", tmp_path / f"book-{kills}"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(fresh, run)
        killed = 0
        for _ in range(20):
            process = start(run, book, concurrency)
            if not kill_after(process, chance.uniform(takes_s / 3, takes_s)):
                assert process.returncode == 0
                break
            killed += 1
        else:
            assert start(run, book, concurrency).wait() == 0
        check(run, book, killed, concurrency)
        kills += max(killed, 1)
