"""Where each library keeps HHEM's consistency. Recognised by shape; nothing is imported.

Source: evaluator-outputs.md, section 3.1.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from mesedi._readings import printable, read_score, unwrapped

_Object: TypeAlias = Mapping[str, Any]

# In the order in which they are believed.
_KEYS = (
    "factual_consistency_score",
    "fcs",
    "factualConsistency",
    "hhem_score",
    "consistency_score",
    "generation_score_hallucination_score",  # open-rag-eval's name of the *consistency*
)
_ANSWERS = ("summary", "answer", "generation", "response")
_QUESTIONS = ("query", "question")
_EXPLANATIONS = ("error", "messages", "field_errors", "warnings")
_CONSISTENT = {"consistent", "label_1"}
_INCONSISTENT = {"hallucinated", "inconsistent", "label_0"}
# A passage that was found has a score too: how well it fits the question.
_RETRIEVED = {"search_results", "document_id", "document_metadata", "part_metadata"}
_ATTRIBUTES = (
    *_KEYS,
    *_ANSWERS,
    *_QUESTIONS,
    *_EXPLANATIONS,
    *sorted(_RETRIEVED),
    "metadata",
    "score",
    "text",
    "type",
)
_FOREIGN = {"HallucinationMetric"}  # DeepEval's: a share of contradictions, lower is better
_MAX_DEPTH = 6
_SUM_TOLERANCE = 1e-3  # of two probabilities in half precision


class Consistency(NamedTuple):
    """How consistent one answer is; `score` None with the reason why it was not measured."""

    score: float | None
    reason: str | None = None
    status: str = "not_scored"
    question: str | None = None
    answer: str | None = None
    contexts: list[object] | None = None


def read_consistencies(result: object) -> list[Consistency]:
    """Read every consistency that `result` holds, in its order."""
    return list(_read(result, 0))


def _read(value: object, depth: int) -> Iterable[Consistency]:
    value = _opened(value)
    if depth > _MAX_DEPTH:
        return []
    if isinstance(value, Mapping):
        return _of_object(value, depth)
    if isinstance(value, list | tuple):
        return _of_list(value, depth)
    reading = read_score(value)
    return [Consistency(reading.score, reading.label if reading.score is None else None)]


def _opened(value: object) -> object:
    """Make plain what hides a value: JSON text, tensors, frames, objects of an SDK."""
    if isinstance(value, str):
        return _parsed(value)
    if isinstance(value, Mapping):
        return _undumped(value)
    plain = value is None or isinstance(value, int | float | list | tuple)
    return value if plain else _opened_object(value)


def _opened_object(value: object) -> object:
    kind = type(value)
    if callable(getattr(kind, "tolist", None)):  # also where `item` is not: on a GPU, many values
        return value.tolist()  # type: ignore[attr-defined]
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return value.to_dict("records")
    if callable(getattr(kind, "item", None)) or hasattr(kind, "__float__"):
        return unwrapped(value)
    return {} if kind.__name__ in _FOREIGN else _attributes(value)


def _parsed(words: str) -> object:
    if words.lstrip()[:1] not in ("{", "["):
        return words
    try:
        return json.loads(words)
    except (ValueError, RecursionError):
        return words


def _undumped(value: _Object) -> object:
    """Read what was written to JSON with its type, as tensors have to be."""
    if "__type__" not in value:
        return value
    return value.get("tolist", value.get("item", value.get("repr")))


def _attributes(value: object) -> _Object:
    return {name: getattr(value, name) for name in _ATTRIBUTES if hasattr(value, name)}


# Lists


def _of_list(values: Iterable[Any], depth: int) -> Iterable[Consistency]:
    items = [_opened(item) for item in values]
    objects = [item for item in items if isinstance(item, Mapping)]
    if objects and len(objects) == len(items):
        if all(isinstance(each.get("label"), str) for each in objects):
            return _of_labels(objects)
        if any(isinstance(each.get("type"), str) for each in objects):
            return [_of_stream(objects)]
    documents = [document for item in items for document in _documents(item)]
    if documents:
        return _of_documents(documents, depth)
    return chain.from_iterable(_read(item, depth + 1) for item in items)


def _of_labels(labels: list[_Object]) -> Iterable[Consistency]:
    """Read one pair's two labels, or the winning label of each of several pairs."""
    total = sum(read_score(label.get("score")).score or 0.0 for label in labels)
    names = {label["label"].lower() for label in labels}
    # Two winners add up to more than 1, each being more likely than its opposite.
    if len(labels) == len(names) == 2 and abs(total - 1) < _SUM_TOLERANCE:  # noqa: PLR2004
        labels = [label for label in labels if label["label"].lower() in _CONSISTENT]
    return [_of_label(label) for label in labels]


def _of_label(label: _Object) -> Consistency:
    name, score = label["label"].lower(), read_score(label.get("score")).score
    if score is not None and name in _CONSISTENT:
        return Consistency(score)
    if score is not None and name in _INCONSISTENT:
        return Consistency(1 - score)
    return Consistency(None, f"label {printable(label['label'])!r}")


def _documents(item: object) -> Iterator[_Object]:
    """Find LangChain's documents: alone, or in a pair with a retrieval score."""
    for part in item if isinstance(item, list | tuple) else (item,):
        opened = _opened(part)
        if isinstance(opened, Mapping) and isinstance(opened.get("metadata"), Mapping):
            yield opened


def _of_documents(documents: list[_Object], depth: int) -> Iterable[Consistency]:
    judged = [document for document in documents if "fcs" in document["metadata"]]
    if not judged:
        return [Consistency(None, "no factual consistency score")]
    return chain.from_iterable(_of_object(document, depth + 1) for document in judged)


def _of_stream(events: list[_Object]) -> Consistency:
    """Read a streamed answer, whose score comes last or never."""
    whole: dict[str, Any] = {}
    chunks = [str(event["generation_chunk"]) for event in events if "generation_chunk" in event]
    for event in events:
        whole.update(event)
    if chunks:
        whole["summary"] = "".join(chunks)
    return _found(whole.get("factual_consistency_score"), whole)


# Objects


def _of_object(value: _Object, depth: int) -> Iterable[Consistency]:
    metadata = value.get("metadata")
    told = {**value, **metadata} if isinstance(metadata, Mapping) else value
    key = next((key for key in _KEYS if key in told), None)
    if key is not None:
        return [_found(told[key], told)]
    for place in ("responseSet", "summary"):  # of Vectara's first interface
        if isinstance(inner := value.get(place), list):
            return chain.from_iterable(_read(item, depth + 1) for item in inner)
    return _of_bare_object(value, depth)


def _of_bare_object(value: _Object, depth: int) -> Iterable[Consistency]:
    if isinstance(value.get("label"), str):
        return [_of_label(value)]
    if "score" in value and not _RETRIEVED & set(value):
        return [_found(value["score"], value)]
    if any(name in value for name in (*_EXPLANATIONS, "search_results")):
        return [_found(None, value)]
    return _of_named(value, depth)


def _of_named(results: _Object, depth: int) -> Iterable[Consistency]:
    """Read results that go by names; bare numbers may be anything and are left alone."""
    opened = [_opened(result) for result in results.values()]
    inner = [result for result in opened if isinstance(result, Mapping | list | tuple)]
    return chain.from_iterable(_read(result, depth + 1) for result in inner)


def _found(value: object, around: _Object) -> Consistency:
    for _ in range(_MAX_DEPTH):
        value = _opened(value)
        if isinstance(value, list | tuple) and len(value) == 1:  # LangChain's `fcs` is a 1-tuple
            value = value[0]
        elif isinstance(value, Mapping):
            value = value.get("score")
        else:
            break
    score = read_score(value).score
    failed = any(around.get(name) for name in ("error", "messages", "field_errors"))
    return Consistency(
        score,
        None if score is not None else _explanation(around) or "no factual consistency score",
        "error" if failed else "not_scored",
        _first_text(around, _QUESTIONS),
        _first_text(around, (*_ANSWERS, "text")),
        _passages(around.get("search_results")),
    )


def _explanation(around: _Object) -> str:
    parts: list[str] = []
    for name in _EXPLANATIONS:
        value = around.get(name)
        if isinstance(value, Mapping):
            value = [f"{key}: {text}" for key, text in value.items()]
        parts += [value] if isinstance(value, str) else [str(part) for part in value or ()]
    return printable("; ".join(parts))


def _first_text(around: _Object, names: Iterable[str]) -> str | None:
    texts = (around.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str)), None)


def _passages(results: object) -> list[object] | None:
    if not isinstance(results, list | tuple):
        return None
    opened = [_opened(result) for result in results]
    return [
        {"id": found.get("document_id"), "text": found["text"]}
        for found in opened
        if isinstance(found, Mapping) and isinstance(found.get("text"), str)
    ]
