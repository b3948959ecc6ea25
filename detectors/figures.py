"""Count, mean, lowest and highest of scores that may come on several scales."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from detectors.exact import exact_sum, nearest_float, ratio, rounded

Scale: TypeAlias = tuple[float, float]
"""The least and the greatest score that an evaluator gives; both finite, the least first."""

UNIT_SCALE: Scale = (0.0, 1.0)
"""The scale that leaves every score as it is."""

MAX_EXACT_SCALES = 4
"""Scales up to which the mean of their scores is exact; with more, 50 digits of each sum count."""
# The common denominator grows with each scale. An evaluator has one; whoever sends a new one with
# each score must not be able to stop a worker.


class Figures(NamedTuple):
    """What scores add up to once the range of their scale has become [0, 1]; no mean of none."""

    measured: int
    mean: Fraction | None
    lowest: float | None
    highest: float | None


def figures(scores: Mapping[Scale, Sequence[float]]) -> Figures:
    """Return the figures of finite scores, listed by their scale.

    >>> figures({(1.0, 5.0): [2, 3]})
    Figures(measured=2, mean=Fraction(3, 8), lowest=0.25, highest=0.5)
    """
    if not scores:
        return Figures(0, None, None, None)
    if len(scores) == 1 and UNIT_SCALE in scores:
        return _plain(scores[UNIT_SCALE])
    return _scaled(scores)


def _plain(scores: Sequence[float]) -> Figures:
    count = len(scores)
    numerator, denominator = exact_sum(scores).as_integer_ratio()
    return Figures(count, Fraction(numerator, denominator * count), min(scores), max(scores))


def _scaled(scores: Mapping[Scale, Sequence[float]]) -> Figures:
    parts = [_part(scale, group) for scale, group in scores.items()]
    if len(parts) > MAX_EXACT_SCALES:
        parts = [part._replace(total=rounded(part.total)) for part in parts]
    count = sum(map(len, scores.values()))
    return Figures(
        count,
        sum((part.total for part in parts), Fraction(0)) / count,
        nearest_float(min(part.lowest for part in parts)),
        nearest_float(max(part.highest for part in parts)),
    )


class _Part(NamedTuple):
    total: Fraction
    lowest: Fraction
    highest: Fraction


def _part(scale: Scale, scores: Sequence[float]) -> _Part:
    start, end = scale
    span = exact_sum([end], origin=start)
    groups = (scores, [min(scores)], [max(scores)])
    return _Part(*(ratio(exact_sum(group, origin=start), span) for group in groups))
