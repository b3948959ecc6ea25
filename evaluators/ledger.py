"""The rules of the judge ledger: what a call is, what it is charged, when none may be made (section 9).

A call is reserved before it is sent and its reply is saved before it is read. Where the ledger is
kept is another matter; nothing here knows of a database.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from evaluators.canonical import canonical, text_digest
from evaluators.counting import counted
from evaluators.judges import Judge, JudgeContract, JudgeReply, JudgeRequest, checked

RUNNING = "running"
RESPONSE_SAVED = "response_saved"
UNKNOWN_OUTCOME = "unknown_outcome"
INVALID_RESPONSE = "invalid_response"
COST_BOUND_EXCEEDED = "cost_bound_exceeded"

ABANDONED = "AbandonedCoordinator"
"""Stands for the exception of a call whose process was killed."""

SETTLED = "SettledByHand"
"""Stands for the exception of a call that a person found to have failed."""

_SHOWN_CHARS = 10_000
_USAGE_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Budget:
    """What judges may be asked in the whole capture; a cost of None means no limit in money."""

    max_calls: int
    max_cost_micros: int | None = None

    def in_words(self) -> str:
        """Say what it allows."""
        cost = "" if self.max_cost_micros is None else f", {self.max_cost_micros} millionths"
        return f"{counted(self.max_calls, 'call')}{cost}"


@dataclass(frozen=True, slots=True)
class Spending:
    """What judges were asked so far. A call is charged what it cost, else what it may cost."""

    reserved_calls: int = 0
    known_actual_cost_micros: int = 0
    calls_with_unknown_actual_cost: int = 0
    accounted_cost_micros: int | None = 0
    cost_bound_violations: int = 0

    def with_reservation(self, bound: int | None) -> "Spending":
        """Return what it is with one more call, whose cost nobody knows yet."""
        return replace(
            self,
            reserved_calls=self.reserved_calls + 1,
            calls_with_unknown_actual_cost=self.calls_with_unknown_actual_cost + 1,
            accounted_cost_micros=_sum(self.accounted_cost_micros, bound),
        )

    def with_outcome(self, bound: int | None, outcome: "Outcome") -> "Spending":
        """Return what it is once a reserved call has ended."""
        is_over = outcome.status == COST_BOUND_EXCEEDED
        cost = outcome.actual_cost_micros
        if cost is None:
            return replace(self, cost_bound_violations=self.cost_bound_violations + is_over)
        charged = self.accounted_cost_micros
        return replace(
            self,
            known_actual_cost_micros=self.known_actual_cost_micros + cost,
            calls_with_unknown_actual_cost=self.calls_with_unknown_actual_cost - 1,
            accounted_cost_micros=None if charged is None else charged - (bound or 0) + cost,
            cost_bound_violations=self.cost_bound_violations + is_over,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended.

    Args:
        status: one of the finished statuses above.
        actual_cost_micros: what it cost, if that is known.
        reply: JSON text of the raw reply: its text, finish_reason, usage and actual_cost_micros;
            for a reply of another shape what it looked like; None when there was none.
        exception_type: class name of what was raised, never its text.
    """

    status: str
    actual_cost_micros: int | None = None
    reply: str | None = None
    exception_type: str | None = None


def unread(status: str, exception_type: str | None) -> tuple[str, str] | None:
    """Say what a finished call without a reply to read means for an answer; None when there is one.

    Returns the outcome, `unknown_outcome` or `invalid`, and the reason in words.
    """
    if status == RESPONSE_SAVED:
        return None
    if status == UNKNOWN_OUTCOME:
        return UNKNOWN_OUTCOME, f"nobody knows the reply: {exception_type}"
    if status == COST_BOUND_EXCEEDED:
        return "invalid", "the call cost more than its judge declared"
    return "invalid", f"the judge gave no reply: {exception_type}"


def settled(reply: str | None) -> Outcome:
    """Say how a call ended of which a person has found out the raw text, or that there was none."""
    if reply is None:
        return Outcome(INVALID_RESPONSE, exception_type=SETTLED)
    return Outcome(RESPONSE_SAVED, reply=reply_json(JudgeReply(reply)))


def request_json(request: JudgeRequest) -> str:
    """Write a request as it is kept."""
    return canonical(asdict(request))


def contract_json(contract: JudgeContract) -> str:
    """Write a contract as it is kept."""
    return contract_text(asdict(contract))


def contract_text(fields: Mapping[str, Any]) -> str:
    """Write the fields of a contract as it is kept."""
    return canonical(fields)


def cache_key(request: str, contract: str) -> str:
    """Name a call by what is asked and of whom, both as they are kept; equal calls are one."""
    return text_digest(f'{{"contract":{contract},"request":{request}}}')


def blocked(budget: Budget, spending: Spending, bound: int | None) -> str | None:
    """Say why no further call may be reserved, None when one may.

    Args:
        budget: what is allowed.
        spending: what was asked so far.
        bound: the most that the call can cost, in millionths; None when nobody knows.
    """
    if spending.reserved_calls >= budget.max_calls:
        return f"all {budget.max_calls} judge calls of the budget are reserved"
    if spending.cost_bound_violations:
        return "a judge call cost more than its judge declared"
    if budget.max_cost_micros is None:
        return None
    charged = _sum(spending.accounted_cost_micros, bound)
    if charged is None:
        return "nobody knows what a judge call costs, and the budget limits the cost"
    if charged > budget.max_cost_micros:
        return f"another call could cost more than the budget's {budget.max_cost_micros} millionths"
    return None


def ask(judge: Judge, request: JudgeRequest, bound: int | None) -> Outcome:
    """Ask a judge once and say what came of it; what is raised leaves the outcome unknown."""
    try:
        reply = judge.evaluate(request)
    except BaseException as error:  # noqa: BLE001 - even SystemExit; this thread must go on
        return Outcome(UNKNOWN_OUTCOME, exception_type=type(error).__name__)
    return outcome_of(reply, bound)


def outcome_of(reply: object, bound: int | None) -> Outcome:
    """Sort a reply, whatever it is."""
    try:
        right = checked(reply)
        kept, cost = reply_json(right), right.actual_cost_micros
    except BaseException as error:  # noqa: BLE001 - and return anything
        return Outcome(
            INVALID_RESPONSE,
            reply=json.dumps({"returned": _shown(reply)}),
            exception_type=type(error).__name__,
        )
    is_over = cost is not None and bound is not None and cost > bound
    return Outcome(COST_BOUND_EXCEEDED if is_over else RESPONSE_SAVED, cost, kept)


def reply_json(reply: JudgeReply) -> str:
    """Write a reply as it is kept: in ASCII, since half a surrogate pair is no UTF-8.

    A `usage` that is nested without need is left out: it could not be read again everywhere.
    """
    usage = None if reply.usage is None else dict(reply.usage)
    kept = {
        "text": reply.text,
        "finish_reason": reply.finish_reason,
        "usage": usage if _depth(usage) <= _USAGE_DEPTH else None,
        "actual_cost_micros": reply.actual_cost_micros,
    }
    return json.dumps(kept, sort_keys=True)


def read_reply(saved: str) -> JudgeReply:
    """Read a reply that was kept."""
    kept: Mapping[str, Any] = json.loads(saved)
    return JudgeReply(**kept)


def _shown(reply: object) -> str:
    try:
        return repr(reply)[:_SHOWN_CHARS]
    except BaseException as error:  # noqa: BLE001 - of any behaviour
        return f"a {type(reply).__name__} whose repr raises {type(error).__name__}"


def _depth(value: object) -> int:
    """Count how deep objects and lists are nested, up to a little more than is kept."""
    level, depth = [value], 0
    while level and depth <= _USAGE_DEPTH:
        holders = [each for each in level if isinstance(each, dict | list)]
        depth += bool(holders)
        level = [
            inner
            for each in holders
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def _sum(charged: int | None, bound: int | None) -> int | None:
    return None if charged is None or bound is None else charged + bound
