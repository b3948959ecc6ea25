"""The few lines that a terminal shows."""

from evaluators.counting import counted
from evaluators.summary import Json, is_draft


def lines(summary: Json) -> list[str]:
    """Return an evaluation's summary as lines of text."""
    spec = summary["spec"]
    qualification = spec.get("qualification", "draft")
    outcomes = ", ".join(f"{status} {count}" for status, count in summary["counts"].items())
    judged = f"{summary['judged']}/{summary['applicable']}"
    return [
        f"Evaluation: {summary['evaluation_id']}",
        f"Decision: {summary['decision']} (spec {spec['id']} {spec['revision']}, {qualification})",
        *_why(summary),
        f"Judged: {judged}; unavailable: {summary['unavailable']}",
        f"Outcomes: {outcomes or 'none'}",
        *(f"{name}: {measured(entry)}" for name, entry in summary["metrics"].items()),
        f"Judge calls reserved: {summary['budget']['reserved_calls']}/{_limit(summary)}",
    ]


def measured(entry: Json) -> str:
    """Write a metric's value with what it was computed from."""
    if entry["value"] is None:
        return "no value (nothing to measure)"
    if entry["aggregation"] == "count":
        return f"{entry['value']:g} ({counted(entry['denominator'], 'answer')})"
    return f"{entry['value']:.3f} ({entry['numerator']:g}/{entry['denominator']})"


def would_pass(summary: Json) -> bool:
    """Say whether nothing but the draft keeps an evaluation from passing."""
    return bool(
        is_draft(summary)
        and summary["judged"]
        and not summary["unavailable"]
        and not summary["counts"].get("violated")
    )


def _why(summary: Json) -> list[str]:
    if would_pass(summary):
        return ["Nothing was violated, but a draft spec cannot pass."]
    if summary["counts"].get("budget_blocked"):
        return ["The budget kept answers from being judged: mesedi-eval budget raises it."]
    return []


def _limit(summary: Json) -> str:
    limits = summary["budget"]["limits"]
    return "unconfigured" if limits is None else str(limits["max_calls"])
