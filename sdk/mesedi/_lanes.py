"""The sender's work, one first-in-first-out lane an execution.

A lane keeps its own order (start, events, end); lanes keep no order among each other, so one
execution in trouble waits alone. Every lane with pieces is in exactly one place: ready to
report (a start or an end comes next), ready to speak (events come next), resting, or out
with the sender.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable

from mesedi._pieces import Piece, is_event


class Lane:
    """What one execution still has to send."""

    __slots__ = ("pieces", "resting", "settled", "strikes")

    def __init__(self) -> None:
        self.pieces: deque[Piece] = deque()
        self.settled = 0
        self.strikes = 0
        """Refused attempts in a row while the server was otherwise well."""
        self.resting = False


class Lanes:
    """All lanes, and which of them may go next. Used by the sender's thread alone."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_execution: dict[str, Lane] = {}
        self._reporting: deque[Lane] = deque()
        self._speaking: deque[Lane] = deque()
        self._resting: list[tuple[float, int, Lane]] = []
        self._tie = itertools.count().__next__
        self.ready = 0
        """Pieces in lanes that are not resting."""
        self.events = 0
        self.reports = 0

    def __iter__(self) -> "itertools.chain[Lane]":
        return itertools.chain(self._by_execution.values())

    def add(self, piece: Piece) -> None:
        """Append `piece` to its execution's lane."""
        lane = self._by_execution.get(piece.execution_id)
        if lane is None:
            lane = self._by_execution[piece.execution_id] = Lane()
            lane.pieces.append(piece)
            self._line_up(lane)
        else:
            lane.pieces.append(piece)
        self._count(piece, 1)
        self.ready += not lane.resting

    def settle(self, lane: Lane) -> Piece:
        """Take the first piece of a lane that is out: it needs no more sending."""
        piece = lane.pieces.popleft()
        lane.settled += 1
        self.ready -= 1
        self._count(piece, -1)
        if not lane.pieces:
            # Not there when a request outlives the exit, which had given its lane up.
            self._by_execution.pop(piece.execution_id, None)
        return piece

    def next_reporting(self) -> Lane | None:
        """Take out a lane whose start or end comes next."""
        return self._reporting.popleft() if self._reporting else None

    def next_speaking(self) -> Lane | None:
        """Take out a lane whose events come next."""
        return self._speaking.popleft() if self._speaking else None

    def put_back(self, lane: Lane) -> None:
        """Bring a lane back that was out."""
        if lane.pieces:
            self._line_up(lane)

    def put_back_first(self, lane: Lane) -> None:
        """Bring back a lane that speaks, before all others."""
        self._speaking.appendleft(lane)

    def rest(self, lane: Lane, seconds: float) -> None:
        """Bring a lane back that was out, not to be tried again for a while."""
        if lane.pieces:
            lane.resting = True
            self.ready -= len(lane.pieces)
            heapq.heappush(self._resting, (self._clock() + seconds, self._tie(), lane))

    def wake_due(self) -> None:
        """Let the lanes whose rest is over line up again."""
        now = self._clock()
        while self._resting and self._resting[0][0] <= now:
            self._wake(heapq.heappop(self._resting)[2])

    def wake_all(self) -> None:
        """Let every resting lane line up: somebody waits for them."""
        while self._resting:
            self._wake(self._resting.pop()[2])

    def seconds_to_next(self) -> float | None:
        """Tell how long the first resting lane still rests; None without any."""
        return max(0.0, self._resting[0][0] - self._clock()) if self._resting else None

    def line_up_again(self) -> None:
        """Rebuild the order from the lanes themselves, after the sender's thread was lost."""
        self._reporting.clear()
        self._speaking.clear()
        self._resting.clear()
        self._by_execution = {key: lane for key, lane in self._by_execution.items() if lane.pieces}
        pieces = [piece for lane in self for piece in lane.pieces]
        self.ready = len(pieces)
        self.events = sum(is_event(piece) for piece in pieces)
        self.reports = self.ready - self.events
        for lane in self:
            lane.resting = False
            self._line_up(lane)

    def _wake(self, lane: Lane) -> None:
        lane.resting = False
        self.ready += len(lane.pieces)
        self._line_up(lane)

    def _line_up(self, lane: Lane) -> None:
        (self._speaking if is_event(lane.pieces[0]) else self._reporting).append(lane)

    def _count(self, piece: Piece, by: int) -> None:
        if is_event(piece):
            self.events += by
        else:
            self.reports += by
