"""Numbers with a unit, as a text says them (durable-evaluations.md, 5.2 and 5.3).

The text is read once: one pattern takes a number together with its unit, the suffix behind it and
the connector that leads to the next number. Connected numbers form a chain (`5 mg to 10 mg`), and a
chain with a unit holds one quantity or several. What the grammar recognises but cannot reduce to
exact values stays whole and is ambiguous.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from evaluators.characters import (
    BLANKS,
    FRACTIONS,
    GAP,
    GROUP_SPACES,
    GROUPERS,
    MIDDLE_DOTS,
    MINUS,
    ODD_DASHES,
    PLUS_MINUS,
    RANGE_DASHES,
    SHORT_DASHES,
    SIGNS,
    SLASHES,
    SUPERSCRIPTS,
    TIMES,
    WAVES,
)
from evaluators.phrases import COMPARATIVES, Left, left_of
from evaluators.units import SPELLINGS, base_fraction, named
from evaluators.wordlist import longest_of


class Value(NamedTuple):
    """An exact value or range; equal values are equal whatever their units and wording were.

    Attributes:
        dimension: For example `mass`; a unit that never converts is a dimension of its own.
        operator: `eq`, `ge`, `le`, `gt`, `lt` or `range`.
        ends: One number, or the two ends of a range, in grains of the base unit.
    """

    dimension: str
    operator: str
    ends: tuple[Decimal, ...]


@lru_cache(maxsize=2048)
def normalized(value: Value) -> str | None:
    """Write `mass:eq:1/200` or `time:range:300:600`; None when an end is too long to show."""
    ends = [base_fraction(value.dimension, end) for end in value.ends]
    if None in ends:
        return None
    return ":".join((value.dimension, value.operator, *map(str, ends)))


class Quantity(NamedTuple):
    """A quantity as it stands in a text; without `value` it is ambiguous."""

    quote: str
    value: Value | None


_POWER = rf"(?:(?:\^|\*\*)[{SIGNS}]?\d++|[⁺⁻]?[{SUPERSCRIPTS}]++)"

# Notation that goes on behind plain digits: the number is then ambiguous as a whole.
_NOTATION = rf"""(?:
    [{GROUPERS}]\d++
  | [{GROUP_SPACES}](?:\d{{3}}(?!\d)|\d++[{SLASHES}]\d++)
  | [{GROUP_SPACES}]?[{FRACTIONS}]
  | [eE][{SIGNS}]?\d++
  | {BLANKS}[{TIMES}]{BLANKS}10{_POWER}
  | {_POWER}
)"""

_SPELLING = f"(?:{longest_of(SPELLINGS)})"
_UNIT = rf"{_SPELLING}(?:(?=[²³])|(?![\w°]))"

_DIVISOR = rf"""(?:
    (?:\d[\d.,]*+{GAP})?+(?:[^\W\d_]++|°{BLANKS}[CF]|%)(?:\^?[{SIGNS}]?\d++|[⁺⁻]?[{SUPERSCRIPTS}]++)?+
)"""

_BEYOND = longest_of((*COMPARATIVES, "better", "over", "above", "beyond", "up", "under", "below"))

# What makes the unit before it a compound one, or the value a bound. It belongs to the quote.
_SUFFIX = rf"""(?:
    {BLANKS}[{SLASHES}]{BLANKS}(?:{_DIVISOR}|\d[\d.,]*+|\([^()\n]{{1,60}}\))
  | [{MIDDLE_DOTS}]{_DIVISOR}
  | [²³][{SUPERSCRIPTS}]*+ | ⁻[{SUPERSCRIPTS}]++ | \^[{SIGNS}]?\d++
  | \+(?!\w)
  | {GAP}(?<=\s)(?:
        per{GAP}(?<=\s){_DIVISOR}
      | (?:or|and){GAP}(?<=\s){_BEYOND}\b
      | (?:maximum|max|minimum)\b(?!{GAP}[{SIGNS}]?\.?\d)
      | at{GAP}(?:most|least)\b(?=\s*+(?:[.,;:!?)\]]|\Z))
      | [^\W\d_]{{1,20}}+(?:⁻[{SUPERSCRIPTS}]++|\^[{SIGNS}]\d++)
      | {_SPELLING}[-{MINUS}][123](?!\w)
    )
)"""

# Between two numbers. A dash does not reach over a line break: that is a list's next bullet.
_CONNECTOR = rf"""(?:
    {BLANKS}(?:[{RANGE_DASHES}{ODD_DASHES}{PLUS_MINUS}+→{WAVES}{SLASHES}]|[{SIGNS}]/[{SIGNS}])
  | {GAP}(?<=\s)(?:to|and|through|thru|till|until|plus{GAP}or{GAP}minus)(?=\s)
)"""

# A number begins neither behind a word character nor behind a point. Its first character stands
# before the look-behinds: the engine then skips to the next candidate without trying the pattern,
# fastest where a table of the ASCII characters decides.
_CANDIDATE = r"[^\x00-\x2d/:-\x7f]"  # digits, the point, and everything beyond ASCII
_NUMBER = re.compile(
    rf"""
    (?P<digits>
        {_CANDIDATE}(?<=[\d.{FRACTIONS}])(?<![\w.].)
        (?:(?<=\d)\d*+(?:\.\d++)?+|(?<=\.)\d++|(?<=[{FRACTIONS}]))
    )
    (?P<notation>{_NOTATION}*+)
    (?i:{GAP}(?P<unit>{_UNIT})(?P<suffix>{_SUFFIX})?+)?+
    (?P<link>
        (?P<connector>(?i:{_CONNECTOR})){GAP}
        (?P<sign>[{SIGNS}{SHORT_DASHES}]?)(?=[\d.{FRACTIONS}])
    )?+
    """,
    re.VERBOSE | re.DOTALL,
)

_POINTS_ONLY = re.compile(r"(?:\.\d++)+")

_SIGN_VALUES = {"": 1, "+": 1, "-": -1, MINUS: -1}  # a dash in place of a minus has none
_RANGES = frozenset((*RANGE_DASHES, "to"))
_DASHES = frozenset(RANGE_DASHES + ODD_DASHES)
_LISTS = frozenset(("+", "→", "and"))
_TOLERANCES = frozenset(
    (*PLUS_MINUS, "plus or minus", *(f"{one}/{other}" for one in SIGNS for other in SIGNS))
)


_REMEMBERED_DIGITS = 32  # longer numbers are too rare to come back, and take memory


def read(text: str) -> list[Quantity]:
    """Find the quantities of a text, in order; linear in its length, whatever the text."""
    return _Reader(text).read()


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mirrored = text[::-1]
        self._chain: list[re.Match[str]] = []  # linked numbers that may become one quantity
        self._quantities: list[Quantity] = []
        self._floor = 0  # where the last quantity ended: nothing is read twice

    def read(self) -> list[Quantity]:
        next_start = -1  # where a number must begin to be linked to the chain
        for found in _NUMBER.finditer(self._text):
            notation, spelling, leads_on = found.group(2, 3, 5)
            is_linked = found.start() == next_start
            if not is_linked and self._chain:
                self._finish()
            next_start = -1
            if notation and _POINTS_ONLY.fullmatch(notation):
                continue  # a version: 1.2.3
            if is_linked or leads_on:
                self._append(found)
                next_start = found.end() if leads_on else -1
            elif spelling:
                self._take_one(found, found.end())
        if self._chain:
            self._finish()
        return self._quantities

    def _append(self, found: re.Match[str]) -> None:
        if self._chain and self._chain[-1]["unit"] and self._is_apart(found):
            self._finish()
            if not self._text[self._floor].isspace():
                self._floor += 1  # a dash that touches the unit before it is no minus sign
        self._chain.append(found)

    def _is_apart(self, found: re.Match[str]) -> bool:
        """Tell the second of `5 mg and 10 mg` or `5 mg - 3 days` from the end of a range (P7)."""
        last = self._chain[-1]
        link = _link(last)
        if link in _DASHES:
            return bool(found["unit"]) and _dimension(found) != _dimension(last)
        return link in _LISTS and not (link == "and" and self._is_first_of_two())

    def _is_first_of_two(self) -> bool:
        if len(self._chain) > 1:
            return False
        return left_of(self._mirrored, self._chain[0].start(), self._floor).is_between

    def _finish(self) -> None:
        """Turn the chain into a quantity, if it has a unit."""
        numbers = _up_to_last_unit(self._chain)
        self._chain = []
        if len(numbers) == 1:
            self._take_one(numbers[0], _end(numbers[0]))
        elif numbers:
            left = left_of(self._mirrored, numbers[0].start(), self._floor)
            self._add(numbers[0].start() - left.width, _end(numbers[-1]), _joined(numbers, left))

    def _take_one(self, number: re.Match[str], end: int) -> None:
        start = number.start()
        left = left_of(self._mirrored, start, self._floor)
        self._add(start - left.width, end, _single(number, left))

    def _add(self, start: int, end: int, value: Value | None) -> None:
        self._quantities.append(Quantity(self._text[start:end], value))
        self._floor = end


def _up_to_last_unit(chain: list[re.Match[str]]) -> list[re.Match[str]]:
    """Drop what counts something else, as in `5 mg - 3 times`, but keep a tolerance, `10 mg ± 2`."""
    size = len(chain)
    while size and not chain[size - 1]["unit"]:
        size -= 1
    if 0 < size < len(chain) and _link(chain[size - 1]) in _TOLERANCES:
        size += 1
    return chain[:size]


def _end(found: re.Match[str]) -> int:
    """Where a number's unit and suffix end, and the connector begins."""
    return found.end() - len(found[5] or "")


def _link(found: re.Match[str]) -> str:
    """Return the connector behind a number, lower case with single spaces."""
    connector: str = found["connector"].strip()
    return connector if len(connector) == 1 else " ".join(connector.lower().split())


def _dimension(found: re.Match[str]) -> str:
    return named(found["unit"]).dimension


def _is_exact(found: re.Match[str]) -> bool:
    digits, notation, suffix = found.group(1, 2, 4)
    return not (notation or suffix or digits in FRACTIONS)


def _joined(numbers: list[re.Match[str]], left: Left) -> Value | None:
    match numbers:
        case [low, high]:
            return _range(low, high, left)
    return None  # 1-2-3 mg


def _single(number: re.Match[str], left: Left) -> Value | None:
    digits, notation, unit, suffix = number.group(1, 2, 3, 4)
    if notation or suffix or digits in FRACTIONS or left.operator in (None, "range"):
        return None
    reduced = _one_ended if len(digits) <= _REMEMBERED_DIGITS else _one_ended.__wrapped__
    return reduced(unit, left.operator, digits, left.sign)


@lru_cache(maxsize=8192)  # a text repeats its numbers, and so do the texts about one thing
def _one_ended(spelling: str, operator: str, digits: str, sign: int) -> Value:
    unit = named(spelling)
    return Value(unit.dimension, operator, (unit.grains(digits, sign),))


def _range(low: re.Match[str], high: re.Match[str], left: Left) -> Value | None:
    """A range without a prefix or with `between`, in order, within one dimension."""
    link, high_sign = _link(low), _SIGN_VALUES.get(low["sign"])
    is_range = link in _RANGES or (link == "and" and left.is_between)
    if not is_range or left.operator not in ("eq", "range") or high_sign is None:
        return None
    if not (_is_exact(low) and _is_exact(high)):
        return None
    low_unit, high_unit = named(low["unit"] or high["unit"]), named(high["unit"])
    if low_unit.dimension != high_unit.dimension:
        return None
    ends = low_unit.grains(low["digits"], left.sign), high_unit.grains(high["digits"], high_sign)
    return Value(low_unit.dimension, "range", ends) if ends[0] <= ends[1] else None
