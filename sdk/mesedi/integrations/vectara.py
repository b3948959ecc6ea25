"""Single HHEM scores under the reference's evaluator id."""

from mesedi._integrations import report


def report_hhem(faithfulness_score: float, threshold: float = 0.5, reason: str = "") -> None:
    """Send a consistency, which the reference calls `hallucination`; higher is better."""
    report("vectara/hhem", "hallucination", faithfulness_score, threshold, reason)
