"""Load what a `module:function` names, from this folder or from one beside a given file."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from evaluators.errors import FactoryError


def load(name: str, folders: Sequence[Path] = ()) -> Callable[[], object]:
    """Import a function that is called without arguments.

    `folders` and the working folder are searched first. Raises FactoryError.
    """
    module_name, separator, function_name = name.partition(":")
    if not separator or not module_name or not function_name:
        raise FactoryError(f"{name!r} must have the form module:function")
    with _searched(folders):
        try:
            module = import_module(module_name)
        except (Exception, SystemExit) as error:
            raise FactoryError(f"{module_name!r} cannot be imported: {_named(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise FactoryError(f"{module_name!r} has no function {function_name!r}")
    return function  # type: ignore[no-any-return]


@contextmanager
def _searched(folders: Sequence[Path]) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = [str(folder.resolve()) for folder in (*folders, Path.cwd())]
    try:
        yield
    finally:
        sys.path[:] = before


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
