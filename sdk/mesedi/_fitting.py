"""Payloads that are too big, cut down where it hurts least: the longest texts, at any depth."""

import json
from collections.abc import Iterator

from mesedi._plain import Json

CUT = "...[mesedi:truncated]"
_LEAST = 256  # the longest that a name may be; shorter texts are never cut
_MARKS_BYTES = 1_000  # what the three marks take, at most
_MAX_FIELDS = 10
_MAX_FIELD_CHARS = 60


# Made once: `json.dumps` makes a new one for every call with settings of its own.
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def as_json(value: object) -> str:
    """Write compact, strict JSON."""
    return _encoder.encode(value)


def json_bytes(value: object) -> int:
    """Answer how many bytes `value` takes as JSON."""
    return len(as_json(value).encode("utf-8", "replace"))


def fitted(payload: Json, max_bytes: int) -> Json:
    """Answer `payload`, or a copy that takes no more than `max_bytes` and says what was cut."""
    size = json_bytes(payload)
    if size <= max_bytes:
        return payload
    level = _level(sorted(_sizes(payload), reverse=True), size + _MARKS_BYTES - max_bytes)
    fields: list[str] = []
    smaller = _shortened(payload, level, "", fields)
    whole: dict[str, Json] = {**smaller} if isinstance(smaller, dict) else {"value": smaller}
    marks: dict[str, Json] = {
        "_truncated": True,
        "_original_payload_bytes": size,
        "_truncated_fields": [field[:_MAX_FIELD_CHARS] for field in fields[:_MAX_FIELDS]],
    }
    return _without_the_largest(whole, marks, max_bytes)


def shortened(text: str, max_bytes: int) -> str:
    """Cut `text` so that it takes no more than `max_bytes` as JSON, its mark included."""
    room = max_bytes - len(CUT) - 2
    while (size := json_bytes(text)) > room:
        text = text[: min(len(text) - 1, len(text) * room // size)]
    return text + CUT


def _sizes(value: Json) -> Iterator[int]:
    if isinstance(value, str):
        yield json_bytes(value)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _sizes(item)


def _level(sizes: list[int], excess: int) -> int:
    """Find the length to which all longer texts must be cut to save `excess` bytes."""
    level, longer = 0, 0
    for count, size in enumerate(sizes, start=1):
        longer += size
        level = (longer - excess) // count
        if count == len(sizes) or level >= sizes[count]:
            break
    return max(level, _LEAST)


def _shortened(value: Json, level: int, path: str, fields: list[str]) -> Json:
    if isinstance(value, str):
        if json_bytes(value) <= level:
            return value
        fields.append(path)
        return shortened(value, level)
    if isinstance(value, dict):
        return {k: _shortened(v, level, _join(path, k), fields) for k, v in value.items()}
    if isinstance(value, list):
        return [_shortened(v, level, _join(path, n), fields) for n, v in enumerate(value)]
    return value


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _without_the_largest(
    payload: dict[str, Json], marks: dict[str, Json], max_bytes: int
) -> dict[str, Json]:
    """Replace whole members, then leave members out, while many small parts take too much."""
    room = max_bytes - json_bytes(marks)
    sizes = {name: json_bytes(value) for name, value in payload.items()}
    total = json_bytes(payload)
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        mark = f"<cut: {sizes[name]} bytes>"
        if total <= room or json_bytes(mark) >= sizes[name]:
            break
        payload[name] = mark
        total += json_bytes(mark) - sizes[name]
    for name in sorted(payload, key=len, reverse=True):
        if total <= room:
            break
        total -= json_bytes({name: payload.pop(name)}) - 1  # two braces, less a comma
    return {**payload, **marks}
