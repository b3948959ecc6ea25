"""How projects have their answers judged, and how their judges are doing.

No row: nothing is ever sent to a judge. The judge's key is stored sealed (`sealing`); what opens it is not here.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import false, func, select
from sqlalchemy.dialects.postgresql import insert

from mesedi_server.errors import FieldsRefusedError
from mesedi_server.store import audit_log, judge_work, projects
from mesedi_server.store.database import Connection
from mesedi_server.store.tables import judge_settings

SHOWN_CHARACTERS = 4
"""Of a key, its last ones, if it is a good deal longer."""

_SHORT_KEY = 12
_s = judge_settings.c


class JudgeSettings(Struct, frozen=True, kw_only=True):
    """What a project has set."""

    project_pk: int
    is_on: bool
    url: str
    model: str
    key_ciphertext: bytes | None
    key_hint: str | None
    """Last characters of the key; empty: it is too short to show any. None: there is no key."""
    calls_per_day: int
    calls_per_month: int
    """Budgets, by days and months of the project's time zone."""
    concurrency: int
    """Calls under way at once, in all processes together."""
    answers: str
    """`failing`, `sample` or `all`."""
    sample_percent: int
    min_correctness: int
    cost_per_call_micros: int | None
    """The most that a call can cost, in millionths of the currency of the contract with the judge's provider."""
    cost_per_day_micros: int | None
    cost_per_month_micros: int | None
    """Budgets in money, by the same days and months; None: there is none."""
    changed_at: datetime
    changed_by: str
    failures: int
    """Calls in a row that the judge left without a reply."""
    failing_since: datetime | None
    ask_after: datetime | None
    """Until then a judge that failed is left alone."""
    is_paused: bool
    """Whether that is now."""
    last_error: str | None
    """Class of the last failure, never its text."""
    last_error_status: int | None
    """The HTTP status that came with it, if one did."""
    last_error_at: datetime | None
    not_queued: int
    """Answers that found the queue full, since the judge was set up."""


class NewKey(Struct, frozen=True):
    """A key to store in place of the one before."""

    ciphertext: bytes
    hint: str


CHANGED = (
    "is_on",
    "url",
    "model",
    "calls_per_day",
    "calls_per_month",
    "concurrency",
    "answers",
    "sample_percent",
    "min_correctness",
    "cost_per_call_micros",
    "cost_per_day_micros",
    "cost_per_month_micros",
)
"""What a change names; the key is told apart."""

_IS_PAUSED = func.coalesce(_s.ask_after > func.now(), false()).label("is_paused")
_COLUMNS = [
    _IS_PAUSED if name == "is_paused" else _s[name] for name in JudgeSettings.__struct_fields__
]

_FAILED = """
UPDATE judge_settings SET last_error = %(error)s, last_error_status = %(status)s, last_error_at = now(),
    failing_since = coalesce(failing_since, now()),
    -- Several calls that fail together count once.
    failures = failures + CASE WHEN ask_after > now() THEN 0 ELSE 1 END,
    ask_after = CASE WHEN ask_after > now() THEN ask_after
        ELSE now() + least(%(first)s * 2.0 ^ least(failures, 20), %(longest)s) * interval '1 second' END
WHERE project_pk = %(project)s
"""

_WORKED = """
UPDATE judge_settings SET failures = 0, failing_since = NULL, ask_after = NULL
WHERE project_pk = %(project)s AND failing_since IS NOT NULL
"""


def hint_of(key: str) -> str:
    """Return what may be shown of a key."""
    return key[-SHOWN_CHARACTERS:] if len(key) >= _SHORT_KEY else ""


def of_project(connection: Connection, project_pk: int) -> JudgeSettings | None:
    """Read what a project has set; None: it has no judge."""
    return _read(connection, project_pk, is_locked=False)


def locked(connection: Connection, project_pk: int) -> JudgeSettings | None:
    """Read what a project has set, and let nobody else reserve a call of it before this transaction ends."""
    return _read(connection, project_pk, is_locked=True)


def change(
    connection: Connection,
    project: projects.Project,
    wanted: Mapping[str, Any],
    key: NewKey | None,
    *,
    is_key_removed: bool,
    actor: str,
) -> bool:
    """Set a project's judge; what is in force already leaves no trace.

    A key belongs to its address: with another address it is given again, or no admin could be kept from having it sent
    to a server of their own.

    Args:
        connection: an open transaction.
        project: whose judge.
        wanted: all of CHANGED.
        key: another key; None: the one that is there stays.
        is_key_removed: take the key away; `key` is None then.
        actor: who does it.

    Returns:
        Whether anything was changed.

    Raises:
        FieldsRefusedError: the address is another one, and what becomes of the key is not said.
    """
    projects.lock(connection, project.pk)
    before = of_project(connection, project.pk)
    old_key = before is not None and before.key_hint is not None
    is_moved = before is not None and before.url != wanted["url"]
    if old_key and is_moved and key is None and not is_key_removed:
        fault = "the address is another one; enter the key for it, or remove it"
        raise FieldsRefusedError({"key": fault})
    details = _details(before, wanted)
    if key is not None:
        details["key"] = "replaced" if old_key else "set"
    elif old_key and is_key_removed:
        details["key"] = "removed"
    if not details:
        return False
    _store(connection, project.pk, wanted, key, is_key_removed=is_key_removed, actor=actor)
    if not wanted["is_on"]:
        judge_work.forget_unasked(connection, project.pk)
    audit_log.note(
        connection, project.pk, actor, "judge.changed", subject=project.project_id, details=details
    )
    return True


def note_failure(
    connection: Connection,
    project_pk: int,
    error: str,
    status: int | None,
    *,
    first_s: float,
    longest_s: float,
) -> None:
    """Leave a judge that failed alone for `first_s` seconds, twice as long each time, at most `longest_s`."""
    parameters = {
        "project": project_pk,
        "error": error,
        "status": status,
        "first": first_s,
        "longest": longest_s,
    }
    connection.exec_driver_sql(_FAILED, parameters)


def note_success(connection: Connection, project_pk: int) -> None:
    """Ask a judge that has answered as often as before."""
    connection.exec_driver_sql(_WORKED, {"project": project_pk})


def _read(connection: Connection, project_pk: int, *, is_locked: bool) -> JudgeSettings | None:
    statement = select(*_COLUMNS).where(_s.project_pk == project_pk)
    if is_locked:
        statement = statement.with_for_update(key_share=True)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else JudgeSettings(**{str(name): row[name] for name in row})


def _details(before: JudgeSettings | None, wanted: Mapping[str, Any]) -> dict[str, Any]:
    if before is None:
        return {name: wanted[name] for name in CHANGED}
    return {
        name: {"from": getattr(before, name), "to": wanted[name]}
        for name in CHANGED
        if getattr(before, name) != wanted[name]
    }


def _store(
    connection: Connection,
    project_pk: int,
    wanted: Mapping[str, Any],
    key: NewKey | None,
    *,
    is_key_removed: bool,
    actor: str,
) -> None:
    values = {name: wanted[name] for name in CHANGED}
    # Whoever changes a judge has seen to it: it is asked again at once.
    values |= {"changed_by": actor, "failures": 0, "failing_since": None, "ask_after": None}
    if key is not None:
        values |= {"key_ciphertext": key.ciphertext, "key_hint": key.hint}
    elif is_key_removed:
        values |= {"key_ciphertext": None, "key_hint": None}
    statement = insert(judge_settings).values(project_pk=project_pk, **values)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[_s.project_pk], set_={**values, "changed_at": func.now()}
        )
    )
