"""Evaluate a saved capture: freeze the inputs, then store one result for each.

Nothing is written before every refusal has had its say, and nothing at all where nothing is left
to do.
"""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from evaluators import evidence, grounding, metrics, rundir
from evaluators.canonical import digest
from evaluators.dataset import text_of
from evaluators.errors import EvaluationRefusedError
from evaluators.progress import Progress, quiet
from evaluators.spec import Criterion, EvaluationSpec
from evaluators.store import answers, checks, evaluations
from evaluators.store.database import Connection, opened, transaction
from evaluators.store.evaluations import Budget, Case, Evaluation
from evaluators.version import PACKAGE_VERSION

ENGINE = "evaluators-v2"
_GROUNDING_REVISION = "v1"
_BATCH = 500
"""Results that one transaction commits; a killed process works at most this many out again."""


def evaluate_saved(
    directory: Path,
    spec: EvaluationSpec,
    *,
    new_evaluation: bool = False,
    budget: Budget | None = None,
    progress: Progress = quiet,
) -> str:
    """Evaluate a run, or go on where an earlier call stopped; return the evaluation's id.

    Args:
        directory: the run directory.
        spec: what is checked.
        new_evaluation: allow an evaluation besides those that the run has.
        budget: what judges may be asked in this run; the first one given is frozen.
        progress: is told how far the work is.

    Raises EvaluationRefusedError, LockedRunError, RunError or CorruptRunError.
    """
    with rundir.locked(directory):
        with opened(directory, is_locked=True) as connection:
            frozen = checks.verify(connection)
            _refuse(frozen, spec)
            manifest = _manifest(connection, frozen, spec)
            found, first = _earlier(connection, manifest["identity"])
            if found is None and not first and not new_evaluation:
                raise EvaluationRefusedError(
                    "the run has another evaluation; --new-evaluation adds this one to it"
                )
            freezes = _freezes_budget(connection, budget)
            if found and not freezes and not evaluations.pending_count(connection, found):
                return found.id
        with opened(directory, write=True) as connection:
            evaluation = found or _begin(connection, manifest, spec)
            if budget and freezes:
                with transaction(connection):
                    evaluations.freeze_budget(connection, budget)
            _evaluate(connection, evaluation, spec, progress)
    return evaluation.id


def descriptors(spec: EvaluationSpec) -> list[dict[str, Any]]:
    """Return what is frozen of the evaluators of a spec, metrics included."""
    return [
        {
            "id": name,
            "revision": _GROUNDING_REVISION,
            "configuration_digest": digest({"id": name, "config": {}}),
            "metrics": [asdict(each) for each in metrics.of_evaluators([name])],
        }
        for name in sorted({criterion.evaluator for criterion in spec.criteria})
    ]


def _refuse(frozen: dict[str, Any], spec: EvaluationSpec) -> None:
    captured = {target["stream"] for target in frozen["targets"]}
    for stream in spec.streams:
        if stream not in captured:
            raise EvaluationRefusedError(f"the run has no stream {stream!r}")
    for criterion in spec.criteria:
        if criterion.is_judged:
            raise EvaluationRefusedError(
                f"criterion {criterion.id!r} needs a judge ({criterion.evaluator}); "
                "this version evaluates grounding alone"
            )
        if criterion.evaluator != "grounding":
            raise EvaluationRefusedError(
                f"criterion {criterion.id!r}: no evaluator {criterion.evaluator!r} is registered"
            )


def _manifest(
    connection: Connection, frozen: dict[str, Any], spec: EvaluationSpec
) -> dict[str, Any]:
    identifying = {
        "spec": spec.to_json(),
        "judge": None,
        "inputs_digest": evaluations.inputs_digest(_inputs(connection, spec)),
        "engine_revision": ENGINE,
        "evaluators": descriptors(spec),
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


def _freezes_budget(connection: Connection, given: Budget | None) -> bool:
    if given is None:
        return False
    stored = evaluations.budget(connection) if evaluations.exist(connection) else None
    if stored not in {None, given}:
        raise EvaluationRefusedError(f"the budget of this run is frozen: {stored}")
    return stored is None


def _begin(connection: Connection, manifest: dict[str, Any], spec: EvaluationSpec) -> Evaluation:
    with transaction(connection):
        evaluations.create_tables(connection)
        return evaluations.add(connection, manifest, _inputs(connection, spec))


def _evaluate(
    connection: Connection, evaluation: Evaluation, spec: EvaluationSpec, progress: Progress
) -> None:
    criteria = {criterion.id: criterion for criterion in spec.criteria}
    total = evaluations.planned(connection, evaluation)
    told = partial(progress, "Evaluating")
    told(total - evaluations.pending_count(connection, evaluation), total)
    begin = 0
    while batch := evaluations.pending(connection, evaluation, begin, _BATCH):
        recorded_at = rundir.now()
        results = [
            (case.number, _result(criteria[case.input.criterion_id], case, recorded_at))
            for case in batch
        ]
        with transaction(connection):
            evaluations.add_results(connection, evaluation, results)
        begin = batch[-1].number + 1
        told(len(batch), total)


def _result(criterion: Criterion, case: Case, recorded_at: str) -> dict[str, Any]:
    status, reason, assessment = _assess(criterion, case)
    return {
        "schema_version": 1,
        "input_key": case.input.key,
        "status": status,
        "call_id": None,
        "verdict": None,
        "assessment": None if assessment is None else {"kind": "grounding", **assessment.content()},
        "metrics": {} if assessment is None else assessment.samples(),
        "reason": reason,
        "recorded_at": recorded_at,
    }


def _assess(
    criterion: Criterion, case: Case
) -> tuple[str, str | None, grounding.Assessment | None]:
    if case.input.observation_digest is None:
        return "missing_capture", "no answer was captured", None
    bundle, text = read_evidence(case)
    if isinstance(bundle, evidence.MissingEvidence):
        return "missing_evidence", bundle.reason, None
    if criterion.evidence_requirement == "complete_context":
        return "missing_evidence", "nobody knows whether the context is complete", None
    assessment = grounding.assess(text, bundle)
    return assessment.outcome, None, assessment


def read_evidence(case: Case) -> tuple[evidence.Bundle | evidence.MissingEvidence, str]:
    """Return what an answer may lean on, and the answer."""
    text, context, _ = answers.answer_parts(case.answer, case.record)
    question = None if case.question is None else text_of(case.question)
    source_id = f"turn:{case.input.question_ordinal}"
    return evidence.read(context, question, source_id), text
