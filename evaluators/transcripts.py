"""Write committed turns as a dataset again: what was said, in the order of the run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluators import rundir
from evaluators.canonical import canonical
from evaluators.errors import RunError
from evaluators.store import answers, checks
from evaluators.store.database import Connection, opened

_REPLACED = ("context", "usage", "generated_by", "baseline_text")


def export(directory: Path, out: Path, *, stream: str = "primary", force: bool = False) -> int:
    """Write the committed turns of a stream to a JSON lines file; return how many there were.

    Raises RunError when the file exists (unless `force`), when it would replace the run's own
    database, or when the run has no such stream.
    """
    rundir.refuse_output(directory, out, force=force)
    with opened(directory) as connection:
        frozen = checks.verify(connection)
        return write(connection, target_of(frozen, stream), out)


def target_of(frozen: dict[str, Any], stream: str) -> dict[str, Any]:
    """Return what the manifest says of a stream's target."""
    for target in frozen["targets"]:
        if target["stream"] == stream:
            found: dict[str, Any] = target
            return found
    raise RunError(f"this run has no stream {stream!r}")


def write_all(connection: Connection, frozen: dict[str, Any], folder: Path) -> None:
    """Write every stream to `<model>.jsonl` (`<model>-<stream>.jsonl` where names collide)."""
    folder.mkdir(exist_ok=True)
    names = [rundir.slug(target["model"]) for target in frozen["targets"]]
    for name, target in zip(names, frozen["targets"], strict=True):
        ending = "" if names.count(name) == 1 else f"-{target['stream']}"
        write(connection, target, folder / f"{name}{ending}.jsonl")


def write(connection: Connection, target: dict[str, Any], out: Path) -> int:
    """Write one stream in one step; return the number of its committed turns."""
    turns = 0
    replacement = out.with_name(f".{out.name}.new")
    with replacement.open("w", encoding="utf-8", newline="\n") as file:
        for line in _lines(connection, target):
            file.write(f"{line}\n")
            turns += 1
    replacement.replace(out)
    return turns


def _lines(connection: Connection, target: dict[str, Any]) -> Iterator[str]:
    for record, answer in answers.committed(connection, target["stream"]):
        yield record if answer is None else answered(record, answer, target["model"])


def answered(record: str, answer: str, model: str) -> str:
    """Return a dataset record with a generated answer in place of the recorded one."""
    turn = json.loads(record)
    given = json.loads(answer)
    kept = {k: v for k, v in (turn.get("metadata") or {}).items() if k not in _REPLACED}
    given_parts = {k: given[k] for k in ("context", "usage") if given[k] is not None}
    turn["metadata"] = {
        **kept,
        **given_parts,
        "generated_by": model,
        "baseline_text": turn.get("text", ""),
    }
    turn["text"] = given["text"].strip()
    return canonical(turn)
