"""Answers that wait for a judge: bounded, and gone with the transaction that stores what became of them.

A row without a key has not been asked about; with one, its call is under way or has ended and is to be read.
"""

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from mesedi_server.store.assessments import ANSWER_ID, FAITHFULNESS, GROUNDING
from mesedi_server.store.database import Connection
from mesedi_server.store.json_text import json_text, read_json

MAX_WAITING = 1_000
"""Answers of a project that wait; when so many do, newer ones are not queued but counted."""
MAX_ANSWERS = 50
"""Answers of one execution that are judged, its newest."""
MAX_EARLIER = 10_000
"""Earlier executions that are counted; of more than that nobody is told the number."""
SEARCHED_EARLIER = 100_000
"""Failing executions that are looked through for them, the newest: a request must be over in seconds."""


class Waiting(Struct, frozen=True):
    """An answer that this transaction has claimed."""

    execution_pk: int
    execution_id: str
    answer_id: str
    cache_key: str | None


class Earlier(Struct, frozen=True):
    """Failing executions that the judge as it is set now does not know, and what of them fits the queue."""

    executions: int
    """Those none of whose answers has been judged or waits, or with one that another judge has judged, up to
    MAX_EARLIER."""
    fitting_executions: int
    """The newest of them, as many as there is room for with all their answers."""
    fitting_answers: int


_NEWEST_ANSWERS = f"""SELECT {ANSWER_ID} AS answer_id, received_at FROM events
        WHERE execution_pk = {{execution}} AND event_type = 'answer'
        ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT {MAX_ANSWERS}"""

_IS_ANY_ON = "SELECT EXISTS (SELECT FROM judge_settings WHERE is_on)"

# An answer that came in before it was judged has been judged, unless grounding knows another wording of it. Where
# grounding knows none, it may have been on its way in while the one before was judged: an ingest takes eight seconds at
# most. Whatever is queued in vain costs no call; the judge's own look decides for good.
_QUEUE = f"""
WITH looked_at AS MATERIALIZED (
    SELECT x.project_pk, x.pk, s.answers, s.sample_percent
    FROM jsonb_array_elements_text(%(executions)s::jsonb) AS wanted (pk)
    JOIN executions x ON x.pk = wanted.pk::bigint
    JOIN judge_settings s ON s.project_pk = x.project_pk AND s.is_on
    WHERE s.answers <> 'failing' OR EXISTS (SELECT FROM occurrences o JOIN failure_groups g ON g.pk = o.group_pk
        WHERE o.execution_pk = x.pk AND g.failure_class = 'grounding_failure')
), given AS (
    SELECT l.*, e.answer_id, max(e.received_at) AS received_at
    FROM looked_at l CROSS JOIN LATERAL ({_NEWEST_ANSWERS.format(execution="l.pk")}) e
    GROUP BY l.project_pk, l.pk, l.answers, l.sample_percent, e.answer_id
), wanted AS (
    SELECT project_pk, pk, answer_id,
        row_number() OVER (PARTITION BY project_pk ORDER BY pk, answer_id) AS place
    FROM given n
    WHERE (answers <> 'sample' OR (hashtextextended(pk || ' ' || answer_id, 0) & 1073741823) %% 100 < sample_percent)
        AND NOT EXISTS (SELECT FROM assessments a LEFT JOIN assessments g ON g.execution_pk = a.execution_pk
                AND g.answer_id = a.answer_id AND g.evaluator = '{GROUNDING}'
            WHERE a.execution_pk = n.pk AND a.answer_id = n.answer_id AND a.evaluator = '{FAITHFULNESS}'
            AND CASE WHEN g.pk IS NULL THEN a.assessed_at > n.received_at + interval '1 minute'
                ELSE a.assessed_at > n.received_at AND g.answer_digest = a.answer_digest END)
        AND NOT EXISTS (SELECT FROM judge_work w WHERE w.execution_pk = n.pk AND w.answer_id = n.answer_id)
), room AS MATERIALIZED (
    SELECT project_pk, %(most)s - (SELECT count(*) FROM judge_work w WHERE w.project_pk = p.project_pk) AS left_over
    FROM (SELECT DISTINCT project_pk FROM wanted) p
), queued AS (
    INSERT INTO judge_work (project_pk, execution_pk, answer_id)
    SELECT project_pk, pk, answer_id FROM wanted JOIN room USING (project_pk) WHERE place <= left_over
    ORDER BY pk, answer_id ON CONFLICT DO NOTHING
)
UPDATE judge_settings s SET not_queued = not_queued + turned_away
FROM (SELECT project_pk, count(*) AS turned_away FROM wanted JOIN room USING (project_pk)
    WHERE place > left_over GROUP BY project_pk) o
WHERE s.project_pk = o.project_pk
"""

# No judge knows more of an answer without evidence than the one that looked at it.
_IS_OTHERS = "revision <> %(revision)s AND outcome <> 'missing_evidence'"

# OFFSET keeps each look at an index, one execution after the other.
_FIT = f"""
WITH failing AS MATERIALIZED (
    SELECT o.execution_pk AS pk, max(o.occurred_at) AS failed_at
    FROM failure_groups g JOIN occurrences o ON o.group_pk = g.pk
    WHERE g.project_pk = %(project)s AND g.failure_class = 'grounding_failure'
        AND o.occurred_at >= now() - %(days)s * interval '1 day'
    GROUP BY o.execution_pk ORDER BY failed_at DESC, pk DESC LIMIT {SEARCHED_EARLIER}
), unjudged AS MATERIALIZED (
    SELECT f.pk, f.failed_at
    FROM (SELECT * FROM failing ORDER BY failed_at DESC, pk DESC OFFSET 0) f CROSS JOIN LATERAL (
        SELECT FROM events WHERE execution_pk = f.pk AND event_type = 'answer' OFFSET 0 LIMIT 1) answered
    WHERE (SELECT true FROM judge_work w WHERE w.execution_pk = f.pk LIMIT 1) IS NULL
        AND (SELECT coalesce(bool_or({_IS_OTHERS}), true) FROM assessments
            WHERE execution_pk = f.pk AND evaluator = '{FAITHFULNESS}')
    ORDER BY f.failed_at DESC, f.pk DESC LIMIT {MAX_EARLIER}
), given AS (
    SELECT u.pk, u.failed_at, array_agg(DISTINCT e.answer_id) AS answers
    FROM (SELECT * FROM unjudged ORDER BY failed_at DESC, pk DESC LIMIT %(room)s) u
    CROSS JOIN LATERAL ({_NEWEST_ANSWERS.format(execution="u.pk")}) e
    WHERE (SELECT {_IS_OTHERS} FROM assessments
        WHERE execution_pk = u.pk AND answer_id = e.answer_id AND evaluator = '{FAITHFULNESS}') IS NOT FALSE
    GROUP BY u.pk, u.failed_at
), fitting AS (
    SELECT pk, answers
    FROM (SELECT *, sum(cardinality(answers)) OVER (ORDER BY failed_at DESC, pk DESC) AS so_far FROM given) g
    WHERE so_far <= %(room)s
)"""

_COUNTED = """
SELECT (SELECT count(*) FROM unjudged), count(*), coalesce(sum(cardinality(answers)), 0)::int FROM fitting
"""

_COUNT_EARLIER = _FIT + _COUNTED

_QUEUE_EARLIER = f"""{_FIT}, queued AS (
    INSERT INTO judge_work (project_pk, execution_pk, answer_id)
    SELECT %(project)s, pk, unnest(answers) FROM fitting ORDER BY 2, 3 ON CONFLICT DO NOTHING
){_COUNTED}"""

_PROJECTS = """
SELECT project_pk FROM judge_settings s
WHERE EXISTS (SELECT FROM judge_work w WHERE w.project_pk = s.project_pk AND w.due_at <= now()) ORDER BY project_pk
"""

_NEXT_UNASKED = """
SELECT w.execution_pk, x.execution_id, w.answer_id, w.cache_key
FROM judge_work w JOIN executions x ON x.pk = w.execution_pk
WHERE w.project_pk = %(project)s AND w.due_at <= now() AND w.cache_key IS NULL
ORDER BY w.due_at, w.execution_pk, w.answer_id LIMIT 1 FOR UPDATE OF w SKIP LOCKED
"""

_NEXT_ANSWERED = """
SELECT w.execution_pk, x.execution_id, w.answer_id, w.cache_key
FROM judge_work w JOIN executions x ON x.pk = w.execution_pk
JOIN judge_calls c ON c.project_pk = w.project_pk AND c.cache_key = w.cache_key AND c.status <> 'running'
WHERE w.project_pk = %(project)s AND w.due_at <= now() AND w.cache_key IS NOT NULL
ORDER BY w.due_at, w.execution_pk, w.answer_id LIMIT 1 FOR UPDATE OF w SKIP LOCKED
"""

_ANSWER = f"""
SELECT payload::text FROM events
WHERE execution_pk = %(execution)s AND event_type = 'answer' AND {ANSWER_ID} = %(answer)s
ORDER BY sequence DESC, timestamp DESC, event_id DESC LIMIT 1
"""

_ONE = "WHERE execution_pk = %(execution)s AND answer_id = %(answer)s"

_QUEUE_UNKNOWN = f"""
INSERT INTO judge_work (project_pk, execution_pk, answer_id, cache_key)
SELECT project_pk, execution_pk, answer_id, %(key)s FROM assessments
WHERE project_pk = %(project)s AND evaluator = '{FAITHFULNESS}' AND outcome = 'unknown_outcome'
ON CONFLICT DO NOTHING
"""


def queue(
    connection: Connection, execution_pks: Collection[int], *, most: int = MAX_WAITING
) -> None:
    """Queue the answers of some executions that their project wants judged and that are not yet.

    Call it last in a transaction: a full queue is counted in a row that others wait for.

    Args:
        connection: an open transaction.
        execution_pks: the executions.
        most: answers of a project that wait; two transactions at once can queue a few more.
    """
    # Where nobody has a judge, that is all that an examination pays for it.
    if execution_pks and connection.exec_driver_sql(_IS_ANY_ON).scalar_one():
        parameters = {"executions": json_text(list(execution_pks)), "most": most}
        connection.exec_driver_sql(_QUEUE, parameters)


def count_earlier(connection: Connection, project_pk: int, *, days: int, revision: str) -> Earlier:
    """Count the failing executions that a judge does not know, whatever the project wants judged.

    Args:
        connection: an open transaction.
        project_pk: whose executions.
        days: how far to go back.
        revision: that of the judge's assessments.
    """
    return _earlier(connection, _COUNT_EARLIER, project_pk, days, revision)


def queue_earlier(connection: Connection, project_pk: int, *, days: int, revision: str) -> Earlier:
    """Queue what `count_earlier` finds fitting, and return what that was."""
    return _earlier(connection, _QUEUE_EARLIER, project_pk, days, revision)


def projects_that_wait(connection: Connection) -> list[int]:
    """List the projects with answers that are due."""
    return list(connection.exec_driver_sql(_PROJECTS).scalars())


def next_unasked(connection: Connection, project_pk: int) -> Waiting | None:
    """Claim an answer that nobody has asked about."""
    row = connection.exec_driver_sql(_NEXT_UNASKED, {"project": project_pk}).one_or_none()
    return None if row is None else Waiting(*row)


def next_answered(connection: Connection, project_pk: int) -> Waiting | None:
    """Claim an answer whose call has ended."""
    row = connection.exec_driver_sql(_NEXT_ANSWERED, {"project": project_pk}).one_or_none()
    return None if row is None else Waiting(*row)


def payload_of(connection: Connection, waiting: Waiting) -> Any:
    """Read the answer event that counts, whole; None: there is none any more."""
    text = connection.exec_driver_sql(_ANSWER, _key(waiting)).scalar_one_or_none()
    return None if text is None else read_json(text)


def set_key(connection: Connection, waiting: Waiting, key: str | None) -> None:
    """Note which call an answer waits for; None: it is to be asked about anew."""
    parameters = _key(waiting) | {"key": key}
    connection.exec_driver_sql(f"UPDATE judge_work SET cache_key = %(key)s {_ONE}", parameters)


def unask(connection: Connection, project_pk: int, key: str) -> None:
    """Let the answers that wait for a call which was taken back wait to be asked about."""
    connection.exec_driver_sql(
        "UPDATE judge_work SET cache_key = NULL, tries = tries + 1"
        " WHERE project_pk = %(project)s AND cache_key = %(key)s",
        {"project": project_pk, "key": key},
    )


def put_off(connection: Connection, waiting: Waiting) -> None:
    """Leave an answer that cannot be dealt with alone for an hour."""
    connection.exec_driver_sql(
        f"UPDATE judge_work SET due_at = now() + interval '1 hour' {_ONE}", _key(waiting)
    )


def done(connection: Connection, waiting: Waiting) -> None:
    """Take an answer out of the queue."""
    connection.exec_driver_sql(f"DELETE FROM judge_work {_ONE}", _key(waiting))


def count(connection: Connection, project_pk: int) -> int:
    """Count the answers of a project that wait."""
    statement = "SELECT count(*) FROM judge_work WHERE project_pk = %(project)s"
    return int(connection.exec_driver_sql(statement, {"project": project_pk}).scalar_one())


def forget_unasked(connection: Connection, project_pk: int) -> None:
    """Empty the queue of a project, but for what has been asked already."""
    connection.exec_driver_sql(
        "DELETE FROM judge_work WHERE project_pk = %(project)s AND cache_key IS NULL",
        {"project": project_pk},
    )


def queue_unknown(connection: Connection, project_pk: int, key: str) -> None:
    """Queue the answers of unknown outcome, to be read anew: one of them may have waited for the call of this key."""
    connection.exec_driver_sql(_QUEUE_UNKNOWN, {"project": project_pk, "key": key})


def _earlier(
    connection: Connection, statement: str, project_pk: int, days: int, revision: str
) -> Earlier:
    room = max(0, MAX_WAITING - count(connection, project_pk))
    parameters = {"project": project_pk, "days": days, "room": room, "revision": revision}
    return Earlier(*connection.exec_driver_sql(statement, parameters).one())


def _key(waiting: Waiting) -> dict[str, Any]:
    return {"execution": waiting.execution_pk, "answer": waiting.answer_id}
