"""One answer and a judge: what is asked about it, and what a reply means for it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from evaluators import evidence, faithfulness, ledger
from evaluators import verdicts as texts
from evaluators.canonical import text_digest
from evaluators.counting import counted
from evaluators.evidence import Bundle, MissingEvidence
from evaluators.faithfulness import Assessment, Verdict
from evaluators.judges import JudgeRequest
from evaluators.prompts import Turn
from evaluators.spec import Criterion
from evaluators.verdicts import InvalidVerdictError
from evaluators.version import EVALUATOR_REVISION
from mesedi_server.assessing import QUESTION_ID
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.store.judge_calls import Call
from mesedi_server.store.judge_scores import JudgeScore

_CRITERION = asdict(
    Criterion(id="faithfulness", revision=EVALUATOR_REVISION, evaluator="faithfulness")
)
_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class Question:
    """An answer that can be judged."""

    answer: str
    bundle: Bundle

    def request(self) -> JudgeRequest:
        """Write what a judge is asked."""
        before = [Turn(QUESTION_ID, "user", self.bundle.question.text)]
        return faithfulness.request(_CRITERION, 0, before, self.answer, self.bundle)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What becomes of an answer: an outcome of `assessments`, why, and the assessment if there is one."""

    outcome: str
    reason: str | None = None
    assessment: Assessment | None = None

    def content(self) -> dict[str, Any] | None:
        """Return the assessment as it is stored."""
        return None if self.assessment is None else storable(self.assessment.content())

    def scores(self) -> list[JudgeScore]:
        """Return the scores that it makes."""
        return [] if self.assessment is None else list(_scores(self.assessment))


def revision(judge: str) -> str:
    """Name the revision of assessments by a judge, whose contract is given as `ledger.contract_json` writes it."""
    return f"{EVALUATOR_REVISION} {text_digest(judge)}"


def question(payload: dict[str, Any]) -> Question | Conclusion:
    """Read an `answer` event; what cannot be judged has its conclusion without a judge."""
    asked, answer = payload.get("question"), payload.get("answer")
    if not isinstance(answer, str):
        return Conclusion("invalid", "the answer is not text")
    if asked is not None and not isinstance(asked, str):
        return Conclusion("invalid", "the question is not text")
    bundle = evidence.read(payload.get("context"), asked, QUESTION_ID)
    if isinstance(bundle, MissingEvidence):
        return Conclusion("missing_evidence", bundle.reason)
    return Question(answer, bundle)


def conclude(asked: Question, call: Call, min_correctness: int) -> Conclusion:
    """Turn a finished call into what it means for the answer; no reply is repaired."""
    unread = ledger.unread(call.status, call.exception_type)
    if unread is not None:
        settled = f"; {call.settlement_reason}" if call.settlement else ""
        return Conclusion(unread[0], storable(unread[1] + settled)[:_REASON_CHARS])
    if call.reply is None:
        return Conclusion("invalid", "the reply is not kept any longer")
    try:
        text = texts.whole_text(ledger.read_reply(call.reply))
        verdict = faithfulness.read_verdict(text, asked.answer, asked.bundle)
    except InvalidVerdictError as error:
        return Conclusion("invalid", storable(error.sentence)[:_REASON_CHARS])
    assessment = faithfulness.assess(verdict, min_correctness)
    return Conclusion(assessment.outcome, assessment=assessment)


def _scores(assessment: Assessment) -> Iterator[JudgeScore]:
    """Yield the scores; those that say nothing about an answer without claims, or without facts, are left out."""
    verdict = assessment.verdict
    reason = _reason(verdict)
    if verdict.claims:
        yield JudgeScore(
            metric="claim_support",
            score=verdict.supported / len(verdict.claims),
            passed=verdict.supported == len(verdict.claims),
            highest=1,
            reason=f"{verdict.supported} of {counted(len(verdict.claims), 'claim')} supported. {reason}",
        )
    if assessment.outcome != "not_applicable":
        yield JudgeScore(
            metric="correctness",
            score=verdict.correctness,
            passed=assessment.is_of_use,
            highest=faithfulness.HIGHEST,
            reason=reason,
        )


def _reason(verdict: Verdict) -> str:
    danger = f"Dangerous: {verdict.danger_reason} " if verdict.dangerous else ""
    return str(storable(danger + verdict.reasoning))[:_REASON_CHARS]
