"""kill -9 around judge calls: the judge keeps its own books, and they must agree with the ledger."""

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.server.judges.asking import Judged, judge_server, prompts

ROOT = Path(__file__).parents[3]


def start(database_url: str, point: str = "never", number: int = 0) -> subprocess.Popen:
    argv = [sys.executable, "-m", "tests.server.judges.killed", database_url, point, str(number)]
    return subprocess.Popen(argv, cwd=ROOT)


def be_killed(
    judged: Judged,
    database_url: str,
    *,
    answers: int,
    concurrency: int,
    deaths: list[tuple[str, int]],
) -> int:
    """Let processes die at some points one after the other, the last one live; compare the books, return the deaths."""
    with judge_server() as server:
        judged.set_judge(server.url, concurrency=concurrency)
        for number in range(answers):
            judged.give(f"exec-{number}", text=f"Take {number} mg.")
        killed = 0
        for point, number in deaths:
            killed += start(database_url, point, number).wait() < 0
            give_up_what_was_under_way(judged)
        assert start(database_url).wait() == 0
        check(judged, server, answers, most_unknown=killed * concurrency)
    return killed


def be_killed_at_random(
    judged: Judged, database_url: str, *, answers: int, rounds: int, dice: random.Random
) -> None:
    """Kill processes at any time, two at once, and compare the books at the end."""
    with judge_server() as server:
        judged.set_judge(server.url, concurrency=4, calls_per_day=10_000)
        for number in range(answers):
            judged.give(f"exec-{number}", text=f"Take {number} mg.")
        for _ in range(rounds):
            processes = [start(database_url) for _ in range(2)]
            time.sleep(dice.uniform(0.5, 2.0))
            for process in processes:
                process.kill()
                process.wait()
            give_up_what_was_under_way(judged)
        assert start(database_url).wait() == 0
        check(judged, server, answers, most_unknown=rounds * 4)


def give_up_what_was_under_way(judged: Judged) -> None:
    judged.run(
        "UPDATE judge_calls SET started_at = started_at - interval '301 seconds' WHERE status = 'running'"
    )


def check(judged: Judged, server, answers: int, *, most_unknown: int) -> None:
    asked = prompts(server)
    calls = judged.rows(
        f"SELECT request::jsonb ->> 'prompt', status FROM judge_calls WHERE project_pk = {judged.pk}"
    )
    saved = {prompt for prompt, status in calls if status == "response_saved"}
    unknown = {prompt for prompt, status in calls if status == "unknown_outcome"}
    assert set(asked.values()) <= {1}
    assert set(asked) <= saved | unknown
    assert saved <= set(asked)
    assert len(calls) == len(saved | unknown) == answers
    assert len(unknown) <= most_unknown
    outcomes = judged.outcomes()
    assert outcomes.count("met") == len(saved)
    assert outcomes.count("unknown_outcome") == len(unknown)
    assert len(judged.scores()) == 2 * len(saved)
    assert judged.waiting() == 0
