"""The SDK's manners: nothing of ours may raise into the host, and nothing is said twice."""

import contextlib
import functools
import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

logger = logging.getLogger("mesedi")

_P = ParamSpec("_P")
_R = TypeVar("_R")
_said: dict[str, float] = {}  # when
_over: set[str] = set()  # may be said again
_QUIET_S = 60.0  # between two lines about the same trouble, however often it comes back


def say_once(key: str, text: str, *args: object, level: int = logging.WARNING) -> None:
    """Log `text` the first time `key` comes up, and see `unsay`; never payloads, never keys."""
    now = time.monotonic()
    if key in _said and (key not in _over or now - _said[key] < _QUIET_S):
        return
    # Marked first: a log handler that calls back into the SDK must not come round again.
    _said[key] = now
    _over.discard(key)
    with contextlib.suppress(Exception):  # a broken log handler is not the caller's trouble
        logger.log(level, text, *args)


def unsay(key: str) -> None:
    """Let `key` be said again, after a while: its trouble had ended in between."""
    if key in _said:
        _over.add(key)


def harmless(func: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """Make `func` answer None instead of raising, and name the error once in the log."""

    @functools.wraps(func)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        try:
            return func(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - this is the promise of the whole package
            say_stumbled(func, error)
            return None

    return guarded


def say_stumbled(func: Callable[..., object], error: Exception) -> None:
    """Name, once, the call that failed and the kind of its error."""
    name, kind = getattr(func, "__qualname__", "call"), type(error).__name__
    say_once(f"{name}:{kind}", "mesedi.%s did nothing: %s", name, kind)
