"""How sure a difference is: a paired bootstrap that draws whole groups of answers.

Answers of one group (a session, a document) are not independent, so groups are drawn, not answers.
Groups whose sums are equal are interchangeable: how often each kind is drawn is a binomial number,
so the cost grows with the kinds of groups and hardly with the groups.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import accumulate
from random import Random
from typing import NamedTuple

DRAWS = 1000
MIN_GROUPS = 5
_SEED = 0
_LOW, _HIGH = 0.025, 0.975
_BINOMIAL_COST = 30
"""Single draws that take as long as one binomial number."""


class Sums(NamedTuple):
    """What the paired answers of a group add up to; both denominators are above 0."""

    baseline_numerator: int
    baseline_denominator: int
    candidate_numerator: int
    candidate_denominator: int


def interval(groups: Collection[Sums]) -> tuple[float, float] | None:
    """Return the 95 % percentile interval of candidate ratio - baseline ratio.

    None with fewer than five groups. The same groups give the same interval, always.
    """
    if len(groups) < MIN_GROUPS:
        return None
    kinds = sorted(Counter(groups).items())
    random = Random(_SEED)  # noqa: S311 - a simulation that must be repeatable
    deltas = sorted(_delta(draw) for draw in (_draw(random, kinds) for _ in range(DRAWS)))
    return _percentile(deltas, _LOW), _percentile(deltas, _HIGH)


def _delta(drawn: list[tuple[Sums, int]]) -> float:
    before, before_of, after, after_of = (
        sum(sums[place] * times for sums, times in drawn) for place in range(4)
    )
    return after / after_of - before / before_of


def _draw(random: Random, kinds: list[tuple[Sums, int]]) -> list[tuple[Sums, int]]:
    """Draw as many groups as there are, with replacement; return the kinds and how often."""
    total = sum(count for _, count in kinds)
    if len(kinds) * _BINOMIAL_COST < total:
        return list(_drawn_by_kind(random, kinds, total))
    cumulative = list(accumulate(count for _, count in kinds))
    sums = [kind for kind, _ in kinds]
    return list(Counter(random.choices(sums, cum_weights=cumulative, k=total)).items())


def _drawn_by_kind(
    random: Random, kinds: list[tuple[Sums, int]], total: int
) -> Iterator[tuple[Sums, int]]:
    draws, left = total, total
    for sums, count in kinds:
        times = draws if count == left else binomial(random.random(), draws, count / left)
        yield sums, times
        draws -= times
        left -= count


def binomial(chance: float, trials: int, probability: float) -> int:
    """Return the number of successes to which a uniform number from 0 to 1 leads.

    Outcomes are gone through from the most likely one outwards, so that few are looked at.
    """
    odds = probability / (1 - probability)
    low = high = mode = int((trials + 1) * probability)
    low_chance = high_chance = _point(trials, mode, probability)
    left = chance - low_chance
    while left > 0 and (low > 0 or high < trials):
        if high < trials:
            high_chance *= (trials - high) / (high + 1) * odds
            high += 1
            left -= high_chance
            if left <= 0:
                return high
        if low > 0:
            low_chance *= low / (trials - low + 1) / odds
            low -= 1
            left -= low_chance
            if left <= 0:
                return low
    return mode


def _point(trials: int, successes: int, probability: float) -> float:
    failures = trials - successes
    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(failures + 1)
    chances = successes * math.log(probability) + failures * math.log1p(-probability)
    return math.exp(ways + chances)


def _percentile(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
