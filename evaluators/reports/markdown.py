"""Markdown for a pull request: the decision, the numbers, and the first answers that failed."""

import re
from collections.abc import Sequence
from typing import TextIO

from evaluators.reports import release
from evaluators.reports.findings import complaints
from evaluators.reports.text import measured, would_pass
from evaluators.summary import GROUPINGS, Json, View

SHOWN = 20
"""Violated answers that are listed; the rest are counted."""


def write(view: View, summary: Json, out: TextIO) -> None:
    """Write the summary."""
    spec = summary["spec"]
    qualification = spec.get("qualification", "draft")
    out.write(f"## {_plain(spec['id'])}: {release.decision(summary)}\n\n")
    out.write(f"Revision {_plain(spec['revision'])}, {qualification}. ")
    if would_pass(summary):
        out.write("Nothing was violated, but a draft spec cannot pass. ")
    out.write(
        f"{summary['judged']} of {summary['applicable']} applicable answers judged, "
        f"{summary['unavailable']} unavailable.\n\n"
    )
    _table(out, ("Gate", "Decision", "Reason"), release.gates(summary))
    _table(out, ("Outcome", "Answers"), list(summary["counts"].items()))
    rows = [(name, measured(entry)) for name, entry in summary["metrics"].items()]
    _table(out, ("Metric", "Value"), rows)
    groups = [
        (f"{kind}: {name}", group["decision"], group["counts"].get("violated", 0))
        for kind in GROUPINGS
        for name, group in summary[kind].items()
    ]
    _table(out, ("Group", "Decision", "Violated"), groups)
    _violations(view, summary, out)


def _violations(view: View, summary: Json, out: TextIO) -> None:
    violated = summary["counts"].get("violated", 0)
    if not violated:
        return
    out.write("### Violated\n\n")
    shown = 0
    for case in view.cases(texts=False):
        if case.result is None or case.result["status"] != "violated":
            continue
        faults = "; ".join(_plain(line) for line in complaints(case.result))
        out.write(f"- {_plain(case.case_id)} ({_plain(case.input.criterion_id)}): {faults}\n")
        shown += 1
        if shown == SHOWN:
            break
    if violated > shown:
        out.write(f"- and {violated - shown} more\n")


def _table(out: TextIO, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if not rows:
        return
    out.writelines(f"| {' | '.join(row)} |\n" for row in (head, ("---",) * len(head)))
    out.writelines(f"| {' | '.join(_plain(str(cell)) for cell in cells)} |\n" for cells in rows)
    out.write("\n")


def _plain(text: str) -> str:
    """Take every meaning that Markdown or HTML would give to a text from it."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>#|~@&])", r"\\\1", flat)
