"""Labels that people gave on a server, as reviews of a run.

A label is about an answer and not about a run: it names the case and the SHA-256 of the answer's
text. Where the run holds that very text, the label becomes a review of what the run has frozen.
"""

from hashlib import sha256
from pathlib import Path

from evaluators import review
from evaluators.errors import ReviewError
from evaluators.jsonlines import LineError, read_object
from evaluators.review import Imported, Line, Problems
from evaluators.store.database import Connection
from evaluators.summary import Json, View, chosen

_Labels = dict[tuple[str, str], list[tuple[int, Json]]]
"""Line number and annotation of each label, by case and text."""


def import_labels(
    directory: Path, path: Path, *, evaluation_id: str | None = None, criterion: str | None = None
) -> Imported:
    """Store the labels of a file (`GET /failure-groups/{id}/annotations`): all of them, or none.

    Labels of answers that the run does not hold as they were labelled are passed over, and counted
    as `blank`.

    Args:
        directory: the run.
        path: the file.
        evaluation_id: by whose criteria; the latest by default.
        criterion: what the labels decide; needed where the evaluation has more than one.

    Raises ReviewError with every line that cannot be taken, LockedRunError, RunError.
    """

    def labelled(connection: Connection, run: Json, problems: Problems) -> tuple[list[Line], int]:
        view = View(connection, run, chosen(connection, directory, evaluation_id))
        labels = _read(path, problems)
        lines = _matched(view, _criterion(view, criterion), labels, problems)
        given = sum(map(len, labels.values()))
        return sorted(lines, key=lambda line: line.number), given - len(lines)

    return review.store(directory, path, labelled)


def _criterion(view: View, wanted: str | None) -> str:
    known = [str(each["id"]) for each in view.manifest["spec"]["criteria"]]
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted not in known:
        raise ReviewError(f"--criterion must name what the labels decide: {', '.join(known)}")
    return wanted


def _read(path: Path, problems: Problems) -> _Labels:
    labels: _Labels = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                place, annotation = _label(line, is_first=number == 1)
            except LineError as error:
                problems.add(number, str(error))
                continue
            labels.setdefault(place, []).append((number, annotation))
    return labels


def _label(line: bytes, *, is_first: bool) -> tuple[tuple[str, str], Json]:
    label = read_object(line, is_first=is_first)
    case_id, text = label.get("case_id"), label.get("answer_sha256")
    if not isinstance(case_id, str) or not isinstance(text, str):
        raise LineError("is no label: case_id and answer_sha256 must be strings")
    return (case_id, text), review.annotation_of(label)


def _matched(view: View, criterion: str, labels: _Labels, problems: Problems) -> list[Line]:
    wanted = {case_id for case_id, _ in labels}
    lines, left = [], dict(labels)
    for case, task in review.tasks(view):
        if case.case_id not in wanted or case.input.criterion_id != criterion:
            continue
        text = sha256(task["evidence"]["answer"].encode()).hexdigest()
        for number, annotation in left.pop((case.case_id, text), ()):
            try:
                lines.append(review.line_of(number, task, annotation))
            except LineError as error:
                problems.add(number, str(error))
    return lines
