"""JSON as clients really send it: bare NaN, lone surrogates, NUL, numbers without bounds, deep nesting.

Nothing here is needed for an ordinary body. When the fast decoder or PostgreSQL refuses a body, it is read again with
these functions: slower, one element at a time, so that one bad event does not take its neighbours along.

| found | becomes |
|---|---|
| `NaN`, `Infinity`, a number beyond a double | null, unless that means something else there |
| NUL, a lone surrogate, bytes that are not UTF-8 | U+FFFD |
| nesting beyond `MAX_DEPTH` | TooDeepError, for that element alone |
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from math import isfinite
from typing import Any

MAX_DEPTH = 64
"""Levels of arrays and objects that an element may have."""

MAX_DIGITS = 4300
"""Digits of a whole number that is kept exact; Python reads no more (and takes the square of the time)."""

# Whatever stands between two marks, whole strings included. Possessive, and an unterminated string takes the rest: no
# text costs more than one pass, and none needs a stack.
_BETWEEN = rb'(?:[^"\[\]{}%s]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+'
_BRACKET = re.compile(_BETWEEN % b"" + rb"([\[\]{}])", re.DOTALL)
_BRACKET_OR_COMMA = re.compile(_BETWEEN % b"," + rb"([\[\]{},])", re.DOTALL)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_WHITESPACE = b" \t\r\n"
_STEP = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class NotJsonError(ValueError):
    """The text is not JSON."""


class NotAnArrayError(NotJsonError):
    """The text is JSON, but no array."""


class TooDeepError(ValueError):
    """Nested deeper than MAX_DEPTH levels."""


def parse(text: bytes, *, is_finite: bool = True) -> Any:
    """Read one JSON value.

    Args:
        text: what came.
        is_finite: what is no number that a double holds becomes null; otherwise it stays NaN or infinite.

    Raises:
        NotJsonError: it is not JSON, even leniently read.
        TooDeepError: nested deeper than MAX_DEPTH levels.
    """
    if _is_too_deep(text):
        raise TooDeepError(f"nested deeper than {MAX_DEPTH} levels")
    number = _finite if is_finite else float
    try:
        value = json.loads(
            text.decode("utf-8", "replace"),
            parse_constant=number,
            parse_float=number,
            parse_int=partial(_whole, number=number),
        )
    except ValueError as error:
        raise NotJsonError(str(error)) from error
    return storable(value)


def elements(text: bytes) -> Iterator[bytes]:
    """Cut an array into the texts of its elements, in one pass, whatever their depth.

    Raises:
        NotAnArrayError: the text does not begin with a bracket.
        NotJsonError: the brackets do not match up.
    """
    text = text.strip(_WHITESPACE)
    if not text.startswith(b"["):
        parse(text)
        raise NotAnArrayError("an array of events is needed")
    start = position = depth = 1
    while depth:
        # Commas matter between the elements alone.
        found = (_BRACKET_OR_COMMA if depth == 1 else _BRACKET).match(text, position)
        if found is None:
            raise NotJsonError("the array does not end")
        mark, position = found[1], found.end()
        depth += _STEP.get(mark, 0)
        if depth == 0 or (mark == b"," and depth == 1):
            element = text[start : position - 1].strip(_WHITESPACE)
            # Only an empty array may have nothing between its marks.
            if not element and (mark == b"," or start > 1):
                raise NotJsonError("an element is missing")
            if element:
                yield element
            start = position
    if position != len(text):
        raise NotJsonError("the array does not end where the body does")


def storable(value: Any) -> Any:
    """Replace what PostgreSQL cannot hold in its texts."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def _is_too_deep(text: bytes) -> bool:
    depth = position = 0
    while depth <= MAX_DEPTH:
        found = _BRACKET.match(text, position)
        if found is None:
            return False
        depth += _STEP[found[1]]
        position = found.end()
    return True


def _finite(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _whole(text: str, *, number: Callable[[str], float | None]) -> int | float | None:
    return int(text) if len(text.removeprefix("-")) <= MAX_DIGITS else number(text)
