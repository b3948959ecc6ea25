"""Accidents on the way: a process that kills itself at a place in the code, as `kill -9` would."""

import functools
import os
import signal


def die_at(place: tuple[object, str, str], number: int) -> None:
    """Kill this process when it comes to a place for the `number`-th time.

    `place` is what owns a function, the function's name, and "before" or "after".
    """
    owner, name, when = place
    original = getattr(owner, name)
    seen = []

    @functools.wraps(original)
    def dying(*args, **kwargs):
        seen.append(1)
        if when == "before" and len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)
