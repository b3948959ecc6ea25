"""Judges: what is asked, what is answered, and what a judge promises (section 8).

A judge factory takes no arguments and returns an object with a `contract` and a method
`evaluate(request)`, which asks once and returns a `JudgeReply`. Whatever it raises leaves the
outcome of the call unknown: the call is kept, charged and never sent again by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from evaluators.canonical import canonical
from evaluators.contracts import check_digest, check_text
from evaluators.errors import FactoryError

LARGEST_COST_MICROS = 10**15
"""A billion: sums of such costs still fit a database's integers."""

FinishReason: TypeAlias = Literal["stop", "length", "refusal", "other"]


@dataclass(frozen=True, slots=True)
class JudgeContract:
    """What a judge promises; part of a call's identity, so that another judge is asked anew.

    Args:
        model: name of the model behind it.
        configuration_digest: 64 hexadecimal digits over everything that shapes the verdicts.
        max_dispatches_per_request: 1, and nothing else: a judge never repeats a request by itself.
        max_cost_micros_per_call: the most that one call can cost, in millionths of the currency
            of the budget; None when nobody knows.

    Raises FactoryError.
    """

    model: str
    configuration_digest: str
    max_dispatches_per_request: int = 1
    max_cost_micros_per_call: int | None = None

    def __post_init__(self) -> None:
        check_text(self.model, "the judge's model")
        check_digest(self.configuration_digest)
        if type(self.max_dispatches_per_request) is not int or self.max_dispatches_per_request != 1:
            raise FactoryError("max_dispatches_per_request must be 1")
        if not _is_amount(self.max_cost_micros_per_call):
            raise FactoryError(
                "max_cost_micros_per_call must be an integer from 0 to 10**15, or None"
            )


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What a judge is asked: instructions, and the question as canonical JSON text."""

    system: str
    prompt: str


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What a judge answered, kept as it is.

    Args:
        text: the raw text.
        finish_reason: why it ended; only "stop" is a whole answer.
        usage: whatever the provider says about tokens.
        actual_cost_micros: what the call cost; None when nobody knows.
    """

    text: str
    finish_reason: FinishReason = "stop"
    usage: Mapping[str, Any] | None = None
    actual_cost_micros: int | None = None


class Judge(Protocol):
    """What judges. With a concurrency above one, `evaluate` is called from several threads."""

    @property
    def contract(self) -> JudgeContract:
        """Say what it promises."""

    def evaluate(self, request: JudgeRequest) -> JudgeReply:
        """Ask once."""


def build(factory: Callable[[], object]) -> Judge:
    """Call a judge factory and check what it returns. Raises FactoryError."""
    try:
        judge = factory()
        contract = getattr(judge, "contract", None)
    except (Exception, SystemExit) as error:
        raise FactoryError(f"the judge factory failed: {type(error).__name__}: {error}") from error
    if not isinstance(contract, JudgeContract):
        raise FactoryError("the judge has no JudgeContract as contract")
    if not callable(getattr(judge, "evaluate", None)):
        raise FactoryError("the judge has no method evaluate")
    return cast("Judge", judge)


def checked(reply: object) -> JudgeReply:
    """Return a reply whose fields are what they should be, or raise ValueError."""
    if not isinstance(reply, JudgeReply) or not isinstance(reply.text, str):
        raise ValueError("a judge must return a JudgeReply with text")  # noqa: TRY004
    if reply.finish_reason not in get_args(FinishReason):
        raise ValueError("finish_reason must be stop, length, refusal or other")
    if not _is_amount(reply.actual_cost_micros):
        raise ValueError("actual_cost_micros must be an integer from 0 to 10**15, or None")
    if reply.usage is not None:
        if not isinstance(reply.usage, Mapping):
            raise ValueError("usage must be an object")
        canonical(dict(reply.usage)).encode()
    return reply


def _is_amount(value: object) -> bool:
    return value is None or (type(value) is int and 0 <= value <= LARGEST_COST_MICROS)
