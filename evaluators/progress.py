"""How long work tells that it goes on."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the steps since the last call, and all steps there are."""


def quiet(doing: str, steps: int, total: int) -> None:
    """Tell nobody."""
