"""A comparison in the few lines that a terminal shows."""

from collections.abc import Iterator

from evaluators.counting import counted
from evaluators.summary import Json

SHOWN = 20
"""Answers that are named in each list; the rest are counted."""


def lines(report: Json) -> Iterator[str]:
    """Yield the comparison as lines of text."""
    yield f"Decision: {report['decision']}"
    for side in ("baseline", "candidate"):
        of = report[side]
        yield f"{side.capitalize()}: {of['decision']} (evaluation {of['evaluation_id']})"
    yield f"Paired: {report['paired']}; unavailable: {report['unavailable']}"
    for name in ("regressions", "added", "removed", "mismatched"):
        yield f"{name.capitalize()}: {len(report[name])}"
        yield from (f"  {_named(each)}" for each in report[name][:SHOWN])
        if len(report[name]) > SHOWN:
            yield f"  and {len(report[name]) - SHOWN} more"
    yield "Transitions: " + (", ".join(map(_transition, report["transitions"])) or "none")
    yield from (f"{name}: {_metric(entry)}" for name, entry in report["metrics"].items())


def _named(answer: Json) -> str:
    stream = f"{answer['stream']}: " if "stream" in answer else ""
    return f"{stream}{answer['case_id']} ({answer['criterion_id']})"


def _transition(each: Json) -> str:
    return f"{each['baseline']} -> {each['candidate']} {each['answers']}"


def _metric(entry: Json) -> str:
    if entry["delta"] is None:
        return "no pair of answers measures it"
    interval = ""
    if entry["interval"] is not None:
        interval = " [{:+.3f}, {:+.3f}]".format(*entry["interval"])
    change = f"{entry['baseline']:.3f} -> {entry['candidate']:.3f}"
    return f"{change} ({entry['delta']:+.3f}{interval}; {counted(entry['paired'], 'pair')})"
