"""The plan of a capture: every turn of every stream, in order, with a name for each answer.

Sessions are sorted by id, turns by their index; a turn's place in that list is its ordinal. An
answer keeps its case id and case revision from capture to capture, so that two can be compared.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from evaluators.canonical import ListDigest, canonical, digest
from evaluators.dataset import text_of
from evaluators.store.plan import PlannedTurn, SortedTurn


def plan(stream: str, turns: Iterable[SortedTurn]) -> Iterator[PlannedTurn]:
    """Turn sorted turns into the planned turns of one stream."""
    ordinal = 0
    for _, session in groupby(turns, key=lambda turn: turn.session_id):
        answers = 0
        asked = ListDigest()
        for turn in session:
            case_id, case_revision = None, None
            asked.add(_asked(turn))
            if turn.role == "assistant":
                case_id = turn.case_id or f"{turn.session_id}:{answers}"
                case_revision = digest([turn.declared_revision, asked.hexdigest()])
                answers += 1
            yield PlannedTurn(
                stream,
                ordinal,
                turn.position,
                turn.session_id,
                turn.role,
                case_id,
                case_revision,
                turn.split_group,
                turn.tags,
                turn.persona_id,
            )
            ordinal += 1


_ANSWERED = canonical({"role": "assistant"})


def _asked(turn: SortedTurn) -> str:
    # What was asked makes a case; what was answered must not.
    if turn.content is None:
        return _ANSWERED
    return canonical({"role": turn.role, "text": text_of(turn.content)})
