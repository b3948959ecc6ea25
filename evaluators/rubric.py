"""rubric: what a judge says of an answer by a criterion in words (section 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from evaluators import prompts, verdicts
from evaluators.canonical import canonical
from evaluators.judges import JudgeRequest
from evaluators.prompts import Turn
from evaluators.verdicts import InvalidVerdictError, Quote

Outcome: TypeAlias = Literal["met", "violated", "not_applicable"]

OUTCOMES: tuple[Outcome, ...] = ("met", "violated", "not_applicable")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict, its quotes found in the sources."""

    outcome: Outcome
    rationale: str
    evidence: tuple[Quote, ...]

    def content(self) -> dict[str, Any]:
        """The verdict as a JSON value."""
        return {
            "outcome": self.outcome,
            "rationale": self.rationale,
            "evidence": [quote.content() for quote in self.evidence],
        }


def sources(answer: str, context: object, conversation: Sequence[Turn]) -> dict[str, str]:
    """Return what can be quoted, by its source id.

    Args:
        answer: the saved answer.
        context: the saved context; None when there was none. Quoted as canonical JSON.
        conversation: the committed turns of the session, up to and including the answer.
    """
    quotable = {turn.source_id: turn.content for turn in conversation}
    if context is not None:
        quotable[prompts.CONTEXT_ID] = canonical(context)
    return {**quotable, prompts.ANSWER_ID: answer}


def read_verdict(
    reply: object, quotable: Mapping[str, str], *, allow_not_applicable: bool
) -> Verdict:
    """Read a judge's raw text, or an object that was read already; raises InvalidVerdictError.

    Args:
        reply: text or object.
        quotable: `sources(...)`.
        allow_not_applicable: whether the criterion need not apply to every answer.
    """
    fields = verdicts.versioned(verdicts.parse(reply), _FIELDS)
    verdict = Verdict(**{**fields, "evidence": tuple(fields["evidence"])})
    if verdict.outcome == "not_applicable":
        if not allow_not_applicable:
            raise InvalidVerdictError("not_applicable is not allowed by the criterion")
    elif not verdict.evidence:
        raise InvalidVerdictError(f"{verdict.outcome} needs at least one quote")
    verdicts.check_quotes(verdict.evidence, quotable)
    return verdict


def request(
    criterion: Mapping[str, Any],
    sample: int,
    conversation: Sequence[Turn],
    answer: str,
    context: object,
) -> JudgeRequest:
    """Write what a judge is asked.

    Args:
        criterion: the criterion's fields.
        sample: another number asks for another judgment.
        conversation: the committed turns of the session, up to and including the answer.
        answer: the saved answer, whole.
        context: the saved context; None when there was none.
    """
    shown = prompts.without(criterion, "evaluator", "min_correctness", "config")
    rest = {
        "context": {
            "source_id": prompts.CONTEXT_ID,
            "value": context,
            "completeness": prompts.COMPLETENESS,
        },
        "response_schema": RESPONSE_SCHEMA,
    }
    return JudgeRequest(SYSTEM, prompts.write(shown, sample, conversation, answer, rest))


_FIELDS: verdicts.Fields = {
    "outcome": verdicts.one_of(*OUTCOMES),
    "rationale": verdicts.text,
    "evidence": verdicts.list_of(verdicts.quote),
}

SYSTEM = f"""\
{prompts.COMMON_RULES}

Judge `answer` by `criterion.rubric`: that text alone says what is wanted. Take the answer in its \
`conversation`, for the question that was really asked there, and use what `context.value` shows \
of what was retrieved; it is null when nothing was kept, and `context.completeness` says whether \
more may have been retrieved. What an assistant said in earlier turns is no proof of a fact.

outcome: "met" when the answer does what the rubric wants, "violated" when it does not, and \
"not_applicable" when the rubric has nothing to say about such an answer. "not_applicable" can be \
given only when `criterion.allow_not_applicable` is true.

rationale: why, in a few sentences.

evidence: the passages that show it, quoted under their `source_id`: "answer", "context", or the \
"turn:..." of a turn of the conversation. A quote from "context" is a piece of the JSON text of \
`context.value` exactly as it stands in the message, escapes and quotation marks included. "met" \
and "violated" need at least one quote."""

RESPONSE_SCHEMA: Mapping[str, Any] = prompts.objects_schema(
    {
        "outcome": {"type": "string", "enum": list(OUTCOMES)},
        "rationale": prompts.TEXT_SCHEMA,
        "evidence": prompts.quotes_schema(),
    }
)
"""What a verdict looks like."""
