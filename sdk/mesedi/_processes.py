"""Children of `multiprocessing` and of Celery's `billiard`, which end without their exit handlers."""

import sys
from collections.abc import Callable

_LIBRARIES = ("multiprocessing", "billiard")
_PRIORITY = 100  # before they tear down what a last request may need


def at_child_exit(func: Callable[[], object]) -> None:
    """Have `func` called when this process ends, if it is such a child or about to become one."""
    for library in _LIBRARIES:
        # Who has not imported one has no children of it.
        util = sys.modules.get(f"{library}.util")
        process = sys.modules.get(f"{library}.process")
        if util is None or process is None:
            continue
        if _is_child(process):
            util.Finalize(None, func, exitpriority=_PRIORITY)
        else:
            util.register_after_fork(func, _register(util))


def _register(util: object) -> Callable[[Callable[[], object]], None]:
    def register(func: Callable[[], object]) -> None:
        util.Finalize(None, func, exitpriority=_PRIORITY)  # type: ignore[attr-defined]

    return register


def _is_child(process: object) -> bool:
    parent = getattr(process, "parent_process", None)
    return parent is not None and parent() is not None
