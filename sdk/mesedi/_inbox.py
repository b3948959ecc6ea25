"""Where callers leave their pieces: bounded, never blocking, and rung only when it matters."""

import contextlib
import itertools
import threading
from collections import deque
from typing import Generic, TypeVar

from mesedi._pieces import Piece

_M = TypeVar("_M")


class Bell:
    """Wakes the sender. A bare lock: cheap, and safe to ring from a signal handler."""

    def __init__(self) -> None:
        self._silence = threading.Lock()
        self._silence.acquire()

    def ring(self) -> None:
        """Wake the sender, or keep it from its next sleep."""
        with contextlib.suppress(RuntimeError):  # rung already
            self._silence.release()

    def wait(self, timeout_s: float | None) -> None:
        """Sleep until somebody rings; None is for ever, 0 takes back a ring that came early."""
        longest = threading.TIMEOUT_MAX
        self._silence.acquire(timeout=longest if timeout_s is None else min(timeout_s, longest))


class Inbox(Generic[_M]):
    """First in, first out, up to `max_items` pieces and `max_bytes` of text, those at work too.

    `_M` is the sender's own kind of mark, which takes a place in the order but no room.
    """

    def __init__(self, max_items: int, max_bytes: int, ring_at: int) -> None:
        self.bell = Bell()
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._ring_at = ring_at
        # Re-entrant: a signal handler or a destructor may emit while its own thread is in here.
        self._lock = threading.RLock()
        self._items: deque[Piece | _M] = deque()
        self._held = 0
        self._bytes = 0

    def put(self, piece: Piece) -> bool:
        """Take `piece` in; False when there is no room."""
        size = piece.size
        with self._lock:
            if self._held >= self._max_items or self._bytes + size > self._max_bytes:
                return False
            self._held += 1
            self._bytes += size
            self._items.append(piece)
            waiting = len(self._items)
        if waiting in (1, self._ring_at):
            self.bell.ring()
        return True

    def mark(self, mark: _M) -> None:
        """Put a mark behind everything that is here, and ring."""
        with self._lock:
            self._items.append(mark)
        self.bell.ring()

    def peek(self, most: int | None = None) -> list[Piece | _M]:
        """List the first `most` items (None: all) without taking them."""
        with self._lock:
            return list(itertools.islice(self._items, most))

    def remove(self, count: int) -> None:
        """Take away the first `count` items; their room stays held until `release`."""
        with self._lock:
            for _ in range(count):
                self._items.popleft()

    def hold(self, pieces: int) -> None:
        """Take room for pieces that were made from one that was here."""
        with self._lock:
            self._held += pieces

    def release(self, pieces: int, size: int) -> None:
        """Give back the room of pieces that are settled."""
        with self._lock:
            self._held -= pieces
            self._bytes -= size

    def __len__(self) -> int:
        return len(self._items)
