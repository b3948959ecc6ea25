"""What became of the pieces: nothing counts as sent that the server did not acknowledge."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

WITHHELD = "before_send"
SAMPLED_OUT = "sampled out"
_MAX_REASONS = 100
_WANTED = (WITHHELD, SAMPLED_OUT)
_MAX_REASON_CHARS = 200


@dataclass(frozen=True)
class Counts:
    """How many were sent, still wait, wait on disk, or are lost, by reason."""

    sent: int = 0
    pending: int = 0
    spooled: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Dropped here or refused by the server, for good, and not because you wanted it."""
        dropped = sum(n for reason, n in self.dropped.items() if reason not in _WANTED)
        return dropped + sum(self.refused.values())


@dataclass(frozen=True)
class Stats(Counts):
    """Counts of events; `executions` counts the starts and ends of executions."""

    executions: Counts = field(default_factory=Counts)

    @property
    def complete(self) -> bool:
        """Everything so far was acknowledged by the server."""
        parts = (self, self.executions)
        return not any(part.pending or part.spooled or part.lost for part in parts)


class Tally:
    """Counts of one kind of piece, from any thread."""

    def __init__(self) -> None:
        # Re-entrant for the same reason as the inbox's.
        self._lock = threading.RLock()
        self._sent = 0
        self._dropped: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def sent(self, count: int = 1) -> None:
        """Count what the server acknowledged."""
        with self._lock:
            self._sent += count

    def drop(self, reason: str, count: int = 1) -> None:
        """Count what was given up on this side."""
        with self._lock:
            if count:
                self._dropped[_known(reason, self._dropped)] += count

    def refuse(self, reason: str, count: int = 1) -> None:
        """Count what the server said it will not take."""
        with self._lock:
            self._refused[_known(reason, self._refused)] += count

    def counts(self, pending: int, spooled: int = 0) -> Counts:
        """Answer a snapshot."""
        with self._lock:
            return Counts(self._sent, pending, spooled, dict(self._dropped), dict(self._refused))


def total(parts: list[Counts]) -> Counts:
    """Add up the counts of several clients."""
    dropped: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for part in parts:
        dropped.update(part.dropped)
        refused.update(part.refused)
    return Counts(
        sum(part.sent for part in parts),
        sum(part.pending for part in parts),
        sum(part.spooled for part in parts),
        dict(dropped),
        dict(refused),
    )


def _known(reason: str, counter: Counter[str]) -> str:
    # A server may put an id into each reason: the number of different ones is bounded.
    reason = reason[:_MAX_REASON_CHARS]
    return reason if reason in counter or len(counter) < _MAX_REASONS else "other"
