"""Events as they leave: your hook has seen them, and they fit. The sender's thread alone does it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from mesedi._fitting import as_json, fitted
from mesedi._guard import say_once
from mesedi._ids import Ids
from mesedi._pieces import (
    Event,
    Observation,
    Piece,
    Report,
    SavedEvent,
    SavedReport,
    Score,
    with_own_execution,
)
from mesedi._plain import Json, plain
from mesedi._settings import Settings
from mesedi._tally import WITHHELD

_MAX_CHAR_BYTES = 6  # of one character of a text, as JSON


class Spelled(NamedTuple):
    """An event's JSON; `text` None with the reason why it does not leave."""

    text: str | None
    reason: str = ""


class Speller:
    """Spells pieces for the wire."""

    def __init__(self, settings: Settings, ids: Ids) -> None:
        self._settings = settings
        self._ids = ids

    def event(self, event: Event) -> Spelled:
        """Spell an event, unless the hook keeps it back."""
        if isinstance(event, SavedEvent):  # the hook has seen it before it was saved
            return Spelled(event.text)
        try:
            body = event.wire(self._ids)
            if reason := self._hooked(body):
                return Spelled(None, reason)
            return Spelled(self._fitted(body))
        except Exception:  # noqa: BLE001 - one event that cannot be written must not end the delivery
            return Spelled(None, "unwritable")

    def report(self, report: Report) -> str:
        """Spell the body of an execution's start, pause or end."""
        return report.text if isinstance(report, SavedReport) else as_json(report.wire(self._ids))

    def with_execution(self, event: Score | Observation) -> tuple[Piece, Piece, Piece]:
        """Give an event that no execution holds one of its own."""
        return with_own_execution(event, self._ids, self._settings.labels)

    def _hooked(self, body: dict[str, Json]) -> str:
        """Let the hook change the payload; answers why the event is to stay here, if so."""
        hook = self._settings.before_send
        if hook is None:
            return ""
        # A copy: what the hook changes must not be there when the event is tried again.
        shown: dict[str, Any] = {**body, "payload": plain(body["payload"])[0]}
        try:
            answer = hook(shown)
            if not isinstance(answer, Mapping):
                return WITHHELD
            body["payload"] = plain(answer.get("payload"))[0]
        except BaseException as error:  # noqa: BLE001 - it may have redacted nothing; an exit in it ends no delivery
            kind = type(error).__name__
            say_once("hook", "before_send failed (%s): its events are dropped", kind)
            return "before_send failed"
        return ""

    def _fitted(self, body: dict[str, Json]) -> str:
        is_answer = body["event_type"] == "answer"
        most = self._settings.max_answer_bytes if is_answer else self._settings.max_event_bytes
        text = as_json(body)
        if len(text) * _MAX_CHAR_BYTES <= most:
            return text
        payload = fitted(body["payload"], most)
        return text if payload is body["payload"] else as_json({**body, "payload": payload})
