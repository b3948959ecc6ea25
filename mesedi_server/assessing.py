"""Assessing: whole answers in, what grounding finds in them out; for failing answers, or for all.

One transaction takes some executions, and looks at as many of their answers as its time allows. An answer is assessed
once for each wording and revision of the evaluator: looking at it again changes nothing.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from detectors import grounding_failure
from evaluators import evidence, grounding
from evaluators.canonical import digest
from evaluators.evidence import MissingEvidence
from evaluators.version import EVALUATOR_REVISION
from mesedi_server.errors import UnavailableError
from mesedi_server.store import assessment_work, assessments, feedback, judge_work, whole_answers
from mesedi_server.store.assessment_work import DueLook
from mesedi_server.store.assessments import GROUNDING, AssessmentRow
from mesedi_server.store.database import Connection, Database, savepoint
from mesedi_server.store.feedback import AnswerKey
from mesedi_server.store.whole_answers import WholeAnswer

logger = logging.getLogger(__name__)

BATCH = 50
"""Executions that one transaction takes."""
LOOK_S = 0.25
"""After this time a transaction takes no further answer: other tasks of the worker wait meanwhile."""
LARGE_CHARS = 200_000
"""Characters of an answer with its passages that may take seconds. One such is assessed at a time, so that of two
worker processes one goes on with everything else."""
LARGE_WAIT_S = 2.0
"""How long it waits for another such."""
TROUBLE_S = 3600.0
"""How long an execution is left alone whose assessments cannot be stored."""
MAX_FINDINGS = 1_000
"""Quantities that are kept of an answer, its first ones, and citations; all are counted."""
MAX_FINDING_CHARS = 200_000
"""Characters that these may have together."""

QUESTION_ID = "turn:0"
"""Source id of the question, as that of a captured answer: it is the turn before it."""

_WRITTEN = 100
_NOTHING_KNOWN = ("", b"")


@dataclass(slots=True)
class _Look:
    """One transaction's work."""

    connection: Connection
    known: dict[tuple[int, str], tuple[str, bytes]]
    seen: Counter[int] = field(default_factory=Counter)
    finished: set[int] = field(default_factory=set)
    rows: list[AssessmentRow] = field(default_factory=list)
    replaced: list[AnswerKey] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    """Executions with a large answer that another worker's keeps waiting."""
    has_progressed: bool = False


def assess_due(database: Database, *, limit: int = BATCH, look_s: float = LOOK_S) -> int:
    """Look at the answers of some executions, for about `look_s` seconds; what is left stays due.

    Returns:
        How many executions were taken; 0: nothing is due.

    Raises:
        UnavailableError: the database cannot be used; the executions stay due.
    """
    with database.transaction() as connection:
        looks = _claim(connection, limit)
        _look_at(connection, looks, look_s)
        judge_work.queue(connection, [look.execution_pk for look in looks])
    return len(looks)


def assess_one(database: Database) -> bool:
    """Look at the execution that has waited longest; one whose answers cannot be kept is put off, and logged.

    Returns:
        False if nothing is due.

    Raises:
        UnavailableError: as `assess_due`.
    """
    with database.transaction() as connection:
        looks = _claim(connection, 1)
        for look in looks:
            try:
                with savepoint(connection):
                    _look_at(connection, looks, LOOK_S)
                    judge_work.queue(connection, [look.execution_pk for look in looks])
            except UnavailableError:
                raise
            except Exception:
                assessment_work.put_off(connection, [look.execution_pk], wait_s=TROUBLE_S)
                logger.exception(
                    "answers of execution %s cannot be assessed; put off", look.execution_pk
                )
    return bool(looks)


def note_examined(connection: Connection, examined: Iterable[tuple[int, bool]]) -> None:
    """Note whose answers are to be assessed, of executions that have been examined, by key and whether they fail."""
    assessment_work.note_examined(
        connection,
        [assessment_work.ExaminedExecution(*one) for one in examined],
        revision=EVALUATOR_REVISION,
        feedback=feedback.EVALUATOR,
    )


def answer_digest(payload: object) -> bytes:
    """Return the SHA-256 of what evaluators read of an `answer` event's payload.

    Raises:
        ValueError, RecursionError: a number that is none, nested too deeply.
    """
    if not isinstance(payload, dict):
        return bytes.fromhex(digest(payload))
    return bytes.fromhex(digest([payload.get(name) for name in ("question", "answer", "context")]))


def assess(project_pk: int, answer: WholeAnswer, known: tuple[str, bytes]) -> AssessmentRow | None:
    """Assess an answer; one that cannot be is `invalid`, with the reason.

    Args:
        project_pk: whose answer.
        answer: as it is stored.
        known: the revision and digest of its last assessment.

    Returns:
        None: this revision has assessed the answer in this wording.
    """
    seen, found = None, None
    try:
        payload = json.loads(answer.payload)
        seen = answer_digest(payload)
        if known != (EVALUATOR_REVISION, seen):
            found = _found(payload)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one answer must not hold up the others
        # What cannot be read has the digest of its text.
        seen = seen or sha256(answer.payload.encode()).digest()
        found = _invalid(f"it cannot be read: {type(error).__name__}")
    if found is None or known == (EVALUATOR_REVISION, seen):
        return None
    return AssessmentRow(
        project_pk=project_pk,
        execution_pk=answer.execution_pk,
        answer_id=answer.answer_id,
        answer_digest=seen,
        evaluator=GROUNDING,
        revision=EVALUATOR_REVISION,
        **found,
    )


def _claim(connection: Connection, limit: int) -> list[DueLook]:
    return assessment_work.claim(connection, failure_class=grounding_failure.NAME, limit=limit)


def _look_at(connection: Connection, looks: list[DueLook], look_s: float) -> None:
    stop_at = time.monotonic() + look_s
    wanted = {look.execution_pk: look for look in looks if look.is_wanted}
    look = _Look(connection, assessments.digests(connection, wanted, GROUNDING))
    is_cut = False
    for answer in whole_answers.of_executions(connection, wanted):
        if is_cut := look.has_progressed and time.monotonic() >= stop_at:
            break
        _take(look, wanted[answer.execution_pk].project_pk, answer)
    assessments.put(connection, look.rows)
    if is_cut:
        left = [one for pk, one in wanted.items() if pk not in look.finished | look.waiting]
        assessment_work.put_back(connection, left)
    assessment_work.put_off(connection, look.waiting, wait_s=LARGE_WAIT_S)
    _give_back(look, wanted.values())


def _take(look: _Look, project_pk: int, answer: WholeAnswer) -> None:
    look.seen[answer.execution_pk] += 1
    if look.seen[answer.execution_pk] == answer.siblings:
        look.finished.add(answer.execution_pk)
        look.has_progressed = True
    if len(answer.payload) > LARGE_CHARS and not assessment_work.may_take_large(look.connection):
        look.waiting.add(answer.execution_pk)
        return
    key = (answer.execution_pk, answer.answer_id)
    row = assess(project_pk, answer, look.known.get(key, _NOTHING_KNOWN))
    if row is None:
        return
    look.rows.append(row)
    look.has_progressed = True
    if key in look.known:
        look.replaced.append(AnswerKey(*key))
    if len(look.rows) >= _WRITTEN:
        assessments.put(look.connection, look.rows)
        look.rows = []


def _give_back(look: _Look, looks: Iterable[DueLook]) -> None:
    """Tell the outcome as scores, where the project wants them; take back what is no longer true elsewhere."""
    telling = {one.execution_pk for one in looks if one.assesses_all}
    feedback.write(look.connection, telling)
    feedback.remove(
        look.connection, [key for key in look.replaced if key.execution_pk not in telling]
    )


def _found(payload: Any) -> dict[str, Any]:
    """Assess what an `answer` event holds; return the fields of its row."""
    if not isinstance(payload, dict):
        return _invalid("the payload is not an object")
    question, answer = payload.get("question"), payload.get("answer")
    if not isinstance(answer, str):
        return _invalid("there is no answer" if answer is None else "the answer is not text")
    if question is not None and not isinstance(question, str):
        return _invalid("the question is not text")
    bundle = evidence.read(payload.get("context"), question, QUESTION_ID)
    if isinstance(bundle, MissingEvidence):
        return {"outcome": "missing_evidence", "reason": bundle.reason}
    return {**_fields(grounding.assess(answer, bundle)), "passages": len(bundle.passages)}


def _invalid(reason: str) -> dict[str, Any]:
    return {"outcome": "invalid", "reason": reason}


def _fields(assessment: grounding.Assessment) -> dict[str, Any]:
    statuses = Counter(finding.status for finding in assessment.quantities)
    return {
        "outcome": assessment.outcome,
        "content": {
            "quantities": list(_first(assessment.quantities)),
            "citations": list(_first(assessment.citations)),
        },
        "quantities": len(assessment.quantities),
        "unmatched": statuses["unmatched"],
        "ambiguous": statuses["ambiguous"],
        "citations": len(assessment.citations),
        "unresolved": sum(finding.source_id is None for finding in assessment.citations),
    }


def _first(
    findings: Iterable[grounding.QuantityFinding | grounding.CitationFinding],
) -> Iterator[dict[str, object]]:
    """Yield as many findings as are kept: one answer can have hundreds of thousands, or repeat very long ones."""
    room = MAX_FINDING_CHARS // 2
    for _, finding in zip(range(MAX_FINDINGS), findings, strict=False):
        content = finding.content()
        room -= _chars(content)
        if room < 0:
            return
        yield content


def _chars(value: object) -> int:
    """Count the characters of the texts in a value."""
    if isinstance(value, dict):
        return sum(_chars(item) for item in value.values())
    return len(value) if isinstance(value, str) else 0
