"""The process's client: `configure`, `flush`, `stats`, and what happens at fork and at exit."""

import atexit
import functools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from mesedi._guard import harmless, say_once, say_stumbled
from mesedi._ids import Ids
from mesedi._pieces import Piece
from mesedi._plain import printed
from mesedi._processes import at_child_exit
from mesedi._sampling import Sampling
from mesedi._settings import DEFAULT_BASE_URL, Settings, from_environment
from mesedi._shipper import Shipper
from mesedi._tally import Counts, Stats, total
from mesedi.errors import ConfigurationError, MesediHalt

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Client:
    """One connection to one project: its settings, its ids and its background sender."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ids = Ids()
        self.shipper = Shipper(settings, self.ids)
        self.put: Callable[[Piece], None] = self.shipper.put
        self.sampling = Sampling(settings.sample_rates) if settings.sample_rates else None

    def flush(self, timeout: float = 5.0) -> int:
        """Wait up to `timeout` seconds; answers how much is left undelivered (0: nothing)."""
        return self.shipper.flush(timeout)

    def stats(self) -> Stats:
        """Answer what became of this client's events."""
        return self.shipper.stats()

    def close(self, timeout: float | None = None) -> int:
        """Deliver what fits into `timeout` seconds (default: the exit budget) and end.

        Answers the number of events that were lost by it.
        """
        wait = self.settings.exit_timeout_s if timeout is None else timeout
        return self.shipper.close(time.monotonic() + wait)


_lock = threading.RLock()
_current: Client | None = None
_retired: list[Client] = []
_unconfigured = False
# Events emitted while nothing was configured, by reason.
_unsent: Counter[str] = Counter()
_NOT_CONFIGURED = "not configured"


def configure(
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float = 10.0,
    flush_interval_ms: int = 250,
    batch_size: int = 100,
    *,
    max_queue: int = 25_000,
    max_queue_bytes: int = 64 * 1024 * 1024,
    batch_bytes: int = 1_000_000,
    exit_timeout: float = 1.8,
    max_backoff: float = 30.0,
    max_event_bytes: int = 32_768,
    max_answer_bytes: int = 2 * 1024 * 1024,
    before_send: Callable[[dict[str, Any]], Mapping[str, Any] | None] | None = None,
    sample_rates: Mapping[str, float] | None = None,
    spool: str | os.PathLike[str] | None = None,
    max_spool_bytes: int = 256 * 1024 * 1024,
    release: str | None = None,
    environment: str | None = None,
    tenant_id: str | None = None,
) -> Client:
    """Say where events go. The only call of the SDK that may raise.

    A second call sends what is still waiting to the first address, and all that follows to
    the new one.

    Args:
        api_key: starts with `mesedi_sk_`; default: the environment's `MESEDI_API_KEY`.
        base_url: default: `MESEDI_BASE_URL`, else `http://127.0.0.1:8080`.
        timeout: seconds for one request.
        flush_interval_ms: the longest that an event waits for others to share its request.
        batch_size: events in one request, at most.
        max_queue: events that may wait, at most; what comes on top is dropped and counted.
        max_queue_bytes: the same in bytes of text.
        batch_bytes: bytes of one request before compression, roughly.
        exit_timeout: seconds that the end of the process may take to send the rest.
        max_backoff: seconds between two attempts, at most, while the server is in trouble.
        max_event_bytes: of one event's payload as JSON; the longest texts of a bigger one are
            cut, and it says so.
        max_answer_bytes: the same for `answer` events (see `record_answer`).
        before_send: sees each event as it would leave and answers it, with another `payload`
            if it likes, or None to keep it here. It runs on the sender's thread, again when an
            event is tried again; if it fails, the event is dropped.
        sample_rates: by evaluator, the share (0 to 1) of executions whose scores are sent; the
            event says the rate.
        spool: a folder for what could not be sent when the process ends: the next process
            that is configured with it, the same server and the same key sends it. Default:
            `MESEDI_SPOOL`, else none.
        max_spool_bytes: how big the folder may become.
        release: your version, kept with each execution; default: `MESEDI_RELEASE`.
        environment: such as `production`; default: `MESEDI_ENVIRONMENT`.
        tenant_id: your customer, where one process serves only one.

    Raises:
        ConfigurationError: a setting is missing or cannot be used.
    """
    labels = {
        "release": from_environment("RELEASE", release),
        "environment": from_environment("ENVIRONMENT", environment),
        "tenant_id": tenant_id,
    }
    key = from_environment("API_KEY", api_key)
    if key is None:
        raise ConfigurationError("no API key: pass api_key or set MESEDI_API_KEY")
    folder = from_environment("SPOOL", None if spool is None else os.fspath(spool))
    return _install(
        Settings(
            api_key=key,
            base_url=(from_environment("BASE_URL", base_url) or DEFAULT_BASE_URL).rstrip("/"),
            timeout_s=timeout,
            flush_interval_s=_seconds(flush_interval_ms),
            batch_size=batch_size,
            batch_bytes=batch_bytes,
            max_queue=max_queue,
            max_queue_bytes=max_queue_bytes,
            exit_timeout_s=exit_timeout,
            max_backoff_s=max_backoff,
            max_event_bytes=max_event_bytes,
            max_answer_bytes=max_answer_bytes,
            before_send=before_send,
            sample_rates=dict(sample_rates or {}),
            spool=None if folder is None else Path(folder),
            max_spool_bytes=max_spool_bytes,
            labels=given(labels),
        )
    )


def _seconds(milliseconds: float) -> float:
    if not isinstance(milliseconds, int | float):
        raise ConfigurationError("flush_interval_ms must be a number")
    return milliseconds / 1000


def capture() -> tuple[Client, list[Piece]]:
    """Take what is emitted from now on into a list instead of sending it anywhere."""
    pieces: list[Piece] = []
    client = _install(Settings(api_key="mesedi_sk_nowhere"))
    client.put = pieces.append
    return client, pieces


def current() -> Client | None:
    """Answer the client in force; without one, try the environment once."""
    return _current if _current is not None else _from_environment()


def count_lost(reason: str) -> None:
    """Count an event that never became a piece."""
    if _current is not None:
        _current.shipper.drop(reason)
        return
    with _lock:
        _unsent[reason] += 1
    if reason == _NOT_CONFIGURED:
        say_once(reason, "mesedi is not configured: events are dropped. Set MESEDI_API_KEY")


def for_emitting() -> Client | None:
    """Answer the client in force; without one the event is counted as lost."""
    client = _current if _current is not None else _from_environment()
    if client is None:
        count_lost(_NOT_CONFIGURED)
    return client


def emitter(func: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """Make `func` harmless, and count what it could not send."""

    @functools.wraps(func)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        try:
            return func(*args, **kwargs)
        except MesediHalt:
            raise  # asked for, by the execution's budget
        except Exception as error:  # noqa: BLE001 - this is the promise of the whole package
            say_stumbled(func, error)
            count_lost("error in the call")
            return None

    return guarded


@harmless
def _flush(timeout: float) -> int:
    deadline = time.monotonic() + timeout
    with _lock:
        clients = [*_retired, *([_current] if _current else [])]
    return sum(client.flush(max(0.0, deadline - time.monotonic())) for client in clients)


def flush(timeout: float = 5.0) -> int:
    """Wait up to `timeout` seconds until everything emitted so far is settled.

    Answers how many events and reports of executions are left undelivered: 0 says that the
    server has acknowledged (or refused for good, see `stats`) all of them.
    """
    return _flush(timeout) or 0


def stats() -> Stats:
    """Answer what became of the events of this process since it started (or forked)."""
    with _lock:
        clients = [*_retired, *([_current] if _current else [])]
        unsent = Counts(dropped=dict(_unsent))
    parts = [client.stats() for client in clients]
    events = total([unsent, *_finished_events, *parts])
    executions = total([*_finished_executions, *(part.executions for part in parts)])
    return Stats(**vars(events), executions=executions)


def given(labels: Mapping[str, object]) -> dict[str, str]:
    """Copy the labels that are there, as text; what cannot be printed is none."""
    return {name: shown for name, value in labels.items() if (shown := printed(value))}


_finished_events: list[Counts] = []
_finished_executions: list[Counts] = []


def _install(settings: Settings) -> Client:
    global _current  # noqa: PLW0603 - the process has one client
    client = Client(settings)
    client.shipper.send_leftovers()
    with _lock:
        if _current is None:
            at_child_exit(_at_exit)
        else:
            _current.shipper.retire()
            _retired.append(_current)
        _forget_finished()
        _current = client
        return client


def _forget_finished() -> None:
    """Keep only the counts of retired clients that have sent everything."""
    for client in [client for client in _retired if client.shipper.is_done]:
        _retired.remove(client)
        last = client.stats()
        _finished_events[:] = [total([*_finished_events, last])]
        _finished_executions[:] = [total([*_finished_executions, last.executions])]


def _from_environment() -> Client | None:
    global _unconfigured  # noqa: PLW0603 - asked once
    with _lock:
        if _current is not None or _unconfigured:
            return _current
        try:
            return configure()
        except ConfigurationError:
            _unconfigured = True
            return None


@atexit.register
@harmless
def _at_exit() -> None:
    clients = [*_retired, *([_current] if _current else [])]
    if not clients:
        return
    stop_at = time.monotonic() + min(client.settings.exit_timeout_s for client in clients)
    lost = sum(client.shipper.close(stop_at) for client in clients)
    saved = sum(client.stats().spooled for client in clients)
    if saved:
        say_once("spooled", "mesedi: %d events wait in the spool folder", saved)
    if lost:
        say_once("exit", "mesedi: %d events could not be delivered before the exit", lost)


@harmless
def _after_fork() -> None:
    """Give a forked child a client of its own: the parent sends what is the parent's."""
    global _current, _lock  # noqa: PLW0603 - the child's own
    _lock = threading.RLock()
    inherited = [*_retired, *([_current] if _current else [])]
    _orphans.extend(inherited)
    for client in inherited:
        client.shipper.disown()
    _retired.clear()
    _finished_events.clear()
    _finished_executions.clear()
    _unsent.clear()
    _current = Client(_current.settings) if _current else None
    at_child_exit(_at_exit)


# Never collected: a lock inside may be held for ever by a thread that only the parent has.
_orphans: list[Client] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
