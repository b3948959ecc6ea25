"""What people say of answers: "correct", "wrong", "evaluator_wrong". Labels are added, never changed; the last counts.

A label belongs to the text that was labelled: the next version of an answer begins without one.
"""

import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from sqlalchemy import select

from mesedi_server.errors import NotFoundError
from mesedi_server.store import audit_log, failure_groups
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text
from mesedi_server.store.paging import Page, Paging
from mesedi_server.store.tables import answer_labels, occurrences

Said: TypeAlias = Literal["correct", "wrong", "evaluator_wrong"]

LOOKED_AT = 500
"""Labels that one statement of an export looks at."""

# Its name in cursors.
_LIST = "labels"
_LATEST = 50

_l = answer_labels.c

SAID_BY_A_PERSON = "({row}.person IS NOT NULL OR NOT starts_with({row}.actor, 'key key-'))"
"""SQL that tells whether a label is a person's word: given on the pages, or by a key in a person's name."""

# Of several events with one answer_id the last counts, as everywhere.
CURRENT_DIGEST = f"""
SELECT sha256(convert_to(coalesce(payload ->> 'answer', ''), 'UTF8')) AS digest
FROM (SELECT payload, sequence, timestamp, event_id FROM events
    WHERE execution_pk = {{execution}} AND event_type = 'answer'
    ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT {_LATEST}) AS latest
WHERE coalesce(payload ->> 'answer_id', '') = {{answer}}
ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT 1
"""
"""SQL of the digest of an answer's text as it stands, for a label to be compared with."""

_ADD = f"""
INSERT INTO answer_labels (project_pk, execution_pk, answer_id, answer_digest, label_id, label, note, actor, person)
SELECT project_pk, pk, %(answer)s, current.digest, %(label_id)s, %(label)s, %(note)s, %(actor)s, %(person)s
FROM executions, LATERAL ({CURRENT_DIGEST.format(execution="executions.pk", answer="%(answer)s")}) AS current
WHERE project_pk = %(project)s AND execution_id = %(execution)s
RETURNING execution_pk, at
"""

# A person's word counts, whatever programs say after it.
_LAST = f"""
SELECT l.execution_pk, l.answer_id, l.label, l.note, l.actor, l.person, l.at, l.labels,
    l.answer_digest IS NOT DISTINCT FROM current.digest
FROM (
    SELECT DISTINCT ON (execution_pk, answer_id) *, count(*) OVER (PARTITION BY execution_pk, answer_id) AS labels
    FROM answer_labels
    WHERE execution_pk IN (SELECT jsonb_array_elements_text(%(executions)s::jsonb)::bigint)
    ORDER BY execution_pk, answer_id, {SAID_BY_A_PERSON.format(row="answer_labels")} DESC, pk DESC) AS l
LEFT JOIN LATERAL ({CURRENT_DIGEST.format(execution="l.execution_pk", answer="l.answer_id")}) AS current ON true
"""

# What an export says of answers of a group, and of the others that carry its pair. A label corrects the one before it
# of the same text: a person's that of whichever person, a key's own the key's.
_OF_GROUP = f"""
SELECT l.pk, x.execution_id, l.answer_id, encode(l.answer_digest, 'hex'), l.label_id, l.label, l.note,
    coalesce(l.person, k.name || ' (' || l.actor || ')', l.actor), l.is_persons, before.label_id,
    EXISTS (SELECT FROM occurrences o WHERE o.group_pk = %(group)s AND o.execution_pk = l.execution_pk)
    OR EXISTS (SELECT FROM score_rollups r WHERE r.execution_pk = l.execution_pk
        AND r.evaluator_id = %(evaluator)s AND r.metric_type = %(metric)s)
FROM (SELECT *, {SAID_BY_A_PERSON.format(row="answer_labels")} AS is_persons FROM answer_labels
    WHERE project_pk = %(project)s AND pk > %(after)s ORDER BY pk LIMIT %(limit)s) AS l
JOIN executions x ON x.pk = l.execution_pk
LEFT JOIN api_keys k ON k.key_id = substr(l.actor, length('key ') + 1) AND k.project_pk = l.project_pk
    AND NOT l.is_persons AND k.name <> ''
LEFT JOIN LATERAL (
    SELECT label_id FROM answer_labels b WHERE b.execution_pk = l.execution_pk AND b.answer_id = l.answer_id
        AND b.answer_digest = l.answer_digest AND b.pk < l.pk
        AND {SAID_BY_A_PERSON.format(row="b")} = l.is_persons AND (l.is_persons OR b.actor = l.actor)
    ORDER BY b.pk DESC LIMIT 1) AS before ON true
ORDER BY l.pk
"""


class Label(Struct, frozen=True, kw_only=True):
    """Something that somebody said of an answer."""

    pk: int
    label_id: str
    answer_id: str
    label: Said
    note: str | None
    actor: str
    person: str | None
    """Who gave it, if the actor is a key that passed it on."""
    at: datetime


class LastLabel(NamedTuple):
    """What counts of the labels of an answer."""

    label: Said
    note: str | None
    actor: str
    person: str | None
    at: datetime
    labels: int
    """How many there are, this one and those that it corrects."""
    is_of_this_text: bool
    """False: the answer has changed since."""


class ExportedLabel(NamedTuple):
    """A label of an answer of a group; `supersedes` is the label that it corrects.

    `reviewer` is the person who gave it; a label that is no person's has the name and id of the key that did.
    """

    execution_id: str
    answer_id: str
    answer_sha256: str
    label_id: str
    label: Said
    note: str | None
    reviewer: str
    is_persons: bool
    supersedes: str | None


def add(
    connection: Connection,
    project_pk: int,
    execution_id: str,
    answer_id: str,
    *,
    label: Said,
    note: str | None,
    actor: str,
    by: str | None = None,
) -> str:
    """Say something of an answer and return the label's id; it counts from now on.

    Args:
        connection: an open transaction.
        project_pk: whose answer.
        execution_id: its execution.
        answer_id: the answer.
        label: what is said.
        note: more of it.
        actor: who does it, a person or a key.
        by: the person whose word a key passes on.

    Raises:
        NotFoundError: the project has no such answer.
    """
    label_id = f"lbl-{secrets.token_hex(8)}"
    row = connection.exec_driver_sql(
        _ADD,
        {
            "project": project_pk,
            "execution": execution_id,
            "answer": answer_id,
            "label_id": label_id,
            "label": label,
            "note": note,
            "actor": actor,
            "person": by,
        },
    ).one_or_none()
    if row is None:
        raise NotFoundError("answer")
    details = {"answer_id": answer_id, "label_id": label_id, "label": label, "note": note}
    if by is not None:
        details["by"] = by
    audit_log.note(
        connection, project_pk, actor, "answer.labelled", subject=execution_id, details=details
    )
    _remember(
        connection, row.execution_pk, actor, _in_words(label, execution_id, answer_id, note, by)
    )
    return label_id


def list_page(connection: Connection, execution_pk: int, paging: Paging) -> Page[Label]:
    """List what was said of an execution's answers, the newest first."""
    statement = (
        select(*(_l[name] for name in Label.__struct_fields__))
        .where(_l.execution_pk == execution_pk, *paging.after(_LIST, _l.at, _l.pk))
        .order_by(_l.at.desc(), _l.pk.desc())
        .limit(paging.limit + 1)
    )
    labels = [Label(**row) for row in connection.execute(statement).mappings()]
    return paging.page(_LIST, labels, lambda label: (label.at, label.pk))


def last_of(
    connection: Connection, execution_pks: Collection[int]
) -> dict[tuple[int, str], LastLabel]:
    """Read what counts of the labels of some executions, by execution and answer."""
    parameters = {"executions": json_text(list(execution_pks))}
    rows = connection.exec_driver_sql(_LAST, parameters)
    return {(execution, answer): LastLabel(*rest) for execution, answer, *rest in rows}


def of_group(
    connection: Connection, project_pk: int, group: failure_groups.FailureGroup, after: int
) -> tuple[list[ExportedLabel], int | None]:
    """Read labels of the group's answers and of others with its pair, in their order.

    Args:
        connection: an open transaction.
        project_pk: the project.
        group: the group.
        after: where to go on; 0 to begin.

    Returns:
        The labels, and where to go on; None: there are no more.
    """
    rows = connection.exec_driver_sql(
        _OF_GROUP,
        {
            "project": project_pk,
            "group": group.pk,
            # Groups of other classes have no pair, and no score has an empty evaluator.
            "evaluator": group.evaluator_id,
            "metric": group.metric_type,
            "after": after,
            "limit": LOOKED_AT,
        },
    ).all()
    found = [ExportedLabel(*values) for _, *values, is_wanted in rows if is_wanted]
    return found, rows[-1].pk if len(rows) == LOOKED_AT else None


def _remember(connection: Connection, execution_pk: int, actor: str, text: str) -> None:
    groups = select(occurrences.c.group_pk).where(occurrences.c.execution_pk == execution_pk)
    pks = list(connection.execute(groups).scalars())
    if pks:
        failure_groups.remember(connection, pks, "labelled", actor, text)


def _in_words(
    label: str, execution_id: str, answer_id: str, note: str | None, by: str | None
) -> str:
    words = f"{label.replace('_', ' ')}: {answer_id or 'answer'} of {execution_id}"
    words += "" if by is None else f", says {by}"
    return words if note is None else f"{words}. {note}"
