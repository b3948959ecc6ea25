"""A crash's name, the same after every deploy: no line numbers, no paths."""

import os
from types import TracebackType

_PYTHON = os.path.dirname(os.__file__)  # noqa: PTH120 - as code objects spell it
_OURS = os.path.dirname(__file__)  # noqa: PTH120 - likewise
_INSTALLED = ("site-packages", "dist-packages")


def crash_signature(error: BaseException) -> str:
    """Name the exception's type and the innermost place in the caller's own code.

    As in `ValueError:retrieval.py:fetch`. Libraries count only when nothing else is there.
    """
    places = _places(error.__traceback__)
    own = [place for place in places if not _is_library(place[0])]
    file, function = (own or places or [("", "")])[-1]
    parts = (type(error).__name__, os.path.basename(file), function)  # noqa: PTH119
    return ":".join(part for part in parts if part)


def _is_library(file: str) -> bool:
    return file.startswith((_PYTHON, "<frozen")) or any(name in file for name in _INSTALLED)


def _places(traceback: TracebackType | None) -> list[tuple[str, str]]:
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_OURS):
            places.append((code.co_filename, code.co_name))
        traceback = traceback.tb_next
    return places
