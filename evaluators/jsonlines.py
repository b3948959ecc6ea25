"""JSON lines from anywhere: each line is one object, or is refused for a reason in words."""

import json
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
    if is_first and line.startswith(_BOM):
        raise LineError("starts with a byte order mark; save the file as UTF-8 without it")
    try:
        value = _loads(line.decode())
        content = canonical(value)
        content.encode()
    except LineError:
        raise
    except (ValueError, RecursionError) as error:
        raise LineError(_reason(error)) from error
    if not isinstance(value, dict):
        raise LineError("is not a JSON object")
    return value, content


def _refuse(name: str) -> None:
    raise LineError(f"holds {name}, which is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # json.loads would make one for each line


def _loads(text: str) -> object:
    # json.loads knows a byte order mark when it sees one.
    return json.loads(text) if text.startswith("\ufeff") else _DECODER.decode(text)


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
