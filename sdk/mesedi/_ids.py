"""128-bit ids that cost a counter's step: 80 random bits a process, 48 bits of counter."""

import itertools
import os


class Ids:
    """Ids of one client. A forked child makes a new one, so that no id is made twice."""

    def __init__(self) -> None:
        self._prefix = os.urandom(10).hex()
        self.take = itertools.count(1).__next__
        """Take the next number; atomic, and all that the caller's thread pays for an id."""

    def name(self, kind: str, number: int) -> str:
        """Spell the id of `number`, as in `evt-4f0c…`."""
        return f"{kind}-{self._prefix}{number:012x}"
