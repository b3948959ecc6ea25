"""Waking workers, without ever making a request wait for the broker."""

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

INTERVAL_S = 0.1
"""At most one wake-up per this time and process: a task examines whatever is due, not one execution."""


class Waker:
    """Sends wake-ups from a thread of its own, and swallows what goes wrong: beat sweeps up what is lost.

    Args:
        send: publishes one wake-up that is due after some seconds.
        is_reachable: tells whether the broker answers.
    """

    def __init__(self, send: Callable[[float], None], is_reachable: Callable[[], bool]) -> None:
        self._send = send
        self.is_reachable = is_reachable
        self._changed = threading.Condition()
        self._wanted: set[float] = set()
        self._thread: threading.Thread | None = None

    def wake(self, *, after_s: float = 0.0) -> None:
        """Ask for a worker to look for due executions, now or a little later; never blocks, never raises."""
        with self._changed:
            self._wanted.add(after_s)
            # Started with the first wake-up, so that it lives in the process that serves, not in its parent.
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mesedi-waker", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                wanted, self._wanted = self._wanted, set()
            for after_s in wanted:
                self._try_to_send(after_s)
            time.sleep(INTERVAL_S)

    def _try_to_send(self, after_s: float) -> None:
        try:
            self._send(after_s)
        except Exception as error:  # noqa: BLE001 - whatever the broker's client raises, detection goes on by beat
            logger.warning("could not wake a worker (%s); beat will", type(error).__name__)
