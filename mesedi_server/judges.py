"""What admins do to their project's judge: set it, see how it is doing, settle a call; for pages and API alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from evaluators import ledger
from evaluators.adapters import OpenAIChat, posting
from evaluators.errors import FactoryError
from mesedi_server import sealing
from mesedi_server.config import Settings
from mesedi_server.errors import ConflictError, FieldsRefusedError
from mesedi_server.judging import key_context, revision_of, why_not
from mesedi_server.schemas.group_states import clean
from mesedi_server.sealing import NoSecretKeyError
from mesedi_server.store import audit_log, judge_calls, judge_settings, judge_work
from mesedi_server.store.database import Connection
from mesedi_server.store.judge_calls import Replies, Spent, Unknown
from mesedi_server.store.judge_settings import JudgeSettings, NewKey
from mesedi_server.store.projects import Project

NOWHERE_TO_KEEP_IT = (
    "this server has no secret key to encrypt it with. Whoever runs the server sets"
    " MESEDI_SECRET_KEY (docs/settings.md) and starts it again"
)

_FAULTS = {
    "AbandonedCoordinator": "the worker that had asked was killed, or lost the database, before a reply was saved",
    "ConnectionFailedError": "the connection broke before a whole reply had come",
    "EndpointFailedError": "the endpoint failed",
    "FactoryError": "the settings make no judge; save them anew",
    "KeyInReplyError": "the reply repeated the key, so it was not kept",
    "NoSecretKeyError": "the key cannot be read: the judge worker has no secret key (MESEDI_SECRET_KEY)",
    "NotConnectedError": "no connection could be made; nothing was sent",
    "NotConnectedInTimeError": "no connection could be made in time; nothing was sent",
    "PrivateAddressError": "the host is at a private address, which this server does not call; nothing was sent",
    "PromptTooLargeError": "the question is larger than the judge takes; nothing was sent",
    "RateLimitedError": "the endpoint wants fewer calls, or its quota is used up",
    "RedirectedError": "the endpoint redirects elsewhere, which is not followed; enter its real address",
    "ReplyTooLargeError": "the reply was larger than a megabyte",
    "RequestRefusedError": "the endpoint refused the request: see whether address, model and key are right",
    "TimedOutError": "no whole reply came in time",
    "UnreadableReplyError": "the reply was not of the OpenAI chat protocol; see whether the address is right",
    "WrongSecretKeyError": "the key was encrypted with another secret key; enter it again",
}
"""What the class of a failure means to an admin."""


def in_words(error: str, http_status: int | None) -> str:
    """Say what went wrong, by the class of the failure and the HTTP status, if one came."""
    words = _FAULTS.get(error, f"an error of the server's own, {error}")
    return words if http_status is None else f"{words} (HTTP status {http_status})"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a project's judge is doing."""

    settings: JudgeSettings | None
    spent: Spent
    waiting: int
    """Answers in the queue."""
    unknown_count: int
    unknown: list[Unknown]
    """Calls whose outcome nobody knows, the newest."""
    last_reply_at: datetime | None
    """When the judge replied last."""
    replies: Replies
    """Of the last 24 hours, by the judge as it is set now."""

    @property
    def why_not(self) -> str | None:
        """Why no call is made now, as `judging.why_not` says it."""
        return "off" if self.settings is None else why_not(self.settings, self.spent)

    @property
    def left_today(self) -> int:
        """Calls that the budgets of the day have room for."""
        if self.settings is None:
            return 0
        calls = self.settings.calls_per_day - self.spent.today
        return _fitting(
            calls, self.settings, self.settings.cost_per_day_micros, self.spent.cost_today_micros
        )

    @property
    def left_this_month(self) -> int:
        """Calls that the budgets of the month have room for."""
        if self.settings is None:
            return 0
        calls = self.settings.calls_per_month - self.spent.this_month
        return _fitting(
            calls,
            self.settings,
            self.settings.cost_per_month_micros,
            self.spent.cost_this_month_micros,
        )


def standing(connection: Connection, project_pk: int) -> Standing:
    """Read how a project's judge is doing."""
    settings = judge_settings.of_project(connection, project_pk)
    return Standing(
        settings,
        judge_calls.spent(connection, project_pk),
        judge_work.count(connection, project_pk),
        *judge_calls.unknown(connection, project_pk),
        judge_calls.last_reply_at(connection, project_pk),
        judge_calls.latest_replies(connection, project_pk, revision=revision_of(settings)),
    )


def change(
    connection: Connection,
    project: Project,
    given: Mapping[str, Any],
    server: Settings,
    *,
    actor: str,
) -> bool:
    """Set a project's judge.

    Args:
        connection: an open transaction.
        project: whose judge.
        given: as `schemas.judges.SETTINGS` gives it.
        server: the server's settings.
        actor: who does it.

    Returns:
        Whether anything was changed.

    Raises:
        FieldsRefusedError: the address is none, or not allowed; the key cannot be kept, or belongs to another address.
    """
    check_address(given["url"], given["model"], private_judges=server.private_judges)
    key = given.get("key")
    return judge_settings.change(
        connection,
        project,
        given,
        None if key is None else _sealed(key, project, server.secret_key),
        is_key_removed="key" in given and key is None,
        actor=actor,
    )


def count_earlier(connection: Connection, project: Project, *, days: int) -> judge_work.Earlier:
    """Count the failing executions of the last `days` days that the judge as it is set now does not know."""
    revision = revision_of(judge_settings.of_project(connection, project.pk))
    return judge_work.count_earlier(connection, project.pk, days=days, revision=revision)


def queue_earlier(
    connection: Connection, project: Project, *, days: int, actor: str
) -> judge_work.Earlier:
    """Queue failing answers of the last days that the judge as it is set now does not know.

    Nobody but a person starts this: what is stored already was recorded before anybody decided to send it elsewhere.

    Args:
        connection: an open transaction.
        project: whose answers.
        days: how far to go back.
        actor: who does it.

    Returns:
        What was queued; the budgets hold for it as for all that waits.

    Raises:
        ConflictError: the project's judge is off, or there is none.
    """
    # Locked, so that nobody switches it off meanwhile and leaves a full queue behind.
    settings = judge_settings.locked(connection, project.pk)
    if settings is None or not settings.is_on:
        raise ConflictError("the judge is off; switch it on first")
    queued = judge_work.queue_earlier(
        connection, project.pk, days=days, revision=revision_of(settings)
    )
    details = {
        "days": days,
        "executions": queued.fitting_executions,
        "answers": queued.fitting_answers,
    }
    audit_log.note(
        connection,
        project.pk,
        actor,
        "judge.earlier_queued",
        subject=project.project_id,
        details=details,
    )
    return queued


def check_address(url: str, model: str, *, private_judges: bool) -> None:
    """Refuse what is no address of a judge, and what this server's operator does not allow.

    Names are not looked up here: where they lead is checked whenever a judge is connected to.

    Raises:
        FieldsRefusedError: it is such an address.
    """
    try:
        OpenAIChat(url, model)
    except FactoryError as error:
        fault = str(error).replace("base_url", "the address")
        raise FieldsRefusedError({"url": fault}) from error
    if private_judges:
        return
    address = urlsplit(url)
    host = (address.hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost") or _is_private(host):
        fault = "a private address. Whoever runs the server allows them with MESEDI_PRIVATE_JUDGES"
        raise FieldsRefusedError({"url": fault})
    if address.scheme != "https":
        fault = "https, please: answers and key must not travel in clear"
        raise FieldsRefusedError({"url": fault})


def settle(
    connection: Connection, project: Project, call_id: str, given: Mapping[str, Any], *, actor: str
) -> None:
    """Say what became of a call whose outcome is unknown; it is never sent again.

    Args:
        connection: an open transaction.
        project: whose call.
        call_id: the call.
        given: as `schemas.judges.SETTLEMENT` gives it.
        actor: who does it.

    Raises:
        NotFoundError: there is no such call.
        ConflictError: its outcome is known.
        FieldsRefusedError: the reason is blank.
    """
    reason = clean(given["reason"])
    if not reason:
        raise FieldsRefusedError({"reason": "must not be blank"})
    outcome = ledger.settled(given["reply"])
    judge_calls.settle(connection, project, call_id, outcome, reason, actor=actor)


def _fitting(calls: int, settings: JudgeSettings, budget: int | None, cost: int) -> int:
    """Count those of so many calls that a budget in money has room for, too."""
    bound = settings.cost_per_call_micros
    if budget is not None and bound is not None:
        calls = min(calls, (budget - cost) // bound)
    return max(calls, 0)


def _is_private(host: str) -> bool:
    """Tell whether a host is written as an IP address that is private; also 127.1, 0x7f000001 and 2130706433."""
    is_written_out = ":" in host or host.replace(".", "").isdigit() or host.startswith("0x")
    return is_written_out and not posting.is_public(host)


def _sealed(key: str, project: Project, secret: str) -> NewKey:
    try:
        sealed = sealing.seal(secret, key, key_context(project))
    except NoSecretKeyError as error:
        raise FieldsRefusedError({"key": NOWHERE_TO_KEEP_IT}) from error
    return NewKey(sealed, judge_settings.hint_of(key))
