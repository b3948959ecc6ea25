"""Ask judges, and die on the way, as `kill -9` would have it: `python -m` this.

    DATABASE_URL POINT NUMBER

POINT is one of POINTS: the process kills itself there at its NUMBER-th time. With `never` it ends by itself.
"""

import sys

from mesedi_server import judging, verdicts
from mesedi_server.store import assessments, judge_calls, judge_scores, judge_work
from mesedi_server.store.database import Database
from tests.dying import die_at
from tests.server.judges.asking import RULES

POINTS = {
    "before the reservation": (judge_calls, "reserve", "before"),
    "before it commits": (judge_calls, "reserve", "after"),
    "after it commits": (judging, "_ask_next", "after"),
    "before the request is sent": (judging, "_ask", "before"),
    "after the judge answers": (judging, "_ask", "after"),
    "before the reply is saved": (judge_calls, "finish", "before"),
    "before that commits": (judge_calls, "finish", "after"),
    "after that commits": (judging, "_save", "after"),
    "before the reply is read": (verdicts, "conclude", "before"),
    "after it is read": (verdicts, "conclude", "after"),
    "after the assessment": (assessments, "put", "after"),
    "after the scores": (judge_scores, "write", "after"),
    "before the end commits": (judge_work, "done", "after"),
    "after the end commits": (judging, "_conclude_next", "after"),
}


def main() -> None:
    url, point, number = sys.argv[1:]
    if point != "never":
        die_at(POINTS[point], int(number))
    judging.judge_all(Database(url, connections=1, patient=True), RULES)


if __name__ == "__main__":
    main()
