"""Read what a judge wrote: one JSON object with exactly the expected fields, or a reason why not.

Nothing is repaired, converted or looked for inside of prose. A field's check takes the value and
its place and returns the value, or raises InvalidVerdictError.
"""

import json
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from evaluators.canonical import canonical
from evaluators.judges import JudgeReply

Check: TypeAlias = Callable[[object, str], object]
Fields: TypeAlias = Mapping[str, Check]

_SHOWN = 60
"""Characters of a judge's own words that a reason shows: a name can be megabytes long."""

_MANY = 64
"""Pieces of one length from which on one pass over a source is faster than a search for each."""


class InvalidVerdictError(ValueError):
    """A verdict that cannot be taken; `reason` says why in a few words, `sentence` in a whole one.

    Args:
        reason: why.
        is_object: whether it was at least a JSON object; of anything else the reason goes on after
            "the verdict".
    """

    def __init__(self, reason: str, *, is_object: bool = True) -> None:
        self.reason = reason
        self.sentence = f"the verdict {'cannot be used: ' if is_object else ''}{reason}"
        super().__init__(reason)


class RepeatingObject(dict[str, Any]):
    """A JSON object that gave a name more than once; it holds the last value of each."""


class Quote(NamedTuple):
    """A piece of a source, word for word."""

    source_id: str
    quote: str

    def content(self) -> dict[str, str]:
        """The quote as a JSON value."""
        return self._asdict()


def whole_text(reply: JudgeReply) -> str:
    """Return the text of a reply that came to its end; raises InvalidVerdictError."""
    if reply.finish_reason != "stop":
        raise InvalidVerdictError(f"the reply is not whole: finish_reason is {reply.finish_reason}")
    return reply.text


def parse(reply: object) -> dict[str, Any]:
    """Return the one JSON object of a raw text, or an object that was read already, checked.

    Raises InvalidVerdictError for everything else: other text around it, several values, a name
    that an object repeats, what JSON does not know, half a surrogate pair, nesting without end.
    """
    if isinstance(reply, str) and not reply.strip():
        raise InvalidVerdictError("is empty", is_object=False)
    try:
        value = _loaded(reply) if isinstance(reply, str) else reply
        if isinstance(value, dict):
            canonical(value).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidVerdictError(_reason(error), is_object=False) from error
    if not isinstance(value, dict):
        raise InvalidVerdictError("is not a JSON object", is_object=False)
    if repeats(value):
        raise InvalidVerdictError("repeats a field", is_object=False)
    return value


def noting_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object for `json.loads`; one with repeated names is a `RepeatingObject`."""
    built = dict(pairs)
    return built if len(built) == len(pairs) else RepeatingObject(built)


def repeats(value: object) -> bool:
    """Say whether an object repeats a name, at any depth."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case RepeatingObject():
                return True
            case dict() as members:
                waiting.extend(members.values())
            case list() as items:
                waiting.extend(items)
    return False


def versioned(value: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Check a whole verdict: these fields, and a `schema_version` that may be there and is 1."""
    rest = dict(value)
    version = rest.pop("schema_version", 1)
    if type(version) is not int or version != 1:
        raise InvalidVerdictError("schema_version must be the integer 1")
    return exactly(fields)(rest, "")


def exactly(fields: Fields) -> Callable[[object, str], dict[str, Any]]:
    """Check an object that has each of these fields and no other."""

    def check(value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidVerdictError(f"{where} must be an object")
        prefix = f"{where}." if where else ""
        for name in value:
            if name not in fields:
                raise InvalidVerdictError(f"{prefix}{shown(str(name))} is not a known field")
        for name in fields:
            if name not in value:
                raise InvalidVerdictError(f"{prefix}{name} is missing")
        return {name: check(value[name], f"{prefix}{name}") for name, check in fields.items()}

    return check


def list_of(item: Check) -> Check:
    """Check a list, item by item."""

    def check(value: object, where: str) -> list[object]:
        if not isinstance(value, list):
            raise InvalidVerdictError(f"{where} must be a list")
        return [item(each, f"{where}[{place}]") for place, each in enumerate(value)]

    return check


def text(value: object, where: str) -> object:
    """Check a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidVerdictError(f"{where} must be text that is not blank")
    return value


def flag(value: object, where: str) -> object:
    """Check true or false; 0, 1 and "true" are neither."""
    if not isinstance(value, bool):
        raise InvalidVerdictError(f"{where} must be true or false")
    return value


def integer(least: int, most: int) -> Check:
    """Check an integer; true, 9.0 and "9" are none."""

    def check(value: object, where: str) -> object:
        if type(value) is not int or not least <= value <= most:
            raise InvalidVerdictError(f"{where} must be an integer from {least} to {most}")
        return value

    return check


def one_of(*choices: str) -> Check:
    """Check one of some strings."""

    def check(value: object, where: str) -> object:
        if not isinstance(value, str) or value not in choices:
            raise InvalidVerdictError(f"{where} must be {' or '.join(choices)}")
        return value

    return check


def or_null(other: Check) -> Check:
    """Check null, or something else."""

    def check(value: object, where: str) -> object:
        return None if value is None else other(value, where)

    return check


_QUOTE = exactly({"source_id": text, "quote": text})


def quote(value: object, where: str) -> Quote:
    """Check a quote's form; `check_quotes` looks it up."""
    return Quote(**_QUOTE(value, where))


def check_quotes(quotes: Iterable[Quote], sources: Mapping[str, str]) -> None:
    """Look every quote up in the source that it names, as it stands; raises InvalidVerdictError."""
    of_sources: dict[str, dict[str, None]] = {}
    for source_id, words in quotes:
        if source_id not in sources:
            raise InvalidVerdictError(f"{shown(source_id)} is not a source that can be quoted")
        of_sources.setdefault(source_id, {})[words] = None
    for source_id, several in of_sources.items():
        if (missing := absent(several, sources[source_id])) is not None:
            raise InvalidVerdictError(f"the quote {shown(missing)} is not in {source_id}")


def absent(pieces: Iterable[str], source: str) -> str | None:
    """Return a piece that does not stand in the source, or None when all do."""
    by_length: dict[int, dict[str, None]] = {}
    for piece in pieces:
        by_length.setdefault(len(piece), {})[piece] = None
    for length, wanted in by_length.items():
        place: Container[str] = source
        if len(wanted) > _MANY:
            place = _found(wanted, length, source)
        for piece in wanted:
            if piece not in place:
                return piece
    return None


def _found(wanted: Iterable[str], length: int, source: str) -> set[str]:
    """Find many pieces of one length in one pass, whose cost is that of some dozen searches."""
    left, found = set(wanted), set[str]()
    for begin in range(len(source) - length + 1):
        piece = source[begin : begin + length]
        if piece in left:
            left.remove(piece)
            found.add(piece)
            if not left:
                break
    return found


def shown(words: str) -> str:
    """Quote a judge's own words for a reason, shortened."""
    return repr(words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…")


def _loaded(raw: str) -> object:
    return json.loads(raw, object_pairs_hook=noting_repeats)


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            place = f"{error.msg} at character {error.pos + 1}"
            return f"is not one JSON object and nothing else: {place}"
        case UnicodeEncodeError():
            return "holds half of a surrogate pair"
        case RecursionError():
            return "is nested too deeply"
        case TypeError():
            return "holds what is no JSON value"
    return "holds a number that is not finite, or too long"
