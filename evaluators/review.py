"""Review by people: tasks with frozen evidence out, annotations in, nothing ever overwritten.

A task says nothing about what the evaluator found, so that a reviewer is not led. What a review
stands on is named by `evidence_digest`, over the criterion, the conversation, the answer and its
passages: another evaluation of the same answers by the same criterion can use the same reviews.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from evaluators import rundir
from evaluators.canonical import canonical, digest
from evaluators.errors import SHOWN_PROBLEMS, ReviewError
from evaluators.evidence import Bundle
from evaluators.jsonlines import LineError, read_object
from evaluators.material import Material
from evaluators.store import checks, evaluations, reviews
from evaluators.store.database import Connection, opened, transaction
from evaluators.store.evaluations import Case
from evaluators.summary import Json, View, viewed

OUTCOMES = ("met", "violated", "not_applicable")
ROLES = ("opinion", "adjudication")
PROVENANCES = ("human", "model", "synthetic")
BLANK: Json = {
    "id": None,
    "reviewer": None,
    "outcome": None,
    "rationale": None,
    "role": None,
    "provenance": None,
    "supersedes": None,
}
_TASK = (
    "schema_version",
    "run_id",
    "evaluation_id",
    "input_key",
    "case_id",
    "case_revision",
    "criterion",
    "evidence",
    "evidence_digest",
    "annotation",
)


# Tasks


def export(
    directory: Path,
    out: Path,
    *,
    evaluation_id: str | None = None,
    statuses: Collection[str] = (),
    force: bool = False,
) -> int:
    """Write a task for every captured answer and criterion, one a line; return their number.

    Args:
        directory: the run directory.
        out: JSON lines.
        evaluation_id: which evaluation, by default the latest.
        statuses: only answers with one of these results; all by default.
        force: replace the file if it exists.

    Raises RunError when the file exists or the run has no such evaluation, CorruptRunError.
    """
    rundir.refuse_output(directory, out, force=force)
    written = 0
    replacement = out.with_name(f".{out.name}.new")
    with viewed(directory, evaluation_id) as view:
        with replacement.open("w", encoding="utf-8", newline="\n") as file:
            for case, task in tasks(view):
                status = "pending" if case.result is None else case.result["status"]
                if not statuses or status in statuses:
                    file.write(f"{canonical({**task, 'annotation': BLANK})}\n")
                    written += 1
        replacement.replace(out)
    return written


def tasks(view: View) -> Iterator[tuple[Case, Json]]:
    """Yield every case whose answer was captured, with its task but for the annotation."""
    criteria = {each["id"]: each for each in view.manifest["spec"]["criteria"]}
    for case in view.cases():
        material = Material(view.connection, case)
        if material.is_captured:
            yield case, _task(view, material, criteria[case.input.criterion_id])


def _task(view: View, material: Material, criterion: Json) -> Json:
    case = material.case
    subject = {
        "run_id": view.run["id"],
        "input_key": case.input.key,
        "case_id": case.case_id,
        "case_revision": case.case_revision,
        "criterion": criterion,
        "evidence": _evidence(material),
    }
    return {
        "schema_version": 1,
        **subject,
        "evaluation_id": view.evaluation.id,
        "evidence_digest": digest([subject, case.input.observation_digest]),
    }


def _evidence(material: Material) -> Json:
    found = material.evidence
    passages = None
    if isinstance(found, Bundle):
        passages = [each._asdict() for each in found.passages]
    return {
        "conversation": [turn._asdict() for turn in material.conversation],
        "answer": material.answer,
        "question": material.question,
        "passages": passages,
        "context": material.context if passages is None else None,
    }


# Annotations


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: annotations stored, known already, and tasks left blank."""

    added: int
    known: int
    blank: int


@dataclass(frozen=True, slots=True)
class Line:
    """A task that was filled in; `digest` covers all of it but the annotation."""

    number: int
    evaluation_id: str
    input_key: str
    digest: str
    review: Json


def import_file(directory: Path, path: Path) -> Imported:
    """Store the annotations of a file of tasks: all of them, or none.

    A task whose annotation is blank is passed over, one that is stored already is left as it is.
    Raises ReviewError with every line that cannot be taken, LockedRunError, RunError.
    """

    def filled_in(connection: Connection, run: Json, problems: Problems) -> tuple[list[Line], int]:
        lines, blank = _read(path, run["id"], problems)
        _check_evidence(connection, run, lines, problems)
        return lines, blank

    return store(directory, path, filled_in)


def store(directory: Path, path: Path, read: "Reader") -> Imported:
    """Store what `read` makes of a file: all of it, or none.

    Args:
        directory: the run.
        path: the file, for messages.
        read: is given the open run and its manifest; notes the lines that cannot be taken; returns
            the others, and how many it passed over.

    Raises ReviewError with every line that cannot be taken, LockedRunError, RunError.
    """
    with rundir.locked(directory):
        with opened(directory, is_locked=True) as connection:
            run = checks.verify(connection)
            problems = Problems(path)
            lines, passed_over = read(connection, run, problems)
            new = _Ledger(reviews.stored(connection)).take(lines, problems)
            problems.refuse_if_any()
        if new:
            with opened(directory, write=True) as connection, transaction(connection):
                reviews.add(connection, [{**each, "imported_at": rundir.now()} for each in new])
    return Imported(len(new), len(lines) - len(new), passed_over)


class Problems:
    """The lines that cannot be taken, with the reasons."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        self._found.append((line, reason))

    def refuse_if_any(self) -> None:
        if not self._found:
            return
        shown = [f"{self._path}: line {n}: {why}" for n, why in sorted(self._found)]
        left = len(shown) - SHOWN_PROBLEMS
        more = [f"{self._path}: and {left} more"] if left > 0 else []
        raise ReviewError("\n".join([*shown[:SHOWN_PROBLEMS], *more]))


Reader: TypeAlias = Callable[[Connection, Json, Problems], tuple[list[Line], int]]


def _read(path: Path, run_id: str, problems: Problems) -> tuple[list[Line], int]:
    lines, blank = [], 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = _line(number, line, run_id)
            except LineError as error:
                problems.add(number, str(error))
                continue
            if found is None:
                blank += 1
            else:
                lines.append(found)
    return lines, blank


def _line(number: int, line: bytes, run_id: str) -> Line | None:
    task = read_object(line, is_first=number == 1)
    if set(task) != set(_TASK):
        raise LineError("is not a task as review-export writes it")
    annotation = annotation_of(task)
    if all(value is None or value == "" for value in annotation.values()):
        return None
    if task["run_id"] != run_id:
        raise LineError("belongs to another run")
    for name in ("evaluation_id", "input_key", "evidence_digest"):
        if not isinstance(task[name], str):
            raise LineError(f"{name} must be a string")
    return line_of(number, task, annotation)


def annotation_of(line: Json) -> Json:
    """Take the annotation out of a line; raises LineError unless it has all fields and no other."""
    annotation = line.pop("annotation", None)
    if not isinstance(annotation, dict) or set(annotation) != set(BLANK):
        raise LineError(f"annotation must have the fields {', '.join(BLANK)}")
    return annotation


def line_of(number: int, task: Json, annotation: Json) -> Line:
    """Put a task and an annotation together; raises LineError for what is no annotation."""
    review = _review(task, annotation)
    return Line(number, task["evaluation_id"], task["input_key"], digest(task), review)


def _review(task: Json, annotation: Json) -> Json:
    for name in ("id", "reviewer", "rationale"):
        if not isinstance(annotation[name], str) or not annotation[name].strip():
            raise LineError(f"annotation: {name} must be text that is not blank")
    for name, choices in (("outcome", OUTCOMES), ("role", ROLES), ("provenance", PROVENANCES)):
        if annotation[name] not in choices:
            raise LineError(f"annotation: {name} must be {' or '.join(choices)}")
    if annotation["supersedes"] == "":
        annotation["supersedes"] = None
    if annotation["supersedes"] is not None and not isinstance(annotation["supersedes"], str):
        raise LineError("annotation: supersedes must be the id of an annotation, or null")
    criterion = task["criterion"]
    return {
        "schema_version": 1,
        "evaluation_id": task["evaluation_id"],
        "input_key": task["input_key"],
        "case_id": task["case_id"],
        "criterion_id": criterion.get("id") if isinstance(criterion, dict) else None,
        "evidence_digest": task["evidence_digest"],
        "annotation": annotation,
    }


def _check_evidence(
    connection: Connection, run: Json, lines: list[Line], problems: Problems
) -> None:
    by_evaluation: dict[str, list[Line]] = {}
    for line in lines:
        by_evaluation.setdefault(line.evaluation_id, []).append(line)
    for evaluation_id, group in by_evaluation.items():
        exported = _exported(connection, run, evaluation_id, {line.input_key for line in group})
        for line in group:
            reason = _unlike(line, exported)
            if reason is not None:
                problems.add(line.number, reason)


def _exported(
    connection: Connection, run: Json, evaluation_id: str, wanted: set[str]
) -> dict[str, tuple[str, Json]] | None:
    """Return digest and criterion of the tasks, as an export would write them now."""
    if not evaluations.exist(connection):
        return None
    evaluation = evaluations.of_id(connection, evaluation_id)
    if evaluation is None:
        return None
    return {
        case.input.key: (digest(task), task["criterion"])
        for case, task in tasks(View(connection, run, evaluation))
        if case.input.key in wanted
    }


def _unlike(line: Line, exported: dict[str, tuple[str, Json]] | None) -> str | None:
    if exported is None:
        return "the run has no such evaluation"
    if line.input_key not in exported:
        return f"the evaluation has no captured answer {line.input_key!r}"
    unchanged, criterion = exported[line.input_key]
    if unchanged != line.digest:
        return "the task is not the one that was exported: its evidence was changed"
    outcome = line.review["annotation"]["outcome"]
    if outcome == "not_applicable" and not criterion.get("allow_not_applicable"):
        return "the criterion applies to every answer: not_applicable is no outcome"
    return None


class _Ledger:
    """All reviews of a run, and which of them are in force."""

    def __init__(self, stored: Iterator[Json]) -> None:
        self._by_id: dict[str, Json] = {}
        self._superseded: set[str] = set()
        self._in_force: dict[tuple[Any, ...], str] = {}
        for review in stored:
            self._add(review)

    def take(self, lines: list[Line], problems: Problems) -> list[Json]:
        """Return the reviews that are new; note those that cannot be taken."""
        new = []
        for line in lines:
            review, annotation = line.review, line.review["annotation"]
            known = self._by_id.get(annotation["id"])
            if known is not None:
                if _said(known) != _said(review):
                    problems.add(line.number, f"{annotation['id']!r} is stored and says otherwise")
                continue
            reason = self._reason_against(review)
            if reason is not None:
                problems.add(line.number, reason)
                continue
            self._add(review)
            new.append(review)
        return new

    def in_force(self) -> Iterator[Json]:
        """Yield what was not superseded."""
        for review_id, review in self._by_id.items():
            if review_id not in self._superseded:
                yield review

    def _add(self, review: Json) -> None:
        annotation = review["annotation"]
        self._by_id[annotation["id"]] = review
        if annotation["supersedes"] is not None:
            self._superseded.add(annotation["supersedes"])
        self._in_force[_seat(review)] = annotation["id"]

    def _reason_against(self, review: Json) -> str | None:
        annotation, seat = review["annotation"], _seat(review)
        earlier = annotation["supersedes"]
        if earlier is None:
            if seat in self._in_force:
                return f"{self._in_force[seat]!r} stands: a correction names it in supersedes"
            return None
        if earlier not in self._by_id:
            return f"supersedes {earlier!r}, which is not stored"
        if earlier in self._superseded:
            return f"supersedes {earlier!r}, which was superseded already"
        if _seat(self._by_id[earlier]) != seat:
            return f"supersedes {earlier!r}, which is about something else"
        return None


def _said(review: Json) -> Json:
    return {name: review[name] for name in ("evidence_digest", "annotation")}


def _seat(review: Json) -> tuple[Any, ...]:
    """Name what one annotation at a time may hold: a reviewer's opinion, or the adjudication."""
    annotation = review["annotation"]
    by = annotation["reviewer"] if annotation["role"] == "opinion" else None
    return review["evidence_digest"], annotation["role"], annotation["provenance"], by


def adjudications(connection: Connection) -> tuple[list[Json], int]:
    """Return the human adjudications in force, and how many others are in force beside them."""
    in_force = list(_Ledger(reviews.stored(connection)).in_force())
    chosen = [
        review
        for review in in_force
        if (review["annotation"]["role"], review["annotation"]["provenance"])
        == ("adjudication", "human")
    ]
    return chosen, len(in_force) - len(chosen)
