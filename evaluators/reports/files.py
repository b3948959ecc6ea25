"""The files of a report, one step each."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TextIO, TypeAlias

from evaluators.errors import RunError
from evaluators.reports import details, html, junit, markdown
from evaluators.summary import Json, View, summarize

Forms: TypeAlias = Mapping[str, Callable[[View, Json, TextIO], None]]

FILES: Forms = {
    "report.html": html.write,
    "junit.xml": junit.write,
    "summary.md": markdown.write,
}
ARTIFACTS: Forms = {
    "evaluation.json": details.write,
    "index.html": html.write,
    "junit.xml": junit.write,
    "summary.md": markdown.write,
}
"""What a release keeps: all of an evaluation, with the decisions of the gates."""


def write(view: View, out: Path, *, force: bool = False) -> list[Path]:
    """Write every file of `FILES` into a folder and return their paths.

    Raises RunError when one exists, unless `force`.
    """
    return write_forms(view, summarize(view), out, FILES, force=force)


def write_forms(
    view: View, summary: Json, out: Path, forms: Forms, *, force: bool = False
) -> list[Path]:
    """Write some forms of an evaluation into a folder and return their paths.

    `summary` may carry a "release" decision besides; see `gates.release`. Raises RunError when a
    file exists, unless `force`.
    """
    paths = [out / name for name in forms]
    if not force:
        refuse_existing(paths)
    out.mkdir(parents=True, exist_ok=True)
    for path, form in zip(paths, forms.values(), strict=True):
        replacement = path.with_name(f".{path.name}.new")
        with replacement.open("w", encoding="utf-8", newline="\n") as file:
            form(view, summary, file)
        replacement.replace(path)
    return paths


def refuse_existing(paths: Iterable[Path]) -> None:
    """Raise RunError when one of the files exists."""
    for path in paths:
        if path.exists():
            raise RunError(f"{path} exists; --force replaces it")
