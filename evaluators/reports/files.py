"""The files of a report, one step each."""

from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from evaluators.errors import RunError
from evaluators.reports import html, junit, markdown
from evaluators.summary import Json, View, summarize

FILES: dict[str, Callable[[View, Json, TextIO], None]] = {
    "report.html": html.write,
    "junit.xml": junit.write,
    "summary.md": markdown.write,
}


def write(view: View, out: Path, *, force: bool = False) -> list[Path]:
    """Write every file of `FILES` into a folder and return their paths.

    Raises RunError when one exists, unless `force`.
    """
    paths = [out / name for name in FILES]
    for path in paths:
        if path.exists() and not force:
            raise RunError(f"{path} exists; --force replaces it")
    out.mkdir(parents=True, exist_ok=True)
    summary = summarize(view)
    for path, form in zip(paths, FILES.values(), strict=True):
        replacement = path.with_name(f".{path.name}.new")
        with replacement.open("w", encoding="utf-8", newline="\n") as file:
            form(view, summary, file)
        replacement.replace(path)
    return paths
