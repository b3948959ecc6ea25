"""Which scores go out where only a share of an evaluator's is wanted."""

import zlib
from collections.abc import Mapping

_BUCKETS = 2**32


class Sampling:
    """Decides by evaluator and execution, so that an execution keeps all scores or none.

    The decision follows from the ids alone: sending a result twice decides the same.
    """

    def __init__(self, rates: Mapping[str, float]) -> None:
        self._rates = dict(rates)

    def admit(self, evaluator: str, unit: str) -> float | None:
        """Answer the rate at which this evaluator's scores go out; None: those of `unit` stay.

        `unit` is an execution's id, or an event's own where no execution holds it.
        """
        rate = self._rates.get(evaluator, 1.0)
        told = f"{evaluator}\n{unit}".encode("utf-8", "replace")
        return rate if zlib.crc32(told) < rate * _BUCKETS else None
