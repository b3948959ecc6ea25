"""Any Python function as a judge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from evaluators.canonical import digest
from evaluators.errors import FactoryError
from evaluators.judges import JudgeContract, JudgeReply, JudgeRequest

Ask: TypeAlias = Callable[[str, str], str | JudgeReply]
"""Takes the system text and the prompt; returns what the model answered."""


@dataclass(frozen=True, slots=True)
class FunctionJudge:
    """A judge that asks a function."""

    contract: JudgeContract
    function: Ask

    def evaluate(self, request: JudgeRequest) -> JudgeReply:
        """Ask once. Text alone counts as a whole reply of unknown cost."""
        reply = self.function(request.system, request.prompt)
        if isinstance(reply, str):
            return JudgeReply(reply)
        return reply  # whatever else it is, the ledger refuses it


def from_function(
    function: Ask,
    model: str,
    configuration_digest: str | None = None,
    max_cost_micros_per_call: int | None = None,
) -> FunctionJudge:
    """Make a judge of a function `(system, prompt)` that returns text or a `JudgeReply`.

    Args:
        function: asks a model exactly once; called from several threads under `--concurrency`.
        model: name of the model behind it.
        configuration_digest: 64 hexadecimal digits over everything that shapes the verdicts. The
            default covers the function's name, not what it does: give one that changes with it.
        max_cost_micros_per_call: the most that a call can cost; None when nobody knows.

    Raises FactoryError.
    """
    if not callable(function):
        raise FactoryError("the judge's function cannot be called")
    if configuration_digest is None:
        configuration_digest = digest({"adapter": "function", "function": _name(function)})
    contract = JudgeContract(
        model=model,
        configuration_digest=configuration_digest,
        max_cost_micros_per_call=max_cost_micros_per_call,
    )
    return FunctionJudge(contract, function)


def _name(function: Ask) -> str:
    """Name a function; one that is an object has the name of its class."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
