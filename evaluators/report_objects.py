"""The objects of a report, rebuilt from what is stored once (section 12)."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators import assessing, ledger
from evaluators.errors import RunError
from evaluators.evidence import MissingEvidence
from evaluators.judges import JudgeRequest
from evaluators.material import Material
from evaluators.prompts import ANSWER_ID
from evaluators.spec import Criterion
from evaluators.store import answers, calls
from evaluators.store.calls import Call
from evaluators.store.evaluations import Case
from evaluators.summary import Json, View, summarize, viewed


def evaluation_summary(
    directory: Path, evaluation_id: str | None = None, *, details: bool = False
) -> Json:
    """Return what an evaluation says, by default the latest.

    With `details` also manifest, inputs, results and calls, all at once in memory; `stream_parts`
    gives them one by one. Raises RunError, CorruptRunError.
    """
    with viewed(directory, evaluation_id) as view:
        summary = summarize(view)
        if details:
            summary["manifest"] = view.manifest
            summary.update({name: list(items) for name, items in stream_parts(view)})
        return summary


def stream_parts(view: View) -> Iterator[tuple[str, Iterator[Json]]]:
    """Yield the long lists of a report, each to be read before the next."""
    yield "inputs", (input_json(view, case) for case in view.cases())
    yield (
        "results",
        (result_json(view, case) for case in view.cases(texts=False) if case.result is not None),
    )
    yield "calls", (call.to_json() for call in _calls(view))


def result_json(view: View, case: Case) -> Json:
    """Return a result as reports show it."""
    return {
        "id": f"{view.evaluation.id}:{case.number}",
        "evaluation_id": view.evaluation.id,
        **(case.result or {}),
    }


def input_json(view: View, case: Case) -> Json:
    """Return an input as reports show it."""
    frozen = case.input
    criterion = _criterion(view, frozen.criterion_id)
    material = Material(view.connection, case)
    finding = assessing.unavailable(criterion, material)
    request = None if finding else _request(view, criterion, material)
    observation = answers.observation_id(view.run["id"], frozen.stream, frozen.ordinal)
    return {
        "schema_version": 1,
        "key": frozen.key,
        "stream": frozen.stream,
        "ordinal": frozen.ordinal,
        "session_id": case.session_id,
        "criterion_id": frozen.criterion_id,
        "observation_id": observation if frozen.observation_digest else None,
        "observation_digest": frozen.observation_digest,
        "request": None if request is None else asdict(request),
        "sources": {} if finding else _sources(criterion, material),
        "unavailable": None if finding is None else finding.status,
        "tags": case.tags,
        "persona_ids": [] if case.persona_id is None else [case.persona_id],
        "evaluator": criterion.evaluator,
        "data": _data(material),
        "payload": _payload(criterion, material) if criterion.is_custom and not finding else None,
        "case_id": case.case_id,
        "case_revision": case.case_revision,
        "split_group": case.split_group,
    }


def _calls(view: View) -> Iterator[Call]:
    """Yield each call whose request is one of the evaluation's, once."""
    if view.manifest["judge"] is None:
        return
    judge = ledger.contract_text(view.manifest["judge"])
    seen = set()
    for case in view.cases():
        material = Material(view.connection, case)
        criterion = _criterion(view, case.input.criterion_id)
        if assessing.unavailable(criterion, material) is not None:
            continue
        request = _request(view, criterion, material)
        if request is None:
            continue
        key = ledger.cache_key(ledger.request_json(request), judge)
        call = None if key in seen else calls.of_key(view.connection, key)
        if call is not None:
            seen.add(key)
            yield call


def _criterion(view: View, criterion_id: str) -> Criterion:
    if criterion_id not in view.criteria:
        raise RunError(f"the spec has no criterion {criterion_id!r}")
    return view.criteria[criterion_id]


def _request(view: View, criterion: Criterion, material: Material) -> JudgeRequest | None:
    if not criterion.is_judged:
        return None
    return assessing.request(criterion, view.manifest["spec"].get("sample", 0), material)


def _data(material: Material) -> Json | None:
    if not material.is_captured:
        return None
    question, found = material.question, material.evidence
    passages = None if isinstance(found, MissingEvidence) else found.passages
    return {
        "answer": material.answer,
        "question": question,
        "question_source_id": None if question is None else material.question_id,
        "passages": None if passages is None else [passage._asdict() for passage in passages],
    }


def _sources(criterion: Criterion, material: Material) -> dict[str, str]:
    """Return what a finding of this criterion can quote."""
    if not criterion.needs_bundle:
        return material.quotable
    if isinstance(material.evidence, MissingEvidence):
        return {}
    return {source_id: text for source_id, text, _ in material.evidence}


def _payload(criterion: Criterion, material: Material) -> dict[str, Any]:
    return {
        "answer": {"source_id": ANSWER_ID, "text": material.answer},
        "conversation": [turn._asdict() for turn in material.conversation],
        "context": material.context,
        "config": dict(criterion.config),
    }
