"""Reviewed answers become a regression dataset; what is expected of them is kept apart from it.

The dataset holds whole conversations up to the last reviewed answer, as they were captured, and can
be captured again with a new target. The expectations are a file of their own, so that no target and
no judge sees them.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from evaluators import transcripts
from evaluators.canonical import canonical
from evaluators.errors import RunError
from evaluators.reports.files import refuse_existing
from evaluators.review import adjudications, tasks
from evaluators.store import reviews
from evaluators.summary import Json, View

DATASET = "dataset.jsonl"
EXPECTATIONS = "expectations.jsonl"


def promote(view: View, out: Path, *, stream: str = "primary", force: bool = False) -> Json:
    """Write the answers with a human adjudication in force; return the counts and the paths.

    Raises RunError when there is none, when a file exists (unless `force`), or without the stream.
    """
    target = transcripts.target_of(view.run, stream)
    paths = [out / DATASET, out / EXPECTATIONS]
    if not force:
        refuse_existing(paths)
    expectations, last = _expected(view, stream)
    if not expectations:
        raise RunError("no answer of this evaluation has a human adjudication in force")
    out.mkdir(parents=True, exist_ok=True)
    turns = _write(paths[0], _turns(view, target, last))
    _write(paths[1], iter(map(canonical, expectations)))
    return {
        "turns": turns,
        "expectations": len(expectations),
        "files": [str(path) for path in paths],
    }


def _expected(view: View, stream: str) -> tuple[list[Json], dict[str, int]]:
    """Return the expectations, and the ordinal of the last reviewed answer of each session."""
    wanted = {review["evidence_digest"]: review for review in adjudications(view.connection)[0]}
    expectations: list[Json] = []
    last: dict[str, int] = {}
    for case, task in tasks(view):
        review = wanted.get(task["evidence_digest"])
        if review is not None and case.input.stream == stream:
            expectations.append(_expectation(task, review))
            last[case.session_id] = case.input.ordinal
    return expectations, last


def _expectation(task: Json, review: Json) -> Json:
    annotation = review["annotation"]
    return {
        "schema_version": 1,
        "case_id": task["case_id"],
        "case_revision": task["case_revision"],
        "criterion_id": task["criterion"]["id"],
        "criterion_revision": task["criterion"]["revision"],
        "outcome": annotation["outcome"],
        "rationale": annotation["rationale"],
        "reviewer": annotation["reviewer"],
        "review_id": annotation["id"],
        "run_id": task["run_id"],
        "evidence_digest": task["evidence_digest"],
    }


def _turns(view: View, target: Json, last: dict[str, int]) -> Iterator[str]:
    for turn in reviews.committed_turns(view.connection, target["stream"]):
        if turn.ordinal > last.get(turn.session_id, -1):
            continue
        content = turn.record
        if turn.answer is not None:
            content = transcripts.answered(turn.record, turn.answer, target["model"])
        if turn.case_id is not None:
            content = canonical({**json.loads(content), "case_id": turn.case_id})
        yield content


def _write(path: Path, lines: Iterator[str]) -> int:
    written = 0
    replacement = path.with_name(f".{path.name}.new")
    with replacement.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(f"{line}\n")
            written += 1
    replacement.replace(path)
    return written
