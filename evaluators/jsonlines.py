"""JSON lines from anywhere: each line is one object, or is refused for a reason in words."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from evaluators.canonical import canonical

_BOM = b"\xef\xbb\xbf"


class LineError(ValueError):
    """A line that cannot be taken; the message says why and reads on from `line 3 `."""


def read_object(line: bytes, *, is_first: bool = False) -> dict[str, Any]:
    """Read the JSON object of a line as `read_canonical` does."""
    return read_canonical(line, is_first=is_first)[0]


def read_canonical(line: bytes, *, is_first: bool = False) -> tuple[dict[str, Any], str]:
    """Read the JSON object of a line and write it as canonical JSON; raises LineError.

    Args:
        line: UTF-8, with or without a line end of any kind.
        is_first: The first line of a file, where a byte order mark can stand.
    """
    value = _object(line, _DECODER, is_first=is_first)
    return value, _checked(value)


def read_apart(
    line: bytes,
    name: str,
    objects: Callable[[list[tuple[str, Any]]], dict[str, Any]],
    *,
    is_first: bool = False,
) -> dict[str, Any]:
    """Read the JSON object of a line, all but one member as strictly as `read_object`.

    Args:
        line: As in `read_canonical`.
        name: The member whose numbers, strings and depth are somebody else's to refuse; one that
            is nested too deeply to be read is given as its JSON text.
        objects: Makes each object of the line out of its members.
        is_first: As in `read_canonical`.
    """
    decoder = json.JSONDecoder(object_pairs_hook=objects, parse_int=_any_integer)
    try:
        value = _object(line, decoder, is_first=is_first)
    except LineError as error:
        if not isinstance(error.__cause__, RecursionError):
            raise
        value = _object(_quoting(name, line.decode()).encode(), decoder, is_first=is_first)
    _checked({key: member for key, member in value.items() if key != name})
    return value


def _object(line: bytes, decoder: json.JSONDecoder, *, is_first: bool) -> dict[str, Any]:
    if is_first and line.startswith(_BOM):
        raise LineError("starts with a byte order mark; save the file as UTF-8 without it")
    try:
        value = _decoded(line.decode(), decoder)
    except LineError:
        raise
    except (ValueError, RecursionError) as error:
        raise LineError(_reason(error)) from error
    if not isinstance(value, dict):
        raise LineError("is not a JSON object")
    return value


def _checked(value: dict[str, Any]) -> str:
    try:
        content = canonical(value)
        content.encode()
    except (ValueError, RecursionError) as error:
        raise LineError(_reason(error)) from error
    return content


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_VALUE = re.compile(r"\s*+:\s*+(?=[\[{])")
_OPENING = "[{"


def _quoting(name: str, text: str) -> str:
    """Put the JSON text of an object's member, a list or an object, in place of the member."""
    depth, begin = 0, None
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token.startswith('"'):
            is_name = depth == 1 and begin is None and token == f'"{name}"'
            if is_name and (value := _VALUE.match(text, found.end())):
                begin = value.end()
            continue
        depth += 1 if token in _OPENING else -1
        if depth == 1 and begin is not None:
            return f"{text[:begin]}{json.dumps(text[begin : found.end()])}{text[found.end() :]}"
    return text


def _any_integer(digits: str) -> float:
    """Read an integer; one that Python refuses to read is as good as infinite."""
    try:
        return int(digits)
    except ValueError:
        return math.inf


def _refuse(name: str) -> None:
    raise LineError(f"holds {name}, which is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # json.loads would make one for each line


def _decoded(text: str, decoder: json.JSONDecoder) -> object:
    # json.loads knows a byte order mark when it sees one.
    return json.loads(text) if text.startswith("\ufeff") else decoder.decode(text)


def _reason(error: Exception) -> str:
    match error:
        case RecursionError():
            return "is nested too deeply"
        case UnicodeDecodeError():
            return "is not UTF-8"
        case UnicodeEncodeError():
            return "holds half of a surrogate pair, which is not a character"
        case json.JSONDecodeError():
            return f"is not JSON: {error.msg} at column {error.colno}"
    if "JSON compliant" in str(error):
        return "holds a number that is not finite"
    return "holds an integer of more than 4300 digits"  # Python's own limit
