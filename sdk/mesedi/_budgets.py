"""What an execution may use up, for callers who want it ended when it does. An opt-in."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from mesedi.errors import MesediHalt

REMOTE = "remote_signal"
_WALL_CLOCK = "wall_clock"
_STEPS = "step_count"
_TOKENS = "token_total"


@dataclass(frozen=True)
class Budget:
    """Limits of one execution: reaching one raises `MesediHalt` at the next halt-safe point.

    Halt-safe points are `checkpoint`, `record_answer` and every `emit_…`. Steps are the calls of
    these; tokens are those of `llm_call` events. With `remote_halt` the server's halt counts too.
    """

    max_wall_clock_seconds: float | None = None
    max_steps: int | None = None
    max_tokens_in: int | None = None
    max_tokens_out: int | None = None
    remote_halt: bool = True


class Meter:
    """What one execution has used of its budget, and of the budget around it."""

    def __init__(
        self,
        budget: Budget,
        around: "Meter | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget
        self._around = around
        self._clock = clock
        self._began = clock()
        self._steps = 0
        self._tokens_in = 0
        self._tokens_out = 0
        self._halt_reason: str | None = None

    def step(self) -> None:
        """Count a step, unless a limit is reached.

        Raises:
            MesediHalt: one is, or the server said halt.
        """
        trigger = self._trigger()
        if trigger is not None:
            raise MesediHalt(trigger, self._halt_reason or "", self)
        if self._around is not None:
            self._around.step()
        self._steps += 1

    def spend(self, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of one call of a model."""
        if self._around is not None:
            self._around.spend(tokens_in, tokens_out)
        self._tokens_in += tokens_in
        self._tokens_out += tokens_out

    def halt(self, reason: str) -> None:
        """Let the next step raise; from any thread."""
        self._halt_reason = reason

    def _trigger(self) -> str | None:
        budget = self._budget
        if self._halt_reason is not None:
            return REMOTE
        if _reached(self._clock() - self._began, budget.max_wall_clock_seconds):
            return _WALL_CLOCK
        if _reached(self._steps, budget.max_steps):
            return _STEPS
        spent_in = _reached(self._tokens_in, budget.max_tokens_in)
        spent_out = _reached(self._tokens_out, budget.max_tokens_out)
        return _TOKENS if spent_in or spent_out else None


def _reached(used: float, limit: float | None) -> bool:
    return limit is not None and used >= limit
