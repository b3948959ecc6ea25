"""Evaluate a run with a judge that keeps its own books, and die on the way: `python -m` this.

    RUN BOOK CONCURRENCY POINT NUMBER

BOOK is the file in which the judge notes each request. POINT is one of POINTS: at its NUMBER-th
time the process kills itself, as `kill -9` would. With POINT `never` it ends by itself.
"""

import json
import os
import sys
import time
from hashlib import sha256
from pathlib import Path

from evaluators import assessing, evaluate_saved, judging
from evaluators.ledger import Budget
from evaluators.store import calls, evaluations
from tests.dying import die_at
from tests.evaluators.judge import FAITHFUL, Judge, verdict
from tests.evaluators.records import GROUNDING, spec

POINTS = {
    "before the reservation": (calls, "reserve", "before"),
    "before it commits": (calls, "reserve", "after"),
    "before the dispatch": (judging._Pool, "send", "before"),
    "after the dispatch": (judging._Pool, "send", "after"),
    "before the judge answers": (Judge, "evaluate", "before"),
    "after the judge answers": (Judge, "evaluate", "after"),
    "before the reply is saved": (calls, "finish", "before"),
    "before that commits": (calls, "finish", "after"),
    "before the reply is read": (assessing, "conclude", "before"),
    "after it is read": (assessing, "conclude", "after"),
    "before results are stored": (evaluations, "add_results", "before"),
    "before they commit": (evaluations, "add_results", "after"),
}
SPEC = spec(GROUNDING, FAITHFUL)


def name_of(prompt):
    return sha256(prompt.encode()).hexdigest()


class Bookkeeping(Judge):
    """Notes what it was asked before it answers."""

    def __init__(self, book):
        super().__init__(self._answer)
        self._book = book

    def _answer(self, payload):
        time.sleep(0.003)
        return verdict(payload)

    def evaluate(self, request):
        line = f"{name_of(request.prompt)}\n".encode()
        handle = os.open(self._book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, line)
        os.close(handle)
        return super().evaluate(request)


def main():
    run, book, concurrency, point, number = sys.argv[1:]
    if point != "never":
        die_at(POINTS[point], int(number))
    judge = Bookkeeping(Path(book))
    evaluate_saved(Path(run), SPEC, judge=judge, budget=Budget(1000), concurrency=int(concurrency))
    print(json.dumps({"asked": len(judge.asked)}))


if __name__ == "__main__":
    main()
