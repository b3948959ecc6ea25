"""What stands before a number and changes what it says: a sign, a bound, a hedge, a glued word.

The text is read from the number to the left, in its mirror image, so that the work is done once a
quantity and never once a letter. Words outside the known operators make a value ambiguous; leaving
them out would turn `fewer than 5 days` into `5 days` (durable-evaluations.md, P1 and P3 to P5).
"""

import re
from itertools import product
from typing import NamedTuple

from evaluators.characters import (
    BOUNDS,
    HEDGES,
    MINUS,
    MIRRORED_GAP,
    PLUS_MINUS,
    SHORT_DASHES,
    SIGNS,
    SLASHES,
)
from evaluators.wordlist import longest_of

OPERATORS = {
    "": "eq",
    **dict.fromkeys(("at least", "no less than", "not less than", "minimum", ">=", "≥"), "ge"),
    **dict.fromkeys(("at most", "no more than", "not more than", "maximum", "up to"), "le"),
    **dict.fromkeys(("<=", "≤"), "le"),
    **dict.fromkeys(("more than", "over", "above", ">"), "gt"),
    **dict.fromkeys(("less than", "under", "below", "<"), "lt"),
    "between": "range",
}
"""Operators by phrase, lower case with single spaces. Every other phrase is ambiguous."""

_HEDGES = ("about", "approximately", "around", "roughly", "nearly", "almost")

COMPARATIVES = (
    *("more", "less", "fewer", "greater", "larger", "bigger", "smaller", "higher", "lower"),
    *("longer", "shorter", "older", "younger", "heavier", "lighter", "further", "farther"),
    *("faster", "slower", "earlier", "later", "sooner", "deeper", "taller", "wider"),
)

_UNSUPPORTED_BOUNDS = (
    *(f"{word} than{rest}" for word, rest in product(COMPARATIVES, ("", " or equal to"))),
    *("max", "max.", "min", "min.", "maximum of", "minimum of", "max of", "min of"),
    *("exceed", "exceeds", "exceeded", "exceeding", "in excess of", "upwards of"),
    *(f"as {word} as" for word in ("much", "many", "little", "few", "high", "low", "long")),
    *("plus or minus", "plus/minus"),
)

# They say something about a number only when a phrase stands between.
_REVERSERS = ("not", "no", "never", "cannot", "not to", "at or", "on or", "equal to or")

_KNOWN_WORDS = tuple(phrase for phrase in OPERATORS if phrase[:1].isalpha())


def _mirrored(phrases: tuple[str, ...]) -> str:
    """Match the longest of the phrases, right to left, as whole words."""
    return rf"(?:{longest_of(phrase[::-1] for phrase in phrases)})(?!\w)"


_PHRASE = _mirrored((*_KNOWN_WORDS, *_HEDGES, *_UNSUPPORTED_BOUNDS))
_REVERSER = rf"(?:{_mirrored(_REVERSERS)}|t['\u2019]n\w*+)"

# A `>` that ends a tag is no bound. An arrow is none either, but nor is it nothing.
_TAG = r">[^<>]*+(?<=[A-Za-z/])<"
_COMPARISON = rf"(?!{_TAG})(?:(?==*+[<>])[<>=]++-*+|[{BOUNDS}])"
_TOLERANCE = rf"[{PLUS_MINUS}]|[{SIGNS}]/[{SIGNS}]"
_HEDGE_SIGN = rf"(?<!~)~|[{HEDGES}]"  # of `~~`, Markdown's strikethrough, only the inner one
_SYMBOL = rf"{_COMPARISON}|{_TOLERANCE}|{_HEDGE_SIGN}"

# A mark right before the digits that is no sign: `COVID-19`, an en dash for a minus, `x^2`.
_GLUED = rf"[{SIGNS}{SHORT_DASHES}{SLASHES}^]++\w*+"

_SIGN_ENDS = rf"(?![{SIGNS}{SHORT_DASHES}/\w.])"

_LEFT = re.compile(
    rf"""
    (?:(?P<sign>[{SIGNS}]){_SIGN_ENDS})?
    {MIRRORED_GAP}(?:{_PHRASE}|{_SYMBOL})
    (?:{MIRRORED_GAP}(?:{_PHRASE}|{_SYMBOL}|{_REVERSER}))*+
  | (?P<lone_sign>[{SIGNS}]){_SIGN_ENDS}
  | {_GLUED}
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Left(NamedTuple):
    """What belongs to a number on its left side.

    Attributes:
        width: Characters that it takes.
        operator: A value of OPERATORS; None makes the quantity ambiguous.
        sign: 1 or -1.
        is_between: An `and` joins two ends.
    """

    width: int = 0
    operator: str | None = "eq"
    sign: int = 1
    is_between: bool = False


_NOTHING = Left()


def left_of(mirrored: str, number: int, floor: int) -> Left:
    """Read what belongs to a number.

    Args:
        mirrored: The text from right to left.
        number: Where the number starts in the text.
        floor: Where reading stops in the text.
    """
    size = len(mirrored)
    found = _LEFT.match(mirrored, size - number, size - floor)
    return _NOTHING if found is None else _left(found)


def _left(found: re.Match[str]) -> Left:
    sign = found["sign"] or found["lone_sign"] or ""
    phrase = " ".join(found[0][len(sign) :][::-1].lower().split())
    operator = OPERATORS.get(phrase)
    width = found.end() - found.start()
    return Left(width, operator, -1 if sign in ("-", MINUS) else 1, "between" in phrase)
