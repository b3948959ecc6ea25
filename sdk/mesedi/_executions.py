"""An execution: one run of a pipeline, which the events inside it belong to."""

import contextlib
import functools
import itertools
import os
import sys
import time
import uuid
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import ParamSpec, TypeVar

from mesedi import _client
from mesedi._budgets import Budget, Meter
from mesedi._crashes import crash_signature
from mesedi._guard import harmless
from mesedi._halt_stream import HaltStream
from mesedi._pieces import Ending, Observation, Start
from mesedi._plain import printed
from mesedi.errors import MesediHalt

_P = ParamSpec("_P")
_R = TypeVar("_R")
_current: ContextVar["Execution | None"] = ContextVar("mesedi_execution", default=None)


class Execution:
    """What `execution()` answers: a context manager, for `with` and `async with`."""

    def __init__(
        self,
        execution_id: str,
        labels: dict[str, str],
        declarations: dict[str, dict[str, str]] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.id = execution_id
        """The id to attach later scores to, from any process."""
        self.next_sequence = itertools.count(1).__next__
        self.meter: Meter | None = None
        """What was used of the budget, of this execution's own or of the one around it."""
        self._budget = budget
        self._halts: HaltStream | None = None
        self._labels = labels
        self._declarations = declarations or {}
        self._tokens: list[Token[Execution | None]] = []
        self._began = 0.0
        self._pid = 0

    def __enter__(self) -> "Execution":  # noqa: PYI034 - Self came with 3.11
        self.start()
        self.enter()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.leave()
        self.end(error)

    async def __aenter__(self) -> "Execution":  # noqa: PYI034 - as above
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    @harmless
    def start(self) -> None:
        """Report the start."""
        self._pid = os.getpid()
        self._began = time.monotonic()
        parent = _current.get()
        labels = dict(self._labels)
        if parent is not None and "parent_execution_id" not in labels:
            labels["parent_execution_id"] = parent.id
        client = _client.current()
        if client is not None:
            labels = {**client.settings.labels, **labels}
            client.put(Start(client.ids.take(), self.id, time.time(), labels))
            for kind, payload in self._declarations.items():
                number, sequence, now = client.ids.take(), self.next_sequence(), time.time()
                client.put(Observation(number, self.id, sequence, now, kind, {**payload}, 0, None))
        self._begin_to_measure(parent, client)

    def _begin_to_measure(self, parent: "Execution | None", client: _client.Client | None) -> None:
        self.meter = parent.meter if parent is not None else None
        if self._budget is None:
            return
        self.meter = Meter(self._budget, self.meter)
        if self._budget.remote_halt and client is not None:
            self._halts = HaltStream(client.settings, self.id, self.meter.halt)
            self._halts.open()

    def owns(self, halt: MesediHalt) -> bool:
        """Tell whether it is this execution's own budget that ended."""
        return self._budget is not None and halt.meter is self.meter

    @harmless
    def end(self, error: BaseException | None) -> None:
        """Report the end; a forked child leaves that to the process that started it."""
        if os.getpid() != self._pid:
            return
        if self._halts is not None:
            self._halts.close()
        status, signature = _outcome(error)
        client = _client.current()
        if client is not None:
            took_ms = max(0, round((time.monotonic() - self._began) * 1000))
            number = client.ids.take()
            client.put(Ending(number, self.id, time.time(), status, took_ms, signature))

    def enter(self) -> None:
        """Make this the execution that events belong to, in the current context."""
        self._tokens.append(_current.set(self))

    def leave(self) -> None:
        """Go back to the execution around it."""
        # A generator may finish in another context than it began in: nothing to go back to.
        with contextlib.suppress(ValueError, IndexError):
            _current.reset(self._tokens.pop())


def execution(
    execution_id: str | None = None,
    *,
    tenant_id: str | None = None,
    release: str | None = None,
    environment: str | None = None,
    parent_execution_id: str | None = None,
    agent_name: str | None = None,
    execution_mode: str | None = None,
    budget: Budget | None = None,
) -> Execution:
    """Begin an execution: `with mesedi.execution() as run:` or `async with`.

    Everything emitted inside belongs to it. An exception ends it as crashed and goes on. An
    execution inside another one tells the server its parent.

    Args:
        execution_id: your own id; default: a new one.
        tenant_id: your customer.
        release: your version; default: what `configure` was told.
        environment: such as `production`; default: what `configure` was told.
        parent_execution_id: default: the execution around this one.
        agent_name: which agent it is; an `agent_declaration` event says it.
        execution_mode: such as `live` or `replay`; an `environment_declaration` event says it.
        budget: limits that end it: its halt-safe points raise `MesediHalt` then. Without one
            nothing is ever raised.
    """
    labels = {
        "tenant_id": tenant_id,
        "release": release,
        "environment": environment,
        "parent_execution_id": parent_execution_id,
    }
    declarations = _declarations(agent_name, execution_mode)
    return Execution(_named(execution_id), _client.given(labels), declarations, budget)


def current_execution() -> Execution | None:
    """Answer the execution that an event emitted here would belong to."""
    return _current.get()


def step() -> None:
    """Pass a halt-safe point.

    Raises:
        MesediHalt: the current execution has a budget, and it has ended.
    """
    run = _current.get()
    if run is not None and run.meter is not None:
        run.meter.step()


def carry(func: Callable[_P, _R]) -> Callable[_P, _R]:
    """Take the current execution along into another thread: `pool.submit(mesedi.carry(work))`."""
    run = _current.get()

    @functools.wraps(func)
    def carried(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        token = _current.set(run)
        try:
            return func(*args, **kwargs)
        finally:
            _current.reset(token)

    return carried


def _declarations(agent_name: object, execution_mode: object) -> dict[str, dict[str, str]]:
    told = {
        "agent_declaration": {"agent_name": printed(agent_name).strip()},
        "environment_declaration": {"mode": printed(execution_mode).strip().lower()},
    }
    return {kind: payload for kind, payload in told.items() if any(payload.values())}


def _named(execution_id: object) -> str:
    return printed(execution_id) or f"exec-{uuid.uuid4().hex}"


def _outcome(error: BaseException | None) -> tuple[str, str | None]:
    """Answer the terminal status, and what it is grouped by."""
    if error is None or isinstance(error, GeneratorExit):
        return "completed", None
    if isinstance(error, MesediHalt):
        return "halted", f"halt:{error.trigger}"
    if isinstance(error, SystemExit) and not error.code:
        return "completed", None
    if isinstance(error, KeyboardInterrupt) or _is_cancellation(error):
        return "halted", "halt:cancelled"
    return "crashed", crash_signature(error)


def _is_cancellation(error: BaseException) -> bool:
    # Who has not imported asyncio has no cancelled task, and need not pay for the import.
    module = sys.modules.get("asyncio.exceptions")
    return module is not None and isinstance(error, module.CancelledError)
