"""`mesedi-eval assess`: grounding of single answers, without a capture and without a model."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TextIO, TypeAlias

from evaluators import evidence, grounding
from evaluators.evidence import MissingEvidence
from evaluators.jsonlines import LineError, read_object

QUESTION_ID = "turn:0"
"""Source id of the question: it is the turn before the answer, and there is no other."""

Json: TypeAlias = dict[str, Any]


class Malformed(NamedTuple):
    """A line that could not be assessed.

    Attributes:
        line: From 1, blank lines counted.
        reason: Reads on from `line 3 `.
    """

    line: int
    reason: str


def run(lines: Iterable[bytes], results: TextIO, problems: TextIO) -> int:
    """Write one assessment a line and name each malformed line; return the exit code, 0 or 1."""
    exit_code = 0
    for result in assess_lines(lines):
        if isinstance(result, Malformed):
            problems.write(f"line {result.line} {result.reason}\n")
            exit_code = 1
        else:
            results.write(f"{json.dumps(result, ensure_ascii=False)}\n")
    return exit_code


def assess_lines(lines: Iterable[bytes]) -> Iterator[Json | Malformed]:
    """Assess `{"question", "answer", "context"}` on each line that is not blank.

    `"passages"`, a list as in a context, can stand in place of `"context"`; other fields are
    ignored.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield assess_record(read_object(line, is_first=number == 1))
        except LineError as error:
            yield Malformed(number, str(error))


def assess_record(record: Json) -> Json:
    """Assess one answer; raises LineError when the answer or the question is not text."""
    answer = _text(record, "answer")
    if answer is None:
        raise LineError("has no answer")
    bundle = evidence.read(_context(record), _text(record, "question"), QUESTION_ID)
    if isinstance(bundle, MissingEvidence):
        return {"outcome": "missing_evidence", "reason": bundle.reason}
    assessment = grounding.assess(answer, bundle)
    return {"outcome": assessment.outcome, **assessment.content()}


def _text(record: Json, name: str) -> str | None:
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    raise LineError(f"has {name} that is not a string")


def _context(record: Json) -> object:
    if "context" in record or "passages" not in record:
        return record.get("context")
    return {"passages": record["passages"]}
