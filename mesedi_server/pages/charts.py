"""Charts as numbers: where bars begin and end. `charts.html` draws them, with a table under each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import repeat
from math import ceil, log10
from typing import NamedTuple

from mesedi_server.store.trends import BINS, Bin, Counts, Distribution, Span

_STEPS = (1, 2, 5, 10)


class DayBar(NamedTuple):
    """A day of a trend."""

    day: date
    occurrences: int
    interactions: int | None
    """Executions that carried the pair; None for groups that are not of a pair."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A group's occurrences, day by day, beside the interactions of its pair, if it is of one."""

    days: Span
    occurrences: Counts
    interactions: Counts | None

    @property
    def total(self) -> int:
        """Occurrences of all days."""
        return sum(self.occurrences)

    @property
    def whole(self) -> int:
        """Interactions of all days; 0 if they are not known."""
        return sum(self.interactions or ())

    @property
    def bars(self) -> list[DayBar]:
        """The days, each with its numbers."""
        whole: Iterable[int | None] = self.interactions or repeat(None)
        return list(map(DayBar, self.days, self.occurrences, whole))

    @property
    def top(self) -> int:
        """A round number that no bar exceeds."""
        return round_up(max(self.occurrences))

    @property
    def outline(self) -> str:
        """The bars as one path, four wide and up to 26 high, upon a line at 27."""
        peak = max(self.occurrences)
        return "".join(
            f"M{4 * place} 27v{-max(2, round(26 * number / peak))}h3V27"
            for place, number in enumerate(self.occurrences)
            if number
        )

    @property
    def spoken(self) -> str:
        """The numbers, for who cannot see the bars."""
        return f"{self.days[0]} to {self.days[-1]}: {', '.join(map(str, self.occurrences))}"


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """A part of a distribution, and its bounds as they are written."""

    title: str
    content: Bin


def score_bars(distribution: Distribution) -> list[ScoreBar]:
    """Name the parts of a distribution; those outside [0, 1] are there only if something is in them."""
    bars = [
        ScoreBar(f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}", content)
        for place, content in enumerate(distribution.bins)
    ]
    if distribution.below != Bin():
        bars.insert(0, ScoreBar("under 0", distribution.below))
    if distribution.above != Bin():
        bars.append(ScoreBar("over 1", distribution.above))
    return bars


def highest(bars: Sequence[ScoreBar]) -> int:
    """Return a round number that no bar exceeds."""
    return round_up(max(bar.content.failing + bar.content.passing for bar in bars))


def round_up(number: int) -> int:
    """Return the next number of the form 1, 2 or 5 times a power of ten; at least 1."""
    if number <= 1:
        return 1
    power: int = 10 ** (ceil(log10(number + 1)) - 1)
    return next(step * power for step in _STEPS if step * power >= number)
