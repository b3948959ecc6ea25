"""`POST /events`: an array of events in; rows to store, and the reasons for what was refused, out.

Source of the rules: `wire.md` 1.6, `detectors.md` "Ingest of eval_score".
"""

from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from mesedi_server.errors import RefusedError
from mesedi_server.schemas import execution_ids, lenient_json

MAX_EVENTS = 10_000
"""Events a batch may have; more is 413."""
MAX_PAYLOAD_BYTES = 2 * 1024 * 1024
"""Bytes of JSON a payload may have."""
MAX_NAME_BYTES = 256
"""Bytes of UTF-8 an id, type, evaluator or metric may have."""
RESERVED_TYPES = frozenset({"dlp_scan_result"})
"""Types that only a backend may make."""

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Event(Struct):
    """One event as it came; fields that are not listed are ignored."""

    event_id: str = ""
    execution_id: str = ""
    event_type: str = ""
    sequence: Int64 | None = None
    timestamp: datetime | None = None
    payload: Any = None
    duration_ms: Int64 | None = None


class EventRow(Struct, omit_defaults=True):
    """One event as it is stored: names are the columns of `events`, UNSET is SQL NULL."""

    event_id: str
    execution_id: str
    event_type: str
    sequence: int = 0
    timestamp: datetime | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    payload: Any = UNSET
    evaluator_id: str | UnsetType = UNSET
    metric_type: str | UnsetType = UNSET
    score: float | UnsetType = UNSET
    passed: bool | UnsetType = UNSET
    higher_is_better: bool | UnsetType = UNSET
    scale_min: float | UnsetType = UNSET
    scale_max: float | UnsetType = UNSET


class Refusal(Struct):
    """Why one event of a batch is not stored."""

    index: int
    event_id: str | None
    reason: str


class Batch(Struct):
    """What a request brought."""

    rows: list[EventRow]
    refusals: list[Refusal]
    repeated: int = 0
    """Events whose id an earlier one of the batch has: that one counts."""


class _RefusedEventError(Exception):
    """One event cannot be taken; its neighbours can."""


_decoder = msgspec.json.Decoder(list[Event])
_encode = msgspec.json.Encoder().encode


def read(body: bytes) -> Batch:
    """Read a batch.

    Raises:
        RefusedError: the body is not a JSON array (400), is empty (400), or has over MAX_EVENTS events (413).
    """
    # The fast decoder keeps NUL, which PostgreSQL's texts cannot hold.
    if b"\\u0000" in body:
        return read_carefully(body)
    try:
        events = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return read_carefully(body)
    _check_length(len(events))
    batch = Batch([], [])
    is_large = len(body) > MAX_PAYLOAD_BYTES
    for index, event in enumerate(events):
        _take(batch, index, event, is_large=is_large)
    return _first_of_each(batch)


def read_carefully(body: bytes) -> Batch:
    """Read a batch element by element; as `read`, slower, and never stopped by one bad event."""
    try:
        texts = list(islice(lenient_json.elements(body), MAX_EVENTS + 1))
        _check_length(len(texts))
        batch = Batch([], [])
        for index, text in enumerate(texts):
            _take_text(batch, index, text)
    except lenient_json.NotAnArrayError as error:
        raise RefusedError(str(error)) from error
    except (lenient_json.NotJsonError, lenient_json.TooDeepError) as error:
        raise RefusedError(f"the body is not JSON: {error}") from error
    return _first_of_each(batch)


def encode_rows(rows: list[EventRow]) -> str:
    """Write rows as the JSON text that the store passes to PostgreSQL."""
    return _encode(rows).decode()


def _first_of_each(batch: Batch) -> Batch:
    """Leave out events whose id an earlier one has, so that it does not depend on the database which is stored."""
    if len({row.event_id for row in batch.rows}) < len(batch.rows):
        first: dict[str, EventRow] = {}
        for row in batch.rows:
            first.setdefault(row.event_id, row)
        batch.repeated = len(batch.rows) - len(first)
        batch.rows = list(first.values())
    return batch


def _check_length(count: int) -> None:
    if count == 0:
        raise RefusedError("empty event batch")
    if count > MAX_EVENTS:
        raise RefusedError(f"more than {MAX_EVENTS} events in one batch", 413)


def _take_text(batch: Batch, index: int, text: bytes) -> None:
    try:
        value = lenient_json.parse(text)
    except lenient_json.TooDeepError as error:
        batch.refusals.append(Refusal(index, None, str(error)))
        return
    try:
        event = msgspec.convert(value, Event)
    except msgspec.ValidationError as error:
        batch.refusals.append(Refusal(index, _event_id(value), str(error)))
        return
    _take(batch, index, event, is_large=len(text) > MAX_PAYLOAD_BYTES)


def _take(batch: Batch, index: int, event: Event, *, is_large: bool) -> None:
    try:
        batch.rows.append(_row(event, is_large=is_large))
    except _RefusedEventError as refusal:
        batch.refusals.append(Refusal(index, event.event_id or None, str(refusal)))


def _row(event: Event, *, is_large: bool) -> EventRow:
    for name in ("event_id", "execution_id", "event_type"):
        _check_name(name, getattr(event, name))
    if (fault := execution_ids.fault(event.execution_id)) is not None:
        raise _RefusedEventError(f"execution_id {fault}")
    if event.event_type in RESERVED_TYPES:
        raise _RefusedEventError(f"event_type {event.event_type} is reserved")
    _check_payload(event.payload, is_large=is_large)
    row = EventRow(event.event_id, event.execution_id, event.event_type)
    row.sequence = event.sequence or 0
    row.payload = event.payload
    if event.timestamp is not None:
        row.timestamp = _utc(event.timestamp)
    if event.duration_ms is not None and event.duration_ms >= 0:
        row.duration_ms = event.duration_ms
    if event.event_type == "eval_score":
        _read_eval_score(row, event.payload)
    return row


def _check_name(name: str, value: str) -> None:
    if not value:
        raise _RefusedEventError(f"{name} is missing or empty")
    if len(value) * 4 > MAX_NAME_BYTES and len(value.encode()) > MAX_NAME_BYTES:
        raise _RefusedEventError(f"{name} is longer than {MAX_NAME_BYTES} bytes")
    if "\ufffd" in value:
        raise _RefusedEventError(f"{name} has a NUL, a lone surrogate or broken UTF-8 in it")


def _utc(timestamp: datetime) -> datetime:
    """Give a time in UTC, which PostgreSQL and Python both can hold; one without a zone is UTC."""
    if timestamp.tzinfo is None:
        return timestamp.replace(tzinfo=UTC)
    try:
        return timestamp.astimezone(UTC)
    except OverflowError as error:
        raise _RefusedEventError("timestamp is not within the years 1 to 9999, in UTC") from error


def _check_payload(payload: Any, *, is_large: bool) -> None:
    if _is_deeper_than(payload, lenient_json.MAX_DEPTH - 1):
        raise _RefusedEventError(f"nested deeper than {lenient_json.MAX_DEPTH} levels")
    if is_large and len(_encode(payload)) > MAX_PAYLOAD_BYTES:
        raise _RefusedEventError(f"payload is larger than {MAX_PAYLOAD_BYTES} bytes")


def _is_deeper_than(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return levels == 0 or any(
        _is_deeper_than(item, levels - 1) for item in value if isinstance(item, (dict, list))
    )


def _read_eval_score(row: EventRow, payload: Any) -> None:
    if not isinstance(payload, dict):
        raise _RefusedEventError("payload of an eval_score must be an object")
    get = payload.get
    row.evaluator_id = _evaluator(get("evaluator_id"))
    row.metric_type = _metric(get("metric_type"))
    if (score := _score(get("score"))) is not None:
        row.score = score
    if (passed := _flag("passed", get("passed"))) is not None:
        row.passed = passed
    row.higher_is_better = _flag("higher_is_better", get("higher_is_better")) is not False
    if (scale := get("scale")) is not None:
        row.scale_min, row.scale_max = _scale(scale)


def _evaluator(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _RefusedEventError("evaluator_id is missing, blank or no string")
    _check_name("evaluator_id", value)
    return value


def _metric(value: Any) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise _RefusedEventError("metric_type must be a string")
    _check_name("metric_type", value)
    return value


def _score(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _RefusedEventError("score must be a number or null")
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _flag(name: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise _RefusedEventError(f"{name} must be true, false or null")
    return value


def _scale(value: Any) -> tuple[float, float]:
    ends = [_score(end) for end in value] if isinstance(value, list) else []
    if len(ends) != 2 or ends[0] is None or ends[1] is None or not ends[0] < ends[1]:  # noqa: PLR2004
        raise _RefusedEventError("scale must be [lowest, highest], lowest first")
    return ends[0], ends[1]


def _event_id(value: Any) -> str | None:
    found = value.get("event_id") if isinstance(value, dict) else None
    return found[:MAX_NAME_BYTES] if isinstance(found, str) else None
