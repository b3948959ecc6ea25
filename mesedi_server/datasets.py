"""A group as a dataset for evaluators, and what people said of its answers as review annotations: JSON lines.

The lines are read and written some dozens at a time, each time in a transaction of its own: a download may take as
long as its reader likes. The dataset ends with an empty line, which readers of JSON lines pass over, so that one that
was cut off between two lines can be told from a whole one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw

from mesedi_server.schemas.datasets import Wanted
from mesedi_server.store import datasets, labels
from mesedi_server.store.database import Connection, Database
from mesedi_server.store.datasets import Carrier, Counts, Found, Texts
from mesedi_server.store.failure_groups import FailureGroup
from mesedi_server.store.labels import ExportedLabel
from mesedi_server.store.projects import Project

SEARCHED = 200_000
"""Executions that are looked through for passing answers, the newest."""

_NEWEST = 2**63 - 1
_OUTCOMES = {"correct": "met", "wrong": "violated", "evaluator_wrong": "met"}
_RATIONALES = {
    "correct": "Labelled correct.",
    "wrong": "Labelled wrong.",
    "evaluator_wrong": "Labelled correct: the evaluator is wrong.",
}

_encode = msgspec.json.Encoder().encode


def counts(connection: Connection, group: FailureGroup, wanted: Wanted) -> Counts:
    """Count the executions that a dataset is about, and those of them that have sent no answer."""
    return datasets.counts(connection, group, wanted.limit)


def headers(group: FailureGroup, counted: Counts) -> dict[str, str]:
    """Say beside a dataset what it is about, and what is not in it."""
    return {
        "Content-Disposition": f'attachment; filename="{group.group_id}.jsonl"',
        "Mesedi-Executions": str(counted.executions),
        "Mesedi-Executions-Without-Answer": str(counted.without_answer),
        "Mesedi-Executions-Beyond-Limit": str(max(0, group.occurrence_count - counted.executions)),
        "Cache-Control": "no-store",
    }


def lines(
    database: Database, project: Project, group: FailureGroup, wanted: Wanted
) -> Iterator[bytes]:
    """Write the failing answers of a group, the newest executions first, then the passing ones."""
    source = _Source(database, project, group)
    failing = 0
    for written in source.failing(wanted.limit):
        failing += 1
        yield written
    yield from source.passing(failing if wanted.passing is None else wanted.passing)
    yield b"\n"


def annotations(database: Database, project: Project, group: FailureGroup) -> Iterator[bytes]:
    """Write what people said of the group's answers, and of others with its pair, the oldest label first."""
    after: int | None = 0
    while after is not None:
        with database.transaction() as connection:
            found, after = labels.of_group(connection, project.pk, group, after)
        yield b"".join(_encode(_annotation(label)) + b"\n" for label in found)


def case_id(execution_id: str, answer_id: str) -> str:
    """Name an answer; slashes and the like in an id are percent-encoded, so that no two answers share a name."""
    return f"{_escaped(execution_id)}/{_escaped(answer_id)}"


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the answers of one group come from."""

    database: Database
    project: Project
    group: FailureGroup
    failed: set[int] = field(default_factory=set)
    """Executions that were written as failing: one that leaves the group meanwhile is not written twice."""

    def failing(self, limit: int) -> Iterator[bytes]:
        """Write the failing answers of the newest `limit` members."""
        last: Carrier | None = None
        while limit > 0:
            with self.database.transaction() as connection:
                members = datasets.members(connection, self.group, last, limit)
                found = datasets.answers_of(connection, self.group, members)
            if not members:
                return
            yield from self._records(members, _by_execution(found, failing), "failing")
            limit -= len(members)
            self.failed.update(one.execution_pk for one in members)
            last = members[-1]

    def passing(self, wanted: int) -> Iterator[bytes]:
        """Write `wanted` answers of executions with the group's pair that are no members, or as many as there are."""
        if not self.group.evaluator_id:
            return
        below: int | None = _NEWEST
        searched = 0
        while wanted > 0 and below is not None and searched < SEARCHED:
            with self.database.transaction() as connection:
                carriers, below = datasets.carriers(connection, self.project.pk, self.group, below)
            searched += datasets.CARRIERS
            for written in self._passing_of(
                [one for one in carriers if one.execution_pk not in self.failed]
            ):
                yield written
                wanted -= 1
                if wanted == 0:
                    return

    def _passing_of(self, carriers: Sequence[Carrier]) -> Iterator[bytes]:
        for begin in range(0, len(carriers), datasets.MEMBERS):
            some = carriers[begin : begin + datasets.MEMBERS]
            with self.database.transaction() as connection:
                found = datasets.answers_of(connection, self.group, some)
            yield from self._records(some, _by_execution(found, passing), "passing")

    def _records(
        self, executions: Iterable[Carrier], found: Sequence[Found], kind: str
    ) -> Iterator[bytes]:
        by_pk = {one.execution_pk: one for one in executions}
        for part in datasets.parts(found):
            with self.database.transaction() as connection:
                texts = datasets.texts(connection, self.project.pk, part)
            # An event may have gone meanwhile, with its execution.
            for one in part:
                if one.event_id in texts:
                    yield self._record(by_pk[one.execution_pk], one, texts[one.event_id], kind)

    def _record(self, execution: Carrier, found: Found, texts: Texts, kind: str) -> bytes:
        name = case_id(execution.execution_id, texts.answer_id)
        tags = [self.group.group_id, kind, execution.release, self.group.evaluator_id]
        answer = {
            "session_id": name,
            "turn_index": 1,
            "role": "assistant",
            "text": texts.answer,
            "case_id": name,
            "tags": [tag for tag in tags if tag],
            "metadata": {
                "context": Raw(texts.context.encode()),
                "split_group": _escaped(execution.execution_id),
                "provenance": self._provenance(execution, found, texts),
            },
        }
        return b"".join([*_question(name, texts.question), _encode(answer), b"\n"])

    def _provenance(self, execution: Carrier, found: Found, texts: Texts) -> dict[str, Any]:
        return {
            "project": self.project.project_id,
            "group": self.group.group_id,
            "execution_id": execution.execution_id,
            "answer_id": texts.answer_id,
            "evaluator": self.group.evaluator_id or None,
            "metric": self.group.metric_type or None,
            "score": found.score,
            "passed": found.passed,
            "rule": execution.rule,
            "received_at": texts.received_at,
            **({} if texts.malformed is None else {"malformed": texts.malformed}),
        }


def failing(answers: list[Found]) -> list[Found]:
    """Choose the failing answers of an execution that failed.

    Those that the evaluator failed by name; without such, all that it names; without such, all.
    """
    judged = [one for one in answers if one.is_named]
    return [one for one in judged if one.passed is False] or judged or answers


def passing(answers: list[Found]) -> list[Found]:
    """Choose the passing answers of an execution that did not fail: of those that were judged, all but failed ones."""
    judged = [one for one in answers if one.is_named] or answers
    return [one for one in judged if one.passed is not False]


def _by_execution(
    found: Sequence[Found], choose: Callable[[list[Found]], list[Found]]
) -> list[Found]:
    by_pk: dict[int, list[Found]] = {}
    for one in found:
        by_pk.setdefault(one.execution_pk, []).append(one)
    return [one for answers in by_pk.values() for one in choose(answers)]


def _question(session_id: str, text: str | None) -> list[bytes]:
    """Write the user's turn; an answer that came without a question has none."""
    if text is None:
        return []
    return [
        _encode({"session_id": session_id, "turn_index": 0, "role": "user", "text": text}),
        b"\n",
    ]


def _annotation(label: ExportedLabel) -> dict[str, Any]:
    words = _RATIONALES[label.label]
    return {
        "case_id": case_id(label.execution_id, label.answer_id),
        "answer_sha256": label.answer_sha256,
        "label": label.label,
        "annotation": {
            "id": label.label_id,
            "reviewer": label.reviewer,
            "outcome": _OUTCOMES[label.label],
            "rationale": words if label.note is None else f"{words} {label.note}",
            # Of a program's opinions there may be one a key; the answer is decided by people.
            "role": "adjudication" if label.is_persons else "opinion",
            "provenance": "human" if label.is_persons else "model",
            "supersedes": label.supersedes,
        },
    }


def _escaped(name: str) -> str:
    return quote(name, safe=":@+=,")
