"""A release check: an evaluation with its comparison and its gates. Nothing is judged anew."""

from contextlib import ExitStack
from pathlib import Path

from evaluators.comparison import compare
from evaluators.gates import Policy, release
from evaluators.summary import Json, View, summarize, viewed


def checked(
    view: View,
    policy: Policy | None,
    baseline: Path | None,
    baseline_evaluation_id: str | None,
) -> Json:
    """Return the summary of an evaluation with its "release" and its "comparison", if any.

    Args:
        view: the evaluation.
        policy: gates; without any, the evaluation's own decision counts alone.
        baseline: a run to compare with.
        baseline_evaluation_id: which of the baseline's evaluations, by default the latest.

    Raises SpecError for a gate that does not fit, ComparisonRefusedError, RunError.
    """
    with ExitStack() as stack:
        report = None
        if baseline is not None:
            before = stack.enter_context(viewed(baseline, baseline_evaluation_id))
            report = compare(before, view)
    summary = summarize(view)
    found = {**summary, "release": release(summary, policy, report)}
    return found if report is None else {**found, "comparison": report}
