"""Result files as their tools write them: JSON, JSON Lines, CSV."""

import ast
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

_SUFFIXES = {".jsonl": "lines", ".ndjson": "lines", ".csv": "csv"}
_LIST_COLUMNS = ("retrieved_contexts", "contexts", "reference_contexts")


class UnreadableError(Exception):
    """The file holds neither JSON nor JSON Lines nor CSV."""


def read_result(content: bytes, name: str) -> Any:
    """Read a result file's content; the suffix of `name` settles what cannot be told apart.

    Raises:
        UnreadableError: it is none of the three.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{name} is not UTF-8") from error
    kind = _SUFFIXES.get(Path(name).suffix.lower())
    try:
        if kind == "csv":
            return _csv(text)
        return _lines(text) if kind == "lines" else _json(text)
    except (ValueError, csv.Error, RecursionError) as error:
        raise UnreadableError(f"{name} cannot be read: {error}") from error


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        if "\n" not in text.strip():
            raise
        return _lines(text)


def _lines(text: str) -> list[Any]:
    # Not splitlines: JSON's texts may hold U+2028 and others that it takes for line ends.
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _csv(text: str) -> list[dict[str, Any]]:
    csv.field_size_limit(sys.maxsize)  # whole passages stand in one cell
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return [{name: _cell(name, cell) for name, cell in row.items() if name} for row in rows]


def _cell(name: str, cell: str) -> Any:
    """Read a list of texts as pandas writes it, which is Python's own spelling."""
    if name not in _LIST_COLUMNS or not cell.startswith("["):
        return cell or None
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return [cell]
