"""Why executions are in a group, as its page shows it: what they answered beside what evaluators say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mesedi_server.pages import marking
from mesedi_server.pages.marking import MarkedAnswer
from mesedi_server.store import answer_assessments, answers
from mesedi_server.store.answers import Extent, Score
from mesedi_server.store.database import Connection
from mesedi_server.store.failure_groups import FailureGroup, Member


@dataclass(frozen=True, slots=True)
class Failure:
    """An execution of a group."""

    member: Member
    answers: list[MarkedAnswer]
    """Those that the group's evaluator judged, if it says which; else all."""
    scores: list[Score]
    """What the group's evaluator said of them; empty for groups that are not of a pair."""


def of_members(
    connection: Connection, group: FailureGroup, members: Sequence[Member]
) -> list[Failure]:
    """Read what belongs to some executions of a group."""
    pks = [member.execution_pk for member in members]
    scores = answers.scores_of(connection, pks, (group.evaluator_id, group.metric_type))
    marked = _marked(connection, pks, answers.SHORT)
    return [
        Failure(member, _judged(marked[pk], scores[pk]), scores[pk])
        for pk, member in zip(pks, members, strict=True)
    ]


def of_execution(connection: Connection, execution_pk: int) -> list[MarkedAnswer]:
    """Read what an execution answered, and more of it than a group's page shows."""
    return _marked(connection, [execution_pk], answers.LONG)[execution_pk]


def _marked(
    connection: Connection, pks: Sequence[int], extent: Extent
) -> Mapping[int, list[MarkedAnswer]]:
    given = answers.of_executions(connection, pks, extent)
    said = answer_assessments.of_executions(connection, pks, extent)
    return {
        pk: [
            marking.mark(
                f"e{place}-{number}",
                answer,
                said[pk].of(answer),
                extent,
                is_waiting=said[pk].is_waiting,
            )
            for number, answer in enumerate(given[pk])
        ]
        for place, pk in enumerate(pks)
    }


def _judged(given: list[MarkedAnswer], scores: list[Score]) -> list[MarkedAnswer]:
    named = {score.answer_id for score in scores if score.answer_id is not None}
    return [one for one in given if (one.answer.answer_id or "") in named] or given
