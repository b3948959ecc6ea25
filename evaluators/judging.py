"""Asking judges, several at once: reserve, send, save the reply, then read it.

One thread, the caller's, talks to the ledger; the others do nothing but wait for the judge. So a
reply is saved by the same hand that reserved its call, whatever the number of calls at once.
"""

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Generic, NamedTuple, Self, TypeVar

from evaluators import ledger
from evaluators.errors import EvaluationRefusedError
from evaluators.judges import Judge, JudgeRequest
from evaluators.ledger import Budget, Outcome
from evaluators.store import calls
from evaluators.store.calls import Call
from evaluators.store.database import Connection, transaction

_Waiting = TypeVar("_Waiting")


class Answered(NamedTuple, Generic[_Waiting]):
    """A finished call and who waited for it; without a call, why none was made."""

    waiting: _Waiting
    call: Call | None
    reason: str | None = None


class Asking(Generic[_Waiting]):
    """The judge calls of one evaluation.

    Calls that an earlier process left behind are ended first. When something goes wrong inside,
    the replies under way are saved all the same; an interruption waits for none.

    Args:
        connection: the run, open for writing, with a budget.
        judge: what is asked; its contract must not change meanwhile.
        concurrency: calls under way at once.
        before_reserving: called inside the transaction that reserves a call, to store what waits.
        stop: once it is asked for, nothing more is sent.
    """

    def __init__(
        self,
        connection: Connection,
        judge: Judge,
        concurrency: int,
        before_reserving: Callable[[], None],
        stop: "Stop",
    ) -> None:
        self._connection = connection
        self._stop = stop
        self._judge = judge
        self._budget = calls.budget(connection) or Budget(0)
        self._before_reserving = before_reserving
        self._contract = judge.contract
        self._bound = self._contract.max_cost_micros_per_call
        self._judge_json = ledger.contract_json(self._contract)
        self._pool = _Pool(judge, self._bound, concurrency)
        self._under_way: dict[str, tuple[Call, list[_Waiting]]] = {}
        self._answered: deque[Answered[_Waiting]] = deque()
        if calls.running(connection):
            with transaction(connection):
                calls.abandon(connection)
        self._spending = calls.spending(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):
            while self._under_way:
                self._take()

    def ask(self, waiting: _Waiting, request: JudgeRequest) -> Iterator[Answered[_Waiting]]:
        """Ask, or take what is known already; yield whatever has been answered by now.

        Blocks while all calls that may be under way are.
        """
        text = ledger.request_json(request)
        key = ledger.cache_key(text, self._judge_json)
        if key in self._under_way:
            self._under_way[key][1].append(waiting)
        elif (known := calls.of_key(self._connection, key)) is not None:
            self._answered.append(Answered(waiting, known))
        else:
            self._reserve(waiting, request, text, key)
        yield from self._given()

    def finish(self) -> Iterator[Answered[_Waiting]]:
        """Wait for every call under way and yield what was answered."""
        while self._under_way:
            self._take()
        self._check_contract()
        yield from self._given()

    def _given(self) -> Iterator[Answered[_Waiting]]:
        while self._answered:
            yield self._answered.popleft()

    def _reserve(self, waiting: _Waiting, request: JudgeRequest, text: str, key: str) -> None:
        while self._pool.is_full or self._pool.has_answer:
            self._take()
        # What is under way may cost less than was reserved for it: only then is it known.
        while (reason := self._blocked()) and self._under_way:
            self._take()
        if reason is not None:
            self._answered.append(Answered(waiting, None, reason))
            return
        if self._stop.is_asked:
            return
        self._check_contract()
        with transaction(self._connection):
            self._before_reserving()
            call = calls.reserve(self._connection, self._judge_json, text, self._bound)
        self._spending = self._spending.with_reservation(self._bound)
        self._under_way[key] = (call, [waiting])
        self._pool.send(key, request)

    def _take(self) -> None:
        """Wait for one reply and save it before anybody reads it."""
        key, outcome = self._pool.take()
        call, all_waiting = self._under_way[key]
        with transaction(self._connection):
            ended = calls.finish(self._connection, call, outcome)
        del self._under_way[key]
        self._spending = self._spending.with_outcome(self._bound, outcome)
        self._answered.extend(Answered(waiting, ended) for waiting in all_waiting)

    def _blocked(self) -> str | None:
        return ledger.blocked(self._budget, self._spending, self._bound)

    def _check_contract(self) -> None:
        if self._judge.contract != self._contract:
            raise EvaluationRefusedError("the judge's contract changed while it was asked")


class _Pool:
    """Threads that wait for a judge. They hold up no exit of the process."""

    def __init__(self, judge: Judge, bound: int | None, size: int) -> None:
        self._judge = judge
        self._bound = bound
        self._size = size
        self._threads = 0
        self._busy = 0
        self._requests: SimpleQueue[tuple[str, JudgeRequest]] = SimpleQueue()
        self._outcomes: SimpleQueue[tuple[str, Outcome]] = SimpleQueue()

    @property
    def is_full(self) -> bool:
        return self._busy >= self._size

    @property
    def has_answer(self) -> bool:
        return not self._outcomes.empty()

    def send(self, key: str, request: JudgeRequest) -> None:
        self._busy += 1
        if self._threads < self._busy:
            self._threads += 1
            threading.Thread(target=self._work, name="judge", daemon=True).start()
        self._requests.put((key, request))

    def take(self) -> tuple[str, Outcome]:
        answered = self._outcomes.get()
        self._busy -= 1
        return answered

    def _work(self) -> None:
        while True:
            key, request = self._requests.get()
            self._outcomes.put((key, ledger.ask(self._judge, request, self._bound)))


class Stop:
    """Whether a person has asked to stop; true once Ctrl-C was pressed inside `on_interrupt`."""

    def __init__(self) -> None:
        self.is_asked = False


@contextmanager
def on_interrupt() -> Iterator[Stop]:
    """Take the first Ctrl-C as a wish to stop after what is under way; the second interrupts.

    At the end KeyboardInterrupt is raised all the same. Outside the main thread, where no signal
    arrives, nothing changes.
    """
    stop = Stop()

    def asked(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.is_asked:
            raise KeyboardInterrupt
        stop.is_asked = True

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, asked)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.is_asked:
        raise KeyboardInterrupt
