"""Evaluate a saved capture: freeze the inputs, then store one result for each.

Nothing is written before every refusal has had its say, and nothing at all where nothing is left
to do.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from evaluators import custom, ledger, metrics, rundir
from evaluators.canonical import digest
from evaluators.errors import EvaluationRefusedError
from evaluators.judges import Judge
from evaluators.ledger import Budget
from evaluators.progress import Progress, quiet
from evaluators.results import Means, add_pending
from evaluators.spec import EvaluationSpec
from evaluators.store import calls, checks, evaluations
from evaluators.store.database import Connection, opened, transaction
from evaluators.store.evaluations import Evaluation
from evaluators.summary import Groups
from evaluators.version import EVALUATOR_REVISION, PACKAGE_VERSION

ENGINE = "evaluators-v2"


def evaluate_saved(
    directory: Path,
    spec: EvaluationSpec,
    *,
    new_evaluation: bool = False,
    judge: Judge | None = None,
    budget: Budget | None = None,
    concurrency: int = 1,
    evaluators: Iterable[custom.Evaluator] = (),
    progress: Progress = quiet,
) -> str:
    """Evaluate a run, or go on where an earlier call stopped; return the evaluation's id.

    Ctrl-C lets the judge calls under way finish, stores what came of them and then raises
    KeyboardInterrupt.

    Args:
        directory: the run directory.
        spec: what is checked.
        new_evaluation: allow an evaluation besides those that the run has.
        judge: what judges; needed for rubric and faithfulness criteria, unused without them.
        budget: what judges may be asked in this run; the first one given is frozen.
        concurrency: judge calls under way at once, from 1.
        evaluators: the registered evaluators that criteria may name.
        progress: is told how far the work is.

    Raises EvaluationRefusedError, FactoryError, LockedRunError, RunError or CorruptRunError.
    """
    means = Means.of(spec, judge, evaluators, concurrency)
    return evaluated(
        directory, means, new_evaluation=new_evaluation, budget=budget, progress=progress
    ).id


class Evaluated(NamedTuple):
    """An evaluation as far as it came; `counted` is None unless all of it was made just now."""

    id: str
    counted: Groups | None = None


def evaluated(
    directory: Path,
    means: Means,
    *,
    new_evaluation: bool = False,
    budget: Budget | None = None,
    progress: Progress = quiet,
) -> Evaluated:
    """Evaluate a run as `evaluate_saved` does."""
    with rundir.locked(directory):
        with opened(directory, is_locked=True) as connection:
            frozen = checks.verify(connection)
            _refuse(frozen, means)
            manifest = _manifest(connection, frozen, means)
            found, first = _earlier(connection, manifest["identity"])
            if found is None and not first and not new_evaluation:
                raise EvaluationRefusedError(
                    "the run has another evaluation; --new-evaluation adds this one to it"
                )
            freezes = _freezes_budget(connection, budget)
            _refuse_budget(budget if freezes else _budget(connection), means)
            if found and not freezes and not evaluations.pending_count(connection, found):
                return Evaluated(found.id)
        with opened(directory, write=True) as connection:
            evaluation = found or _begin(connection, manifest, means.spec)
            if budget and freezes:
                with transaction(connection):
                    calls.freeze_budget(connection, budget)
            counted = add_pending(connection, evaluation, means, progress)
    return Evaluated(evaluation.id, counted)


def _refuse(frozen: dict[str, Any], means: Means) -> None:
    captured = {target["stream"] for target in frozen["targets"]}
    for stream in means.spec.streams:
        if stream not in captured:
            raise EvaluationRefusedError(f"the run has no stream {stream!r}")
    for criterion in means.spec.criteria:
        if criterion.is_judged and means.judge is None:
            raise EvaluationRefusedError(
                f"criterion {criterion.id!r} needs a judge ({criterion.evaluator}): "
                "--judge-factory names one"
            )
        if criterion.is_custom and criterion.evaluator not in means.registered:
            raise EvaluationRefusedError(
                f"criterion {criterion.id!r}: no evaluator {criterion.evaluator!r} is registered; "
                "--evaluator-factory names one"
            )
    if type(means.concurrency) is not int or means.concurrency < 1:
        raise EvaluationRefusedError("concurrency must be an integer from 1")


def _refuse_budget(budget: Budget | None, means: Means) -> None:
    if means.judge is None:
        return
    if budget is None:
        raise EvaluationRefusedError("a judged evaluation needs a budget: --max-judge-calls")
    bound = means.judge.contract.max_cost_micros_per_call
    if budget.max_cost_micros is not None and bound is None:
        raise EvaluationRefusedError(
            "the budget limits the cost, and the judge does not say what a call can cost at most"
        )


def _manifest(connection: Connection, frozen: dict[str, Any], means: Means) -> dict[str, Any]:
    judge = means.judge
    identifying = {
        "spec": means.spec.to_json(),
        "judge": None if judge is None else json.loads(ledger.contract_json(judge.contract)),
        "inputs_digest": evaluations.inputs_digest(_inputs(connection, means.spec)),
        "engine_revision": ENGINE,
        "evaluators": list(_evaluators(means)),
        "package_version": PACKAGE_VERSION,
    }
    return {
        "schema_version": 1,
        "id": str(uuid4()),
        "run_id": frozen["id"],
        "identity": digest(identifying),
        **identifying,
        "created_at": rundir.now(),
    }


def _evaluators(means: Means) -> Iterator[dict[str, Any]]:
    """Yield what is frozen of each evaluator of a spec, metrics included."""
    for name in sorted({criterion.evaluator for criterion in means.spec.criteria}):
        own = means.registered.get(name)
        configuration = digest({"id": name, "config": {}})
        measures = metrics.of_evaluators([name]) if own is None else own.metrics
        yield {
            "id": name,
            "revision": EVALUATOR_REVISION if own is None else own.revision,
            "configuration_digest": configuration if own is None else own.configuration_digest,
            "metrics": [asdict(each) for each in measures],
        }


def _inputs(connection: Connection, spec: EvaluationSpec) -> Iterator[evaluations.FrozenInput]:
    ids = [criterion.id for criterion in spec.criteria]
    return evaluations.inputs_now(connection, spec.streams, ids)


def _earlier(connection: Connection, identity: str) -> tuple[Evaluation | None, bool]:
    """Return the evaluation with this identity, and whether the run has none at all."""
    if not evaluations.exist(connection):
        return None, True
    return (
        evaluations.of_identity(connection, identity),
        evaluations.latest(connection) is None,
    )


def _budget(connection: Connection) -> Budget | None:
    return calls.budget(connection) if evaluations.exist(connection) else None


def _freezes_budget(connection: Connection, given: Budget | None) -> bool:
    """Say whether a budget is the run's first. One that was raised since may be named as it was."""
    if given is None:
        return False
    stored = _budget(connection)
    if stored is None:
        return True
    if given not in {stored, calls.frozen_budget(connection)}:
        raise EvaluationRefusedError(
            f"the budget of this run is frozen ({stored.in_words()}); mesedi-eval budget raises it"
        )
    return False


def _begin(connection: Connection, manifest: dict[str, Any], spec: EvaluationSpec) -> Evaluation:
    with transaction(connection):
        evaluations.create_tables(connection)
        return evaluations.add(connection, manifest, _inputs(connection, spec))
