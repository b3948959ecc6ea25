"""How reports show a release decision: the evaluation's own, and that of every gate."""

from collections.abc import Iterator
from html import escape

from evaluators.reports.tables import table
from evaluators.summary import Json


def decision(summary: Json) -> str:
    """Return the release decision, or the evaluation's own where nothing else decides."""
    release = summary.get("release")
    return str(summary["decision"] if release is None else release["decision"])


def gates(summary: Json) -> list[tuple[str, str, str]]:
    """Return (name, decision, reason) of the evaluation and each gate; nothing without gates."""
    release = summary.get("release")
    if release is None or not release["gates"]:
        return []
    own = ("evaluation", release["evaluation"], "its own decision")
    return [own, *((gate["id"], gate["decision"], gate["reason"]) for gate in release["gates"])]


def lines(summary: Json) -> Iterator[str]:
    """Yield a line of text for the decision and each gate."""
    if found := gates(summary):
        yield f"Release: {decision(summary)}"
        yield from (f"  {name}: {decided} ({reason})" for name, decided, reason in found)


def html(summary: Json) -> str:
    """Return the gates as an HTML table."""
    rows = "".join(
        f'<tr><th scope=row>{escape(name)}</th><td><span class="badge {decided}">{decided}</span>'
        f"</td><td>{escape(reason)}</td></tr>"
        for name, decided, reason in gates(summary)
    )
    return table("Release gates", rows) if rows else ""
