"""What evaluators hand over as a score or a verdict, read without importing their libraries."""

import math
import re
from typing import NamedTuple

_WORDS = {
    "pass": True,
    "passed": True,
    "yes": True,
    "true": True,
    "fail": False,
    "failed": False,
    "no": False,
    "false": False,
}
_MAX_WRAPPERS = 4
_MAX_LABEL = 200
_TOLERANCE = 1e-6  # every context precision ends at 0.9999999999, cosines at 1.0000000000000002
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Reading(NamedTuple):
    """A score as read: `score` None is unmeasured; `verdict` only where a word says it."""

    score: float | None
    verdict: bool | None = None
    label: str | None = None


UNMEASURED = Reading(None)


def read_score(value: object) -> Reading:
    """Read a number, a word (`"pass"`), a label, or an object that wraps one of them.

    Source: evaluator-outputs.md, common rules. Not a number is unmeasured, never 0.
    """
    try:
        return _read(unwrapped(value))
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return UNMEASURED


def read_verdict(value: object) -> bool | None:
    """Read pass or fail; None is no verdict. The text "false" is False, never truthy."""
    try:
        value = unwrapped(value)
        if isinstance(value, str):
            return _WORDS.get(value.strip().lower())
        if isinstance(value, bool) or (isinstance(value, int | float) and value in (0, 1)):
            return bool(value)
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return None
    return None


def number(value: object) -> float | None:
    """Read a finite number or None: for thresholds and confidences."""
    if type(value) is float and math.isfinite(value):
        return value
    return None if value is None else read_score(value).score


def snapped(score: float | None) -> float | None:
    """Put a score back on the edge of 0 to 1 that it missed by a rounding error."""
    for edge in (0.0, 1.0):
        outside = score is not None and not 0.0 <= score <= 1.0
        if score is not None and outside and abs(score - edge) <= _TOLERANCE:
            return edge
    return score


def reaches(score: float, threshold: float, *, upward: bool) -> bool:
    """Compare with a threshold; a rounding error does not fail."""
    return score >= threshold - _TOLERANCE if upward else score <= threshold + _TOLERANCE


def printable(words: str) -> str:
    """Take the control characters out of a tool's text, but for line ends and tabs."""
    return _CONTROLS.sub("", words)


def unwrapped(value: object) -> object:
    """Take a value out of what wraps it: a Ragas result, a numpy or torch scalar."""
    # Ragas' MetricResult has `value`, numpy and torch have `item`; a MetricResult must be
    # asked for `value` first, since it forwards every other name to what it holds.
    for _ in range(_MAX_WRAPPERS):
        if value is None or isinstance(value, str | int | float | list | tuple | dict):
            return value
        kind = type(value)
        if hasattr(value, "value"):
            value = value.value
        elif callable(getattr(kind, "item", None)):
            value = value.item()  # type: ignore[attr-defined]
        elif hasattr(value, "score"):
            value = value.score
        else:
            return value
    return value


def _read(value: object) -> Reading:
    if isinstance(value, str):
        return _read_words(value.strip())
    if value is None or isinstance(value, list | tuple | dict):
        return UNMEASURED
    return Reading(_finite(float(value)))  # type: ignore[arg-type]


def _read_words(words: str) -> Reading:
    verdict = _WORDS.get(words.lower())
    if verdict is not None:
        return Reading(float(verdict), verdict, words)
    try:
        return Reading(_finite(float(words)))
    except ValueError:
        return Reading(None, None, words[:_MAX_LABEL] or None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
