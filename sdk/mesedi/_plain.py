"""Copies of the caller's values as plain JSON values, so that no reference to them is kept."""

import dataclasses
import datetime as dt
import decimal
import enum
import itertools
import math
import os
import uuid
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

UNREADABLE = "<unreadable>"

_MAX_DEPTH = 32
_MAX_NODES = 10_000  # some 10 ms of copying: the longest that a call may hold its caller
_MAX_INT_BITS = 64  # what every JSON reader takes; longer ones cannot even be printed cheaply
_NODE_BYTES = 64
_AS_TEXT = (uuid.UUID, decimal.Decimal, dt.timedelta, os.PathLike)
_ISO = (dt.date, dt.time)
# The everyday types first: asking an abstract one costs a microsecond.
_NUMBERS = (float, int, bool)
_MAPPINGS = (dict, Mapping)
_SEQUENCES = (list, tuple, set, AbstractSet)


def plain(value: object) -> tuple[Json, int]:
    """Copy `value` into plain JSON values; answers the copy and its size in bytes, roughly.

    Non-finite numbers become None, unknown objects the name of their type (never their
    `repr`, which may hold secrets or run code). Depth and number of parts are bounded.
    """
    copier = _Copier()
    return copier.copy(value, 0), copier.size


def text(value: object) -> str:
    """Answer `value` as an exact `str`: the caller's own string, or a copy of a subclass."""
    return value if type(value) is str else str(value)


def printed(value: object) -> str:
    """Answer `value` as text whatever it is; "" for None and for what cannot be printed.

    Half a surrogate pair, which no address and no UTF-8 can hold, becomes a question mark.
    """
    try:
        shown = "" if value is None else text(value)
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return ""
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


class _Copier:
    __slots__ = ("nodes", "size")

    def __init__(self) -> None:
        self.size = 0
        self.nodes = 0

    def copy(self, value: object, depth: int) -> Json:
        """Copy one value; one that cannot be read becomes the word for it, and its neighbours stay."""
        try:
            return self._copy(value, depth)
        except Exception:  # noqa: BLE001 - foreign objects raise what they like
            return UNREADABLE

    def _copy(self, value: object, depth: int) -> Json:
        self.nodes += 1
        self.size += _NODE_BYTES
        if isinstance(value, str):
            self.size += len(value)
            return text(value)
        if value is None or isinstance(value, _NUMBERS):
            return _number(value)
        if depth >= _MAX_DEPTH or self.nodes >= _MAX_NODES:
            return "<cut: too deep or too many parts>"
        if isinstance(value, _MAPPINGS):
            pairs = itertools.islice(value.items(), _MAX_NODES - self.nodes + 1)
            return {_scalar(key): self.copy(item, depth + 1) for key, item in pairs}
        if isinstance(value, _SEQUENCES):
            items = itertools.islice(value, _MAX_NODES - self.nodes + 1)
            return [self.copy(item, depth + 1) for item in items]
        return self._object(value, depth)

    def _object(self, value: object, depth: int) -> Json:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return self.copy(fields, depth + 1)
        for unwrap in ("tolist", "model_dump"):
            method = getattr(value, unwrap, None)
            if callable(method) and not isinstance(value, type) and not _is_vast(value):
                return self.copy(method(), depth + 1)
        return _scalar(value)


def _is_vast(array: object) -> bool:
    size = getattr(array, "size", 0)
    return isinstance(size, int) and size > _MAX_NODES


def _number(value: bool | float | None) -> Json:  # noqa: FBT001 - a value, not a switch
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bool) or value is None:
        return value
    bits = int(value).bit_length()
    return int(value) if bits <= _MAX_INT_BITS else f"<integer of {bits} bits>"


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, _ISO):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return text(value.value)
    if value is None or isinstance(value, _NUMBERS + _AS_TEXT):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
