"""Single Ragas scores under the reference's evaluator ids."""

from mesedi._integrations import report

_THRESHOLD = 0.7


def report_faithfulness(score: float, threshold: float = _THRESHOLD, reason: str = "") -> None:
    """Send a faithfulness score; it passes from `threshold` on."""
    report("ragas/faithfulness", "faithfulness", score, threshold, reason)


def report_answer_relevance(score: float, threshold: float = _THRESHOLD, reason: str = "") -> None:
    """Send an answer relevance score; it passes from `threshold` on."""
    report("ragas/answer_relevance", "answer_relevance", score, threshold, reason)


def report_context_precision(score: float, threshold: float = _THRESHOLD, reason: str = "") -> None:
    """Send a context precision score; it passes from `threshold` on."""
    report("ragas/context_precision", "context_precision", score, threshold, reason)
