"""Asking judges: reserve, send, save the reply, read it, store the assessment; each step a transaction of its own.

One thread talks to the database; the others do nothing but wait for judges. Whatever dies in between is found in the
ledger: a saved reply is read, a call that was under way is never sent again.
"""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

from evaluators import ledger
from evaluators.adapters import OpenAIChat
from evaluators.adapters.errors import JudgeCallError
from evaluators.errors import FactoryError
from evaluators.judges import Judge, JudgeRequest
from evaluators.ledger import UNKNOWN_OUTCOME, Budget, Outcome, Spending
from mesedi_server import sealing, verdicts
from mesedi_server.assessing import answer_digest
from mesedi_server.errors import UnavailableError
from mesedi_server.schemas.judges import MAX_REPLY_BYTES
from mesedi_server.sealing import NoSecretKeyError, WrongSecretKeyError
from mesedi_server.store import (
    assessments,
    judge_calls,
    judge_scores,
    judge_settings,
    judge_work,
    projects,
)
from mesedi_server.store.assessments import FAITHFULNESS, AssessmentRow
from mesedi_server.store.database import Connection, Database, savepoint
from mesedi_server.store.judge_calls import Call, Spent
from mesedi_server.store.judge_settings import JudgeSettings
from mesedi_server.store.judge_work import Waiting
from mesedi_server.verdicts import Conclusion, Question

logger = logging.getLogger(__name__)

TIMEOUT_S = 60.0
"""Seconds that a judge has for a whole reply."""
ABANDON_S = 300.0
"""A call that has been under way so long has lost its process: far longer than TIMEOUT_S and than saving may take."""
FIRST_PAUSE_S = 15.0
"""How long a judge is left alone that failed once; doubled with each failure in a row."""
LONGEST_PAUSE_S = 900.0
THREADS = 32
"""Calls under way at once in one process, of all projects."""

_LOOK_S = 0.5
_SAVE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    """How judges are asked."""

    secret_key: str
    """What opens their keys."""
    private_judges: bool = False
    """Whether they may be at private addresses."""
    timeout_s: float = TIMEOUT_S
    abandon_s: float = ABANDON_S
    first_pause_s: float = FIRST_PAUSE_S
    longest_pause_s: float = LONGEST_PAUSE_S


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A reserved call that is to be sent."""

    project_pk: int
    call_id: str
    cache_key: str
    judge: Judge
    request: JudgeRequest


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a call; `was_sent`: the judge may have seen it. `failed`: it brought no whole reply."""

    outcome: Outcome
    was_sent: bool = True
    failed: bool = False
    http_status: int | None = None


def key_context(project: projects.Project) -> str:
    """Name what the key of a project's judge is sealed for."""
    return f"judge of {project.project_id}"


def revision_of(settings: JudgeSettings | None) -> str:
    """Name the revision of assessments by a project's judge as it is set now; empty, which none has: there is none."""
    if settings is None:
        return ""
    try:
        judge = OpenAIChat(settings.url, settings.model)
    except FactoryError:
        return ""
    return verdicts.revision(ledger.contract_json(judge.contract))


def judge_all(
    database: Database,
    rules: Rules,
    *,
    threads: int = THREADS,
    must_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Ask judges until nothing waits that may be asked now.

    Args:
        database: an open database.
        rules: how they are asked.
        threads: calls under way at once.
        must_stop: tells whether no more calls are to be sent; those under way are waited for.

    Raises:
        UnavailableError: the database cannot be used; what is left waits.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="judge") as pool:
        under_way: dict[Future[Came], Dispatch] = {}
        while True:
            room = 0 if must_stop() else threads - len(under_way)
            is_busy, dispatches = _look(database, rules, room, has_calls=bool(under_way))
            under_way |= {pool.submit(_ask, dispatch): dispatch for dispatch in dispatches}
            if not under_way and not is_busy:
                return
            pause_s = 0 if is_busy or dispatches else _LOOK_S
            for ended in wait(under_way, pause_s, FIRST_COMPLETED).done:
                _save(database, rules, under_way.pop(ended), ended.result())


def why_not(settings: JudgeSettings, spent: Spent) -> str | None:
    """Say why no call of a project may be reserved now; None: one may.

    Returns:
        off, paused, busy, or the budget that has no room for one more: day, month, cost_per_day or cost_per_month.
    """
    if not settings.is_on:
        return "off"
    if used_up := _used_up(settings, spent):
        return used_up
    if settings.is_paused:
        return "paused"
    # A judge that failed is tried with one answer, not with several.
    at_once = 1 if settings.failing_since else settings.concurrency
    return "busy" if spent.under_way >= at_once else None


def _used_up(settings: JudgeSettings, spent: Spent) -> str | None:
    """Name the budget that has no room for one more call; one of a month before those of a day, which end sooner."""
    day = Spending(reserved_calls=spent.today, accounted_cost_micros=spent.cost_today_micros)
    month = Spending(
        reserved_calls=spent.this_month, accounted_cost_micros=spent.cost_this_month_micros
    )
    a_day, a_month = settings.calls_per_day, settings.calls_per_month
    budgets = (
        ("month", Budget(a_month), month),
        ("cost_per_month", Budget(a_month, settings.cost_per_month_micros), month),
        ("day", Budget(a_day), day),
        ("cost_per_day", Budget(a_day, settings.cost_per_day_micros), day),
    )
    bound = settings.cost_per_call_micros
    for name, budget, spending in budgets:
        if ledger.blocked(budget, spending, bound):
            return name
    return None


def _look(
    database: Database, rules: Rules, room: int, *, has_calls: bool
) -> tuple[bool, list[Dispatch]]:
    """Take the next step of each project; while calls are under way, no trouble keeps their replies from being saved.

    Returns:
        Whether there may be more to do at once, and what is to be sent.
    """
    dispatches: list[Dispatch] = []
    is_busy = False
    try:
        with database.transaction() as connection:
            judge_calls.abandon(connection, age_s=rules.abandon_s)
            waiting = judge_work.projects_that_wait(connection)
        for project_pk in waiting:
            is_busy |= _conclude_next(database, project_pk)
            step = len(dispatches) < room and _ask_next(database, rules, project_pk)
            if isinstance(step, Dispatch):
                dispatches.append(step)
            else:
                is_busy |= step
    except Exception as error:
        if not has_calls and not dispatches:
            raise
        is_away = isinstance(error, UnavailableError)
        logger.warning("judges are left alone for now: %s", error, exc_info=not is_away)
        return False, dispatches
    return is_busy, dispatches


def _conclude_next(database: Database, project_pk: int) -> bool:
    """Read the reply of an answer whose call has ended; False: there is none."""
    with database.transaction() as connection:
        settings = judge_settings.of_project(connection, project_pk)
        waiting = judge_work.next_answered(connection, project_pk)
        if settings is None or waiting is None:
            return False
        with _putting_off(connection, waiting):
            _conclude(connection, settings, waiting)
    return True


def _ask_next(database: Database, rules: Rules, project_pk: int) -> Dispatch | bool:
    """Reserve a call for the next answer; True: it needed none. False: none may be reserved, or none waits."""
    with database.transaction() as connection:
        settings = judge_settings.locked(connection, project_pk)
        if settings is None or why_not(settings, judge_calls.spent(connection, project_pk)):
            return False
        waiting = judge_work.next_unasked(connection, project_pk)
        if waiting is None:
            return False
        try:
            judge = _judge(connection, settings, rules)
        except (FactoryError, NoSecretKeyError, WrongSecretKeyError) as error:
            _note_failure(connection, rules, project_pk, type(error).__name__)
            return False
        step: Dispatch | bool = True
        with _putting_off(connection, waiting):
            step = _take_up(connection, settings, waiting, judge)
    return step


def _judge(connection: Connection, settings: JudgeSettings, rules: Rules) -> Judge:
    """Make a project's judge.

    Raises:
        FactoryError: its settings make none.
        NoSecretKeyError, WrongSecretKeyError: its key cannot be read.
    """
    key = None
    if settings.key_ciphertext is not None:
        context = key_context(projects.get(connection, settings.project_pk))
        key = sealing.unseal(rules.secret_key, settings.key_ciphertext, context)
    return OpenAIChat(
        settings.url,
        settings.model,
        api_key=key,
        timeout_s=rules.timeout_s,
        max_reply_bytes=MAX_REPLY_BYTES,
        is_public=not rules.private_judges,
    )


def _take_up(
    connection: Connection, settings: JudgeSettings, waiting: Waiting, judge: Judge
) -> Dispatch | bool:
    """Reserve the call that an answer needs; True: it needs none of its own."""
    found = _read(connection, waiting)
    judge_json = ledger.contract_json(judge.contract)
    revision = verdicts.revision(judge_json)
    if found is None or _known(connection, waiting) == (revision, found[1]):
        judge_work.done(connection, waiting)
        return True
    asked, seen = found
    if isinstance(asked, Conclusion):
        _store(connection, settings.project_pk, waiting, seen, asked, revision=revision)
        return True
    request = asked.request()
    text = ledger.request_json(request)
    key = ledger.cache_key(text, judge_json)
    judge_work.set_key(connection, waiting, key)
    if judge_calls.of_key(connection, settings.project_pk, key) is not None:
        return True
    call_id = judge_calls.reserve(
        connection,
        settings.project_pk,
        judge_json,
        text,
        waiting,
        bound_micros=settings.cost_per_call_micros,
    )
    return Dispatch(settings.project_pk, call_id, key, judge, request)


def _conclude(connection: Connection, settings: JudgeSettings, waiting: Waiting) -> None:
    """Store what a finished call means for an answer, unless the answer has changed since."""
    found = _read(connection, waiting)
    if found is None:
        judge_work.done(connection, waiting)
        return
    asked, seen = found
    call = judge_calls.of_key(connection, settings.project_pk, waiting.cache_key or "")
    conclusion = call and _conclusion(asked, call, settings.min_correctness)
    if call and conclusion:
        revision = verdicts.revision(call.judge)
        _store(connection, settings.project_pk, waiting, seen, conclusion, revision=revision)
    elif (known := _known(connection, waiting)) and known[1] == seen:
        # Whichever judge it was: nobody has said that the present one is to be asked about it, too.
        judge_work.done(connection, waiting)
    else:
        judge_work.set_key(connection, waiting, None)


def _conclusion(
    asked: Question | Conclusion, call: Call, min_correctness: int
) -> Conclusion | None:
    """Say what a finished call means for an answer; None: the call was about another wording of it."""
    if isinstance(asked, Conclusion):
        return asked
    if ledger.cache_key(ledger.request_json(asked.request()), call.judge) != call.cache_key:
        return None
    return verdicts.conclude(asked, call, min_correctness)


def _read(connection: Connection, waiting: Waiting) -> tuple[Question | Conclusion, bytes] | None:
    """Read an answer and its digest; None: there is none any more, or nothing that anybody could read."""
    payload = judge_work.payload_of(connection, waiting)
    if not isinstance(payload, dict):
        return None
    return verdicts.question(payload), answer_digest(payload)


def _known(connection: Connection, waiting: Waiting) -> tuple[str, bytes] | None:
    """Read by which revision, and in which wording, the answer was judged last; None: it never was."""
    pk = waiting.execution_pk
    return assessments.digests(connection, [pk], FAITHFULNESS).get((pk, waiting.answer_id))


def _store(
    connection: Connection,
    project_pk: int,
    waiting: Waiting,
    seen: bytes,
    conclusion: Conclusion,
    *,
    revision: str,
) -> None:
    row = AssessmentRow(
        project_pk=project_pk,
        execution_pk=waiting.execution_pk,
        answer_id=waiting.answer_id,
        answer_digest=seen,
        evaluator=FAITHFULNESS,
        revision=revision,
        outcome=conclusion.outcome,
        reason=conclusion.reason,
        content=conclusion.content(),
    )
    assessments.put(connection, [row])
    judge_scores.write(
        connection, project_pk, waiting.execution_pk, waiting.answer_id, conclusion.scores()
    )
    judge_work.done(connection, waiting)


@contextmanager
def _putting_off(connection: Connection, waiting: Waiting) -> Iterator[None]:
    """Do something for an answer; one that cannot be dealt with holds up no other, and is logged."""
    try:
        with savepoint(connection):
            yield
    except UnavailableError:
        raise
    except Exception:
        judge_work.put_off(connection, waiting)
        logger.exception("an answer of execution %s cannot be judged", waiting.execution_id)


def _ask(dispatch: Dispatch) -> Came:
    """Ask once; runs in a thread of its own."""
    try:
        reply = dispatch.judge.evaluate(dispatch.request)
    except JudgeCallError as error:
        outcome = Outcome(UNKNOWN_OUTCOME, exception_type=type(error).__name__)
        return Came(outcome, error.was_sent, failed=True, http_status=error.status)
    except Exception as error:  # noqa: BLE001 - as the ledger's own rule
        return Came(Outcome(UNKNOWN_OUTCOME, exception_type=type(error).__name__), failed=True)
    return Came(ledger.outcome_of(reply, None))


def _save(database: Database, rules: Rules, dispatch: Dispatch, came: Came) -> None:
    """Save what came of a call; while the database is away, again and again, as long as that can be of use."""
    give_up_at = time.monotonic() + rules.abandon_s - rules.timeout_s
    while True:
        try:
            with database.transaction() as connection:
                _keep(connection, rules, dispatch, came)
        except UnavailableError as error:
            if time.monotonic() > give_up_at:
                raise
            logger.warning("a judge's reply waits to be saved: %s", error)
            time.sleep(_SAVE_PAUSE_S)
        else:
            return


def _keep(connection: Connection, rules: Rules, dispatch: Dispatch, came: Came) -> None:
    if not came.was_sent:
        judge_calls.release(connection, dispatch.call_id)
        judge_work.unask(connection, dispatch.project_pk, dispatch.cache_key)
    elif not judge_calls.finish(connection, dispatch.call_id, came.outcome, came.http_status):
        logger.warning("judge call %s has been given up before; too late", dispatch.call_id)
    if came.failed:
        error = str(came.outcome.exception_type)
        _note_failure(connection, rules, dispatch.project_pk, error, came.http_status)
    else:
        judge_settings.note_success(connection, dispatch.project_pk)


def _note_failure(
    connection: Connection, rules: Rules, project_pk: int, error: str, status: int | None = None
) -> None:
    judge_settings.note_failure(
        connection,
        project_pk,
        error,
        status,
        first_s=rules.first_pause_s,
        longest_s=rules.longest_pause_s,
    )
