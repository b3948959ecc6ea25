"""What only a person may do with the ledger: settle an unknown outcome, raise the budget.

Neither evaluates anything; the next `evaluate` takes up what has become possible.
"""

from pathlib import Path

from evaluators import ledger, rundir
from evaluators.canonical import is_utf8
from evaluators.errors import EvaluationRefusedError
from evaluators.ledger import Budget
from evaluators.store import calls, checks, evaluations
from evaluators.store.calls import Call
from evaluators.store.database import Connection, opened, transaction


def settle(directory: Path, call_id: str, reply: str | None, reason: str) -> Call:
    """Say what became of a judge call whose outcome is unknown; it is never sent again.

    Args:
        directory: the run directory.
        call_id: the call.
        reply: the raw text that the judge gave, found in its provider's log for example; None
            when it gave none.
        reason: how this was found out.

    Raises EvaluationRefusedError for any other call, RunError, LockedRunError, CorruptRunError.
    """
    _check_reason(reason)
    with rundir.locked(directory), opened(directory, write=True) as connection:
        _check(connection, directory)
        with transaction(connection):
            calls.abandon(connection)
            call = calls.of_id(connection, call_id)
            if call is None:
                raise EvaluationRefusedError(f"{directory} has no judge call {call_id}")
            if call.status != ledger.UNKNOWN_OUTCOME:
                raise EvaluationRefusedError(
                    f"the outcome of {call_id} is known: {call.status}; nothing to settle"
                )
            return calls.settle(connection, call, ledger.settled(reply), reason)


def raise_budget(
    directory: Path, reason: str, *, max_calls: int, max_cost_micros: int | None = None
) -> tuple[Budget, Budget]:
    """Raise the budget of a run; return what it was and what it is.

    Args:
        directory: the run directory.
        reason: why; kept, with both values.
        max_calls: judge calls of the whole run, those made already included.
        max_cost_micros: the limit in money, in millionths; None leaves it as it is.

    Raises EvaluationRefusedError when nothing is frozen yet or anything would be lowered,
    RunError, LockedRunError, CorruptRunError.
    """
    _check_reason(reason)
    with rundir.locked(directory), opened(directory, write=True) as connection:
        _check(connection, directory)
        before = calls.budget(connection)
        if before is None:
            raise EvaluationRefusedError("the run has no budget yet: the first judged one sets it")
        cost = before.max_cost_micros if max_cost_micros is None else max_cost_micros
        after = Budget(max_calls, cost)
        _refuse_lower(before, after)
        with transaction(connection):
            calls.raise_budget(connection, after, reason)
    return before, after


def _check(connection: Connection, directory: Path) -> None:
    checks.verify(connection)
    if not evaluations.exist(connection):
        raise EvaluationRefusedError(f"{directory} was never evaluated")


def _check_reason(reason: str) -> None:
    if not reason.strip() or not is_utf8(reason):
        raise EvaluationRefusedError("the reason must be text, and not blank")


def _refuse_lower(before: Budget, after: Budget) -> None:
    least = before.max_cost_micros
    is_lower = after.max_cost_micros is not None and (
        least is None or after.max_cost_micros < least
    )
    if after.max_calls < before.max_calls or is_lower:
        raise EvaluationRefusedError(
            f"a budget can be raised, not lowered: it is {before.in_words()}"
        )
    if after == before:
        raise EvaluationRefusedError(f"the budget is {before.in_words()} already")
