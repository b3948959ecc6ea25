"""The background thread between the caller and the server: its life, `flush` and the exit."""

import threading
import time
from collections.abc import Sequence
from typing import TypeAlias

from mesedi._delivery import Delivery
from mesedi._guard import say_once
from mesedi._ids import Ids
from mesedi._inbox import Inbox
from mesedi._lanes import Lane, Lanes
from mesedi._pieces import (
    Piece,
    SavedEvent,
    SavedReport,
    is_alone,
    is_event,
    with_own_execution,
)
from mesedi._saving import save
from mesedi._settings import Settings
from mesedi._spelling import Speller
from mesedi._spool import Leftovers, Spool
from mesedi._tally import Stats, Tally

_WINDOW_BATCHES = 4  # work that the sender unpacks ahead; the rest stays small in the inbox
_SAVING_S = 0.8  # of the time at exit, for writing a full queue to the spool folder
_LAST_ATTEMPTS = 2  # hopeless requests in a row at exit after which it waits no longer


class _Barrier:
    """A mark in the inbox: reached when everything before it is settled."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._left: dict[Lane, int] = {}

    def arm(self, lanes: Lanes) -> None:
        self._left = {lane: lane.settled + len(lane.pieces) for lane in lanes}

    def check(self) -> bool:
        self._left = {lane: goal for lane, goal in self._left.items() if lane.settled < goal}
        if not self._left:
            self.reached.set()
        return not self._left


_Item: TypeAlias = Piece | _Barrier


class Shipper:
    """Takes pieces from any thread and delivers them from its own."""

    def __init__(self, settings: Settings, ids: Ids) -> None:
        self._settings = settings
        self._ids = ids
        self._inbox: Inbox[_Barrier] = Inbox(
            settings.max_queue, settings.max_queue_bytes, settings.batch_size
        )
        self._delivery = Delivery(settings, ids)
        self._spool = _spool_of(settings)
        self._leftovers: Leftovers | None = None
        self._saved_events = 0
        self._barriers: list[_Barrier] = []
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._lock = threading.RLock()
        self._flushing = 0
        self._retired = False
        self._closed = False
        self._stop_at: float | None = None

    # For any thread

    def put(self, piece: Piece) -> None:
        """Take one piece over; never blocks, never raises."""
        if self._closed:
            self._tally(piece).drop("after exit")
            return
        if not self._inbox.put(piece):
            self._tally(piece).drop("queue full")
            say_once("queue full", "The queue is full; mesedi.stats() counts what is dropped")
        if self._thread is None:
            self._start()

    def send_leftovers(self) -> None:
        """Send, in the background, what earlier processes saved."""
        if self._spool is None:
            return
        self._spool.prepare()
        self._leftovers = Leftovers(self._spool)
        if self._leftovers.remain:
            self._start()

    def drop(self, reason: str, count: int = 1) -> None:
        """Count events that never became pieces."""
        self._delivery.events.drop(reason, count)

    def flush(self, timeout_s: float) -> int:
        """Wait until all that was put before is settled; answers how much is not (0: all is)."""
        if self._thread is threading.current_thread():
            return self.undelivered()
        barrier = _Barrier()
        with self._lock:
            self._flushing += 1
        try:
            self._delivery.backoff.lift()
            self._inbox.mark(barrier)
            self._start()
            reached = barrier.reached.wait(timeout_s)
        finally:
            with self._lock:
                self._flushing -= 1
        return 0 if reached else self.undelivered()

    def undelivered(self) -> int:
        """Count the events and reports that are neither acknowledged nor given up."""
        return sum(self._waiting())

    def stats(self) -> Stats:
        """Answer a snapshot of the counts."""
        events, reports = self._waiting()
        unread = self._leftovers.unread_events if self._leftovers else 0
        counts = self._delivery.events.counts(events, self._saved_events + unread)
        return Stats(**vars(counts), executions=self._delivery.reports.counts(reports))

    def retire(self) -> None:
        """Deliver what is here, then let the thread end."""
        self._retired = True
        self._inbox.bell.ring()

    @property
    def is_done(self) -> bool:
        """Retired, and everything that was here is settled."""
        return self._retired and self.undelivered() == 0

    def close(self, stop_at: float) -> int:
        """Deliver what is here before the monotonic time `stop_at` and take nothing more.

        The rest goes to the spool folder, or is counted as dropped; answers how many events
        were lost.
        """
        self._delivery.hopeless_in_row = 0
        self._delivery.backoff.lift()
        if self._spool is not None:
            stop_at -= min(_SAVING_S, max(0.0, stop_at - time.monotonic()) / 2)
        self._stop_at = stop_at
        self._delivery.couriers.stop_at(stop_at)
        self._await_sender(stop_at)
        self._closed = True
        self._inbox.bell.ring()
        return self._give_up()

    def disown(self) -> None:
        """Forget everything, in a forked child: the parent sends what is the parent's."""
        self._closed = True
        if self._leftovers is not None:
            self._leftovers.let_go()
        self._delivery.couriers.disown()

    def _await_sender(self, stop_at: float) -> None:
        if self.undelivered():
            self._start()
        self._inbox.bell.ring()
        if self._thread is None:
            # Nothing to do, or the interpreter starts no more threads: this one has to do.
            self._deliver()
        else:
            self._ended.wait(max(0.0, stop_at - time.monotonic()))

    def _give_up(self) -> int:
        items = self._inbox.peek()
        self._inbox.remove(len(items))
        here = [item for item in items if not isinstance(item, _Barrier)]
        # What came from the spool folder is still there.
        pieces = [
            piece
            for piece in [*self._delivery.give_up(), *here]
            if not isinstance(piece, SavedEvent | SavedReport)
        ]
        if self._leftovers is not None:
            self._leftovers.let_go()
        unsaved: Sequence[Piece] = pieces
        if self._spool is not None and pieces:
            speller = Speller(self._settings, self._ids)
            unsaved, self._saved_events = save(pieces, self._spool, speller, self._delivery.events)
        for piece in unsaved:
            self._tally(piece).drop("exit")
        return sum(is_event(piece) for piece in unsaved)

    def _waiting(self) -> tuple[int, int]:
        pieces = [item for item in self._inbox.peek() if not isinstance(item, _Barrier)]
        events = sum(is_event(piece) for piece in pieces)
        lanes = self._delivery.lanes
        return events + lanes.events, len(pieces) - events + lanes.reports

    def _tally(self, piece: Piece) -> Tally:
        return self._delivery.events if is_event(piece) else self._delivery.reports

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._ended.clear()
            self._thread = threading.Thread(target=self._run, name="mesedi-sender", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no threads left, or the interpreter is going down
                self._thread = None

    # For the sender's thread

    def _run(self) -> None:
        try:
            # A thread before this one may have been killed at any point of its work.
            self._delivery.lanes.line_up_again()
            self._deliver()
        finally:
            self._delivery.couriers.hang_up()
            self._thread = None
            self._ended.set()

    def _deliver(self) -> None:
        while not self._is_finished():
            self._rest()
            try:
                self._work()
            except Exception as error:  # noqa: BLE001 - one bad piece must not end the delivery
                say_once("sender", "mesedi's sender stumbled: %s", type(error).__name__)
                self._delivery.backoff.failed(everything=True)
                self._delivery.lanes.line_up_again()

    def _is_finished(self) -> bool:
        if self._closed:
            return True
        if self._stop_at is not None and (
            time.monotonic() >= self._stop_at or self._delivery.hopeless_in_row >= _LAST_ATTEMPTS
        ):
            return True
        # A mark in the inbox is no piece, but somebody waits for it.
        busy = self._inbox or self._has_leftovers or self.undelivered()
        return self._is_leaving and not busy

    def _rest(self) -> None:
        bell = self._inbox.bell
        bell.wait(self._seconds_to_work())
        if self._may_linger():
            bell.wait(self._settings.flush_interval_s)

    def _seconds_to_work(self) -> float | None:
        pause = self._delivery.backoff.remaining()
        if pause:
            return pause if self._stop_at is None else min(pause, self._time_left())
        if self._inbox or self._delivery.lanes.ready or self._is_leaving:
            return 0.0
        if self._has_leftovers and not self.undelivered():
            return 0.0
        return self._delivery.lanes.seconds_to_next()

    def _time_left(self) -> float:
        return max(0.0, (self._stop_at or 0.0) - time.monotonic())

    @property
    def _is_leaving(self) -> bool:
        return self._retired or self._stop_at is not None

    @property
    def _has_leftovers(self) -> bool:
        return self._leftovers is not None and self._leftovers.remain

    def _may_linger(self) -> bool:
        """More may come soon, and nobody waits for what is here."""
        return (
            0 < len(self._inbox) < self._settings.batch_size
            and not self._delivery.lanes.ready
            and not self._flushing
            and not self._is_leaving
        )

    def _work(self) -> None:
        while not self._closed and not self._delivery.backoff.remaining():
            if self._stop_at is not None and not self._time_left():
                return
            self._unpack()
            went = self._delivery.step()
            self._inbox.release(*self._delivery.released())
            if self._leftovers is not None:
                self._leftovers.settled(self._delivery.saved_settled())
            self._barriers = [barrier for barrier in self._barriers if not barrier.check()]
            if not went:
                return

    def _unpack(self) -> None:
        """Move pieces from the inbox to the lanes while these have little to do."""
        window = _WINDOW_BATCHES * self._settings.batch_size
        while (room := window - self._delivery.lanes.ready) > 0:
            items = self._inbox.peek(room)
            if not items:
                self._take_leftovers(room)
                return
            # Removed only afterwards: a thread killed in here sends some twice, loses none.
            for item in items:
                self._unpack_one(item)
            self._inbox.remove(len(items))

    def _take_leftovers(self, room: int) -> None:
        """Take up what an earlier process saved, when there is nothing newer."""
        if self._leftovers is not None:
            for piece in self._leftovers.take(room):
                self._delivery.lanes.add(piece)

    def _unpack_one(self, item: _Item) -> None:
        lanes = self._delivery.lanes
        if isinstance(item, _Barrier):
            lanes.wake_all()
            item.arm(lanes)
            self._barriers.append(item)
        elif is_alone(item):
            self._inbox.hold(2)
            for piece in with_own_execution(item, self._ids, self._settings.labels):
                lanes.add(piece)
        else:
            lanes.add(item)


def _spool_of(settings: Settings) -> Spool | None:
    if settings.spool is None:
        return None
    return Spool(settings.spool, settings.base_url, settings.api_key, settings.max_spool_bytes)
