"""Why executions are in a group, as its page shows it: what they answered beside what the evaluator said."""

from collections.abc import Sequence
from dataclasses import dataclass

from mesedi_server.store import answers
from mesedi_server.store.answers import Answer, Score
from mesedi_server.store.database import Connection
from mesedi_server.store.failure_groups import FailureGroup, Member


@dataclass(frozen=True, slots=True)
class Failure:
    """An execution of a group."""

    member: Member
    answers: list[Answer]
    """Those that the group's evaluator judged, if it says which; else all."""
    scores: list[Score]
    """What the group's evaluator said of them; empty for groups that are not of a pair."""


def of_members(
    connection: Connection, group: FailureGroup, members: Sequence[Member]
) -> list[Failure]:
    """Read what belongs to some executions of a group."""
    pks = [member.execution_pk for member in members]
    given = answers.of_executions(connection, pks)
    scores = answers.scores_of(connection, pks, (group.evaluator_id, group.metric_type))
    return [
        Failure(member, _judged(given[pk], scores[pk]), scores[pk])
        for pk, member in zip(pks, members, strict=True)
    ]


def _judged(given: list[Answer], scores: list[Score]) -> list[Answer]:
    named = {score.answer_id for score in scores if score.answer_id is not None}
    return [answer for answer in given if answer.answer_id in named] or given
