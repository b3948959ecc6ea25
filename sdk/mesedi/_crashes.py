"""A crash's name, the same after every deploy: no line numbers, no paths."""

import os
import sysconfig
from types import TracebackType

_FOREIGN = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_OURS = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - strings compare


def crash_signature(error: BaseException) -> str:
    """Name the exception's type and the innermost place in the caller's own code.

    As in `ValueError:retrieval.py:fetch`. Libraries count only when nothing else is there.
    """
    places = _places(error.__traceback__)
    own = [place for place in places if not place[0].startswith(_FOREIGN)]
    file, function = (own or places or [("", "")])[-1]
    parts = (type(error).__name__, os.path.basename(file), function)  # noqa: PTH119
    return ":".join(part for part in parts if part)


def _places(traceback: TracebackType | None) -> list[tuple[str, str]]:
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            places.append((code.co_filename, code.co_name))
        traceback = traceback.tb_next
    return places
