"""Dataset records: one JSON object a line (durable-evaluations.md, section 1)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evaluators.canonical import canonical, parsed
from evaluators.errors import SHOWN_PROBLEMS, DatasetError
from evaluators.jsonlines import LineError, read_canonical

_MAX_TURN_INDEX = 2**63 - 1  # what an SQLite integer holds

Problem = tuple[int, str]


class Record(NamedTuple):
    """One accepted line, with what planning needs taken out of it.

    `position` counts the records from 0, `line` the lines of the file from 1; `content` is the
    whole record as canonical JSON; `tags` is a JSON list of strings.
    """

    position: int
    line: int
    session_id: str
    turn_index: int | None
    role: str
    case_id: str | None
    declared_revision: str | None
    split_group: str
    tags: str
    persona_id: str | None
    content: str


class Problems:
    """The lines that cannot be taken: the first hundred by name, all by number."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown: list[Problem] = []
        self._total = 0

    def add(self, line: int, reason: str) -> None:
        """Note one problem."""
        self._total += 1
        if len(self._shown) < SHOWN_PROBLEMS:
            self._shown.append((line, reason))

    def refuse_if_any(self) -> None:
        """Raise DatasetError when anything was noted."""
        if self._total:
            raise DatasetError(self._path, sorted(self._shown), self._total)


def read(path: Path, problems: Problems, read_bytes: Callable[[int], None]) -> Iterator[Record]:
    """Yield the good records of a file and note the others.

    `read_bytes` is told how many bytes each line had. Memory does not grow with the file.
    """
    position = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            read_bytes(len(line))
            if not line.strip():
                continue
            try:
                record = _record(position, number, line)
            except LineError as error:
                problems.add(number, str(error))
                continue
            position += 1
            yield record


def text_of(content: str) -> str:
    """Return the text of a stored record."""
    text: str = parsed(content).get("text", "")
    return text


def _record(position: int, number: int, line: bytes) -> Record:
    value, content = read_canonical(line, is_first=number == 1)
    metadata = _object(value, "metadata")
    for name in ("context", "usage"):
        _object(metadata, name, within="metadata.")
    _text(value)
    session_id = _session_id(value)
    role = _role(value)
    answers = role == "assistant"
    return Record(
        position=position,
        line=number,
        session_id=session_id,
        turn_index=_turn_index(value),
        role=role,
        case_id=_name(value, "case_id") if answers else None,
        declared_revision=_name(value, "case_revision") if answers else None,
        split_group=_name(metadata, "split_group", within="metadata.") or session_id,
        tags=_tags(value),
        persona_id=_persona_id(value),
        content=content,
    )


def _object(owner: dict[str, Any], name: str, within: str = "") -> dict[str, Any]:
    value = owner.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise LineError(f"{within}{name} must be an object")
    return value


def _text(value: dict[str, Any]) -> None:
    if not isinstance(value.get("text", ""), str):
        raise LineError("text must be a string")


def _session_id(value: dict[str, Any]) -> str:
    session_id = value.get("session_id")
    if not isinstance(session_id, str) or not session_id.strip():
        raise LineError("session_id must be a string that is not blank")
    return session_id


def _role(value: dict[str, Any]) -> str:
    role = value.get("role")
    if role is None:
        return "user"
    if not isinstance(role, str):
        raise LineError("role must be a string")
    return role.strip().lower() or "user"


def _turn_index(value: dict[str, Any]) -> int | None:
    if "turn_index" not in value:
        return None
    index = value["turn_index"]
    if type(index) is not int or not 0 <= index <= _MAX_TURN_INDEX:
        raise LineError("turn_index must be an integer from 0")
    return index


def _name(owner: dict[str, Any], name: str, within: str = "") -> str | None:
    value = owner.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise LineError(f"{within}{name} must be a string that is not blank")
    return value


def _tags(value: dict[str, Any]) -> str:
    tags = value.get("tags")
    if not isinstance(tags, list):
        return "[]"
    return canonical(sorted({tag for tag in tags if isinstance(tag, str)}))


def _persona_id(value: dict[str, Any]) -> str | None:
    persona_id = value.get("persona_id")
    return persona_id if isinstance(persona_id, str) and persona_id else None
