"""What becomes of one answer under one criterion: when it cannot be judged, and how it is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evaluators import custom, faithfulness, grounding, ledger, rubric, verdicts
from evaluators.evidence import Bundle, MissingEvidence
from evaluators.judges import JudgeReply, JudgeRequest
from evaluators.judging import Answered
from evaluators.material import Material
from evaluators.metrics import Sample
from evaluators.spec import Criterion
from evaluators.verdicts import InvalidVerdictError


@dataclass(frozen=True, slots=True)
class Finding:
    """A result as it will be stored, without its place.

    Attributes:
        status: one of section 10.
        reason: why there is no judgment, in words.
        verdict: of a rubric's judge.
        assessment: of every other evaluator, with its `kind`.
        samples: what the answer adds to each metric.
        call_id: the judge call it comes from.
    """

    status: str
    reason: str | None = None
    verdict: dict[str, Any] | None = None
    assessment: dict[str, Any] | None = None
    samples: Mapping[str, Sample] = field(default_factory=dict)
    call_id: str | None = None


def unavailable(criterion: Criterion, material: Material) -> Finding | None:
    """Say why an answer cannot be judged at all; None when it can."""
    if not material.is_captured:
        return Finding("missing_capture", "no answer was captured")
    if criterion.needs_bundle and isinstance(material.evidence, MissingEvidence):
        return Finding("missing_evidence", material.evidence.reason)
    if criterion.evidence_requirement == "conversation":
        return None
    if material.context is None:
        return Finding("missing_evidence", "there is no context")
    if criterion.evidence_requirement == "complete_context":
        return Finding("missing_evidence", "nobody knows whether the context is complete")
    return None


def assess(
    criterion: Criterion, material: Material, registered: Mapping[str, custom.Evaluator]
) -> Finding:
    """Judge an answer without a judge."""
    if criterion.is_custom:
        return _run(registered[criterion.evaluator], criterion, material)
    assessment = grounding.assess(material.answer, _bundle(material))
    content = {"kind": "grounding", **assessment.content()}
    return Finding(assessment.outcome, assessment=content, samples=assessment.samples())


def request(criterion: Criterion, sample: int, material: Material) -> JudgeRequest:
    """Write what a judge is asked about an answer."""
    shown = asdict(criterion)
    if criterion.evaluator == "rubric":
        conversation, context = material.conversation, material.context
        return rubric.request(shown, sample, conversation, material.answer, context)
    before = material.conversation[:-1]
    return faithfulness.request(shown, sample, before, material.answer, _bundle(material))


def conclude(criterion: Criterion, material: Material, answered: Answered[Any]) -> Finding:
    """Turn a finished judge call, or the lack of one, into a finding."""
    call = answered.call
    if call is None:
        return Finding("budget_blocked", answered.reason)
    unread = ledger.unread(call.status, call.exception_type)
    if unread is None:
        return _read(criterion, material, ledger.read_reply(call.reply or ""), call.id)
    status, reason = unread
    settled = f"; a person settled it: {call.settlement_reason}" if call.settlement else ""
    return Finding(status, reason + settled, call_id=call.id)


def _read(criterion: Criterion, material: Material, reply: JudgeReply, call_id: str) -> Finding:
    read = _read_rubric if criterion.evaluator == "rubric" else _read_faithfulness
    try:
        return read(criterion, material, verdicts.whole_text(reply), call_id)
    except InvalidVerdictError as error:
        return Finding("invalid", error.sentence, call_id=call_id)


def _read_rubric(criterion: Criterion, material: Material, text: str, call_id: str) -> Finding:
    allowed = bool(criterion.allow_not_applicable)
    verdict = rubric.read_verdict(text, material.quotable, allow_not_applicable=allowed)
    return Finding(verdict.outcome, verdict=verdict.content(), call_id=call_id)


def _read_faithfulness(
    criterion: Criterion, material: Material, text: str, call_id: str
) -> Finding:
    verdict = faithfulness.read_verdict(text, material.answer, _bundle(material))
    assessment = faithfulness.assess(verdict, criterion.min_correctness or 0)
    return Finding(
        assessment.outcome,
        assessment={"kind": "faithfulness", **assessment.content()},
        samples=assessment.samples(),
        call_id=call_id,
    )


def _run(evaluator: custom.Evaluator, criterion: Criterion, material: Material) -> Finding:
    result = custom.run(
        evaluator,
        material.answer,
        conversation=material.conversation,
        context=material.context,
        config=criterion.config,
        sources=material.quotable,
        allow_not_applicable=bool(criterion.allow_not_applicable),
    )
    if result.outcome == "invalid":
        return Finding("invalid", f"the evaluator failed: {result.reason}")
    content = {"kind": "custom", **result.content()}
    return Finding(result.outcome, assessment=content, samples=result.samples())


def _bundle(material: Material) -> Bundle:
    if isinstance(material.evidence, MissingEvidence):
        raise TypeError("the evidence of this answer cannot be read")
    return material.evidence
