"""`mesedi-eval assess`: single answers, or saved verdicts about them, without a capture or a model."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TextIO, TypeAlias

from evaluators import evidence, faithfulness, grounding, verdicts
from evaluators.evidence import Bundle, MissingEvidence
from evaluators.jsonlines import LineError, read_apart, read_object
from evaluators.verdicts import InvalidVerdictError, RepeatingObject

QUESTION_ID = "turn:0"
"""Source id of the question: it is the turn before the answer, and there is no other."""

Json: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[[bytes, bool], Json]
"""Assesses one line, which may be the first; raises LineError."""


class Malformed(NamedTuple):
    """A line that could not be assessed.

    Attributes:
        line: From 1, blank lines counted.
        reason: Reads on from `line 3 `.
    """

    line: int
    reason: str


def run(
    lines: Iterable[bytes], results: TextIO, problems: TextIO, *, are_verdicts: bool = False
) -> int:
    """Write one assessment a line and name each malformed line; return the exit code, 0 or 1."""
    exit_code = 0
    for result in assess_lines(lines, are_verdicts=are_verdicts):
        if isinstance(result, Malformed):
            problems.write(f"line {result.line} {result.reason}\n")
            exit_code = 1
        else:
            results.write(f"{json.dumps(result, ensure_ascii=False)}\n")
    return exit_code


def assess_lines(
    lines: Iterable[bytes], *, are_verdicts: bool = False
) -> Iterator[Json | Malformed]:
    """Assess `{"question", "answer", "context"}` on each line that is not blank.

    `"passages"`, a list as in a context, can stand in place of `"context"`; other fields are
    ignored. With `are_verdicts` a line holds `"verdict"`, too, and possibly `"min_correctness"`.
    """
    read: Reader = _read_verdict if are_verdicts else _read_answer
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield read(line, number == 1)
        except LineError as error:
            yield Malformed(number, str(error))


def assess_record(record: Json) -> Json:
    """Ground one answer; raises LineError when the answer or the question is not text."""
    answer, bundle = _evidence(record)
    if isinstance(bundle, MissingEvidence):
        return _missing(bundle)
    assessment = grounding.assess(answer, bundle)
    return {"outcome": assessment.outcome, **assessment.content()}


def assess_verdict(record: Json) -> Json:
    """Read one saved faithfulness verdict: an object, or the raw text of a judge.

    Raises LineError when something besides the verdict is not what it should be.
    """
    answer, bundle = _evidence(record)
    least = _min_correctness(record)
    if "verdict" not in record:
        raise LineError("has no verdict")
    if isinstance(bundle, MissingEvidence):
        return _missing(bundle)
    try:
        verdict = faithfulness.read_verdict(record["verdict"], answer, bundle)
    except InvalidVerdictError as error:
        return {"outcome": "invalid", "reason": error.reason}
    return {"outcome": faithfulness.assess(verdict, least).outcome}


def _read_answer(line: bytes, is_first: bool) -> Json:  # noqa: FBT001 - a Reader
    return assess_record(read_object(line, is_first=is_first))


def _read_verdict(line: bytes, is_first: bool) -> Json:  # noqa: FBT001 - a Reader
    """Whatever is wrong inside the verdict is the verdict's fault; all else is the line's."""
    record = read_apart(line, "verdict", verdicts.noting_repeats, is_first=is_first)
    rest = [value for name, value in record.items() if name != "verdict"]
    if isinstance(record, RepeatingObject) or verdicts.repeats(rest):
        raise LineError("gives a field twice")
    return assess_verdict(record)


def _evidence(record: Json) -> tuple[str, Bundle | MissingEvidence]:
    answer = _text(record, "answer")
    if answer is None:
        raise LineError("has no answer")
    return answer, evidence.read(_context(record), _text(record, "question"), QUESTION_ID)


def _missing(found: MissingEvidence) -> Json:
    return {"outcome": "missing_evidence", "reason": found.reason}


def _min_correctness(record: Json) -> int:
    least = record.get("min_correctness", faithfulness.DEFAULT_MIN_CORRECTNESS)
    if type(least) is not int or not 0 <= least <= faithfulness.HIGHEST:
        raise LineError("has min_correctness that is not an integer from 0 to 10")
    return least


def _text(record: Json, name: str) -> str | None:
    value = record.get(name)
    if value is None or isinstance(value, str):
        return value
    raise LineError(f"has {name} that is not a string")


def _context(record: Json) -> object:
    if "context" in record or "passages" not in record:
        return record.get("context")
    return {"passages": record["passages"]}
