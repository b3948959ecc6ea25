"""Load what a capture or a spec needs, and nothing that it does not need."""

from collections.abc import Iterable
from pathlib import Path

from evaluators.custom import Evaluator
from evaluators.custom import build as build_evaluator
from evaluators.factories import load
from evaluators.judges import Judge
from evaluators.judges import build as build_judge
from evaluators.spec import EvaluationSpec
from evaluators.targets import Target
from evaluators.targets import build as build_target


def target(factory: str, folder: Path) -> Target:
    """Load what answers the questions; looked for as a judge is. Raises FactoryError."""
    return build_target(load(factory, [folder]))


def judge(factory: str | None, spec: EvaluationSpec, folder: Path) -> Judge | None:
    """Load the judge of a spec that has judged criteria. Raises FactoryError.

    Args:
        factory: `module:function`, looked for in the working folder and in `folder`.
        spec: what is checked.
        folder: that of the spec or suite.
    """
    if factory is None or not spec.is_judged:
        return None
    return build_judge(load(factory, [folder]))


def evaluators(factories: Iterable[str], spec: EvaluationSpec, folder: Path) -> list[Evaluator]:
    """Load the registered evaluators of a spec that names one. Raises FactoryError."""
    if not spec.is_custom:
        return []
    return [build_evaluator(load(name, [folder])) for name in factories]
