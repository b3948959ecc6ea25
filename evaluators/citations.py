"""Numeric citations: `[1]`, `[1, 3]` (durable-evaluations.md, 5.5)."""

import re
from collections.abc import Iterator

_BRACKET = re.compile(r"\[(\d++(?:\s*+,\s*+\d++)*+)\]")

MAX_DIGITS = 640
"""No passage has a longer number, and no setting of Python refuses an integer of this length."""


def read(text: str) -> Iterator[tuple[str, int | None]]:
    """Find the citations of a text, in order.

    Yields, for each number: the whole bracket, and the number; None if it has more than MAX_DIGITS
    digits.
    """
    for bracket in _BRACKET.finditer(text):
        quote, numbers = bracket.group(0, 1)
        for digits in numbers.split(","):
            yield quote, int(digits) if len(digits.strip()) <= MAX_DIGITS else None
