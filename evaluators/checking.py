"""A release check: an evaluation with its comparison and its gates. Nothing is judged anew."""

from evaluators.comparison import compare
from evaluators.gates import Policy, release
from evaluators.summary import Json, View, summarize


def checked(view: View, policy: Policy | None, baseline: View | None) -> Json:
    """Return the summary of an evaluation with its "release" and its "comparison", if any.

    Args:
        view: the evaluation.
        policy: gates; without any, the evaluation's own decision counts alone.
        baseline: an evaluation to compare with.

    Raises SpecError for a gate that does not fit, ComparisonRefusedError.
    """
    report = None if baseline is None else compare(baseline, view)
    summary = summarize(view)
    found = {**summary, "release": release(summary, policy, report)}
    return found if report is None else {**found, "comparison": report}
