"""Evaluators: text and evidence in, assessment out; captured, saved and repeatable.

The pure part (`grounding`, `evidence`, `metrics`) can be imported without the durable edge: the
names below are loaded when they are used first.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluators.evaluation import evaluate_saved
    from evaluators.report_objects import evaluation_summary
    from evaluators.spec import Criterion, EvaluationSpec

__all__ = [
    "Criterion",
    "EvaluationSpec",
    "evaluate_saved",
    "evaluation_summary",
]

_HOME = {
    "Criterion": "evaluators.spec",
    "EvaluationSpec": "evaluators.spec",
    "evaluate_saved": "evaluators.evaluation",
    "evaluation_summary": "evaluators.report_objects",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
