"""What an answer may lean on: the question and the retrieved passages.

Nothing is dropped, merged or shortened: a citation counts passages, so leaving one out would change
what the later numbers mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

COLLECTIONS = ("excerpts", "passages", "documents", "sources", "context")
"""Keys that may hold the passages; the first one present is taken, whatever it holds."""

TEXT_FIELDS = ("text", "content", "body")
"""Fields that may hold a passage's text; the first one present is taken, whatever it holds."""


class Source(NamedTuple):
    """One text that can support an answer.

    Attributes:
        source_id: `turn:<ordinal>` for the question, `passage:<number from 1>` for a passage.
        text: Whole and unchanged.
        provider_id: The retrieval system's own id of the document, if it gave one.
    """

    source_id: str
    text: str
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """The readable evidence of one answer; `passages` may be empty."""

    question: Source
    passages: tuple[Source, ...]

    def __iter__(self) -> Iterator[Source]:
        """Yield the question, then the passages in their saved order."""
        yield self.question
        yield from self.passages


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """Why there is no readable evidence, in words for a report."""

    reason: str


class _UnreadableError(ValueError):
    pass


def read(
    context: object, question: str | None, question_source_id: str
) -> Bundle | MissingEvidence:
    """Read the evidence of an answer (durable-evaluations.md, section 4).

    Args:
        context: The retrieval context as it was saved: any JSON value.
        question: Text of the nearest earlier user turn; None without one.
        question_source_id: `turn:<ordinal>` of that turn.
    """
    if question is None:
        return MissingEvidence("no user question comes before the answer")
    try:
        passages = tuple(_passages(context))
    except _UnreadableError as error:
        return MissingEvidence(str(error))
    return Bundle(Source(question_source_id, question), passages)


def _passages(context: object) -> Iterator[Source]:
    for number, item in enumerate(_collection(context), 1):
        try:
            text, provider_id = _item(item)
        except _UnreadableError as error:
            raise _UnreadableError(f"passage {number} {error}") from error
        yield Source(f"passage:{number}", text, provider_id)


def _collection(context: object) -> Sequence[object]:
    if context is None:
        raise _UnreadableError("there is no context")
    if not isinstance(context, dict):
        raise _UnreadableError("the context is not an object")
    key = _first_present(COLLECTIONS, context)
    if key is None:
        raise _UnreadableError(f"the context has none of {', '.join(COLLECTIONS)}")
    items = context[key]
    if not isinstance(items, list):
        raise _UnreadableError(f"{key} is not a list")
    return items


def _item(item: object) -> tuple[str, str | None]:
    if isinstance(item, str):
        return _readable(item, "the item"), None
    if not isinstance(item, dict):
        raise _UnreadableError("is neither text nor an object")
    field = _first_present(TEXT_FIELDS, item)
    if field is None:
        raise _UnreadableError(f"has none of {', '.join(TEXT_FIELDS)}")
    return _readable(item[field], field), _provider_id(item.get("id"))


def _first_present(names: Sequence[str], owner: dict[str, object]) -> str | None:
    for name in names:
        if name in owner:
            return name
    return None


def _readable(text: object, field: str) -> str:
    if not isinstance(text, str):
        raise _UnreadableError(f"is malformed: {field} is not text")
    if not text or text.isspace():
        raise _UnreadableError(f"is malformed: {field} is blank")
    return text


def _provider_id(value: object) -> str | None:
    """Keep text and integers; `True` is an integer to Python, not to JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None
