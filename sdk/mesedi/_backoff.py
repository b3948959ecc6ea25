"""How long to wait before trying again."""

import random
import time
from collections.abc import Callable

_FIRST_S = 0.2
_OUTAGE_FROM = 3  # failures in a row from which it is the server's trouble, not one execution's
_MAX_RETRY_AFTER_S = 300.0


class Backoff:
    """Doubling waits with jitter, for one execution and for the whole server."""

    def __init__(self, max_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_s = max_s
        self._clock = clock
        # Its own generator: the host may have seeded the module's.
        self._random = random.Random()  # noqa: S311 - jitter, not a secret
        self._until = 0.0
        self.failures = 0

    @property
    def outage(self) -> bool:
        """Nothing has gone through for a while."""
        return self.failures >= _OUTAGE_FROM

    def delay(self, attempt: int, retry_after_s: float | None = None) -> float:
        """Answer the seconds to wait after the `attempt`-th failure, counted from 1."""
        if retry_after_s is not None:
            return min(retry_after_s, _MAX_RETRY_AFTER_S)
        longest = min(self._max_s, _FIRST_S * 2.0 ** min(attempt - 1, 16))
        return longest * self._random.uniform(0.5, 1.0)

    def failed(self, retry_after_s: float | None = None, *, everything: bool) -> None:
        """Count a failure; `everything` makes all work wait, as a row of failures does."""
        self.failures += 1
        if everything or self.outage:
            self._until = self._clock() + self.delay(self.failures, retry_after_s)

    def succeeded(self) -> None:
        """The server answers as it should."""
        self.failures = 0
        self._until = 0.0

    def remaining(self) -> float:
        """Answer the seconds that everything still has to wait."""
        return max(0.0, self._until - self._clock())

    def lift(self) -> None:
        """Try at once: somebody waits for it."""
        self._until = 0.0
