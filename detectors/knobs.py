"""Knobs: the settings of a detector that a project may change.

Each is declared once, in its detector's file; the API, the form and the docs are made from it.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar

ValueType: TypeAlias = Literal["float", "int", "json"]
T = TypeVar("T")

_MAX_SHOWN = 80


class KnobError(ValueError):
    """A value that a knob does not take; the message says in words which bound it broke."""


class Bounds(NamedTuple):
    """The least and the greatest value allowed; both are, unless `above_lowest`.

    >>> str(Bounds(0, 1)), str(Bounds(0, 1, above_lowest=True))
    ('[0, 1]', '(0, 1]')
    """

    lowest: float
    highest: float
    above_lowest: bool = False

    def admit(self, value: float) -> bool:
        """Tell whether `value` lies within."""
        is_high_enough = value > self.lowest if self.above_lowest else value >= self.lowest
        return is_high_enough and value <= self.highest

    def __str__(self) -> str:
        return f"{'(' if self.above_lowest else '['}{self.lowest:g}, {self.highest:g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob(ABC, Generic[T]):
    """A named setting with a default; `value_type` is what the API calls its type."""

    name: str
    default: T
    description: str
    value_type: ClassVar[ValueType]

    @property
    @abstractmethod
    def limits(self) -> str:
        """What the knob takes, in words, for forms and docs."""

    @abstractmethod
    def check(self, value: object) -> T:
        """Return `value` as it is to be stored.

        Raises:
            KnobError: It has the wrong type or breaks a bound.
        """

    def stored_in(self, values: Mapping[str, object]) -> T | None:
        """Return the value that a project stored, None without one that is still allowed."""
        try:
            return self.check(values[self.name])
        except (KeyError, KnobError):
            return None

    def in_force(self, values: Mapping[str, object]) -> T:
        """Return the project's value, else the default."""
        stored = self.stored_in(values)
        return self.default if stored is None else stored


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatKnob(Knob[float]):
    """A number; a whole number is one too."""

    bounds: Bounds
    value_type: ClassVar[ValueType] = "float"

    @property
    def limits(self) -> str:
        """The bounds."""
        return f"a number in {self.bounds}"

    def check(self, value: object) -> float:
        """Return the number as a float."""
        return _number_within(self.bounds, self.name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntKnob(Knob[int]):
    """A whole number; 3.0 is not one."""

    bounds: Bounds
    value_type: ClassVar[ValueType] = "int"

    @property
    def limits(self) -> str:
        """The bounds."""
        return f"a whole number in {self.bounds}"

    def check(self, value: object) -> int:
        """Return the whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise KnobError(f"{self.name} must be a whole number, not {_shown(value)}")
        if not self.bounds.admit(value):
            raise KnobError(f"{self.name} out of range {self.bounds}: {_shown(value)}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMapKnob(Knob[dict[str, float]]):
    """A number for each of some pairs, keyed `evaluator_id:metric_type`."""

    bounds: Bounds
    max_entries: int
    max_key_bytes: int
    value_type: ClassVar[ValueType] = "json"

    @property
    def limits(self) -> str:
        """The bounds of the map and of its values."""
        return f"at most {self.max_entries} entries evaluator_id:metric_type, each in {self.bounds}"

    def check(self, value: object) -> dict[str, float]:
        """Return a map of floats of its own."""
        if not isinstance(value, Mapping):
            raise KnobError(f"{self.name} must be an object, not {_shown(value)}")
        if len(value) > self.max_entries:
            raise KnobError(
                f"{self.name} has {len(value)} entries, at most {self.max_entries} are allowed"
            )
        return dict(self.check_entry(key, number) for key, number in value.items())

    def good_entries(self, values: Mapping[str, object]) -> dict[str, float]:
        """Return what can be used of a stored map: one bad entry does not cost the others."""
        stored = values.get(self.name)
        good: dict[str, float] = {}
        for key, number in stored.items() if isinstance(stored, Mapping) else ():
            with suppress(KnobError):
                good.update([self.check_entry(key, number)])
        return good

    def check_entry(self, key: object, number: object) -> tuple[str, float]:
        """Return one entry of the map.

        Raises:
            KnobError: The key is no pair, or the number breaks a bound.
        """
        if not isinstance(key, str) or ":" not in key:
            raise KnobError(f"{self.name}: key {_shown(key)} is not evaluator_id:metric_type")
        if not _is_storable(key):
            raise KnobError(f"{self.name}: key {_shown(key)} contains a character that is no text")
        if len(key.encode()) > self.max_key_bytes:
            raise KnobError(
                f"{self.name}: key {_shown(key)} is longer than {self.max_key_bytes} bytes"
            )
        try:
            return key, _number_within(self.bounds, self.name, number)
        except KnobError as error:
            raise KnobError(f"{error} (entry {_shown(key)})") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesKnob(Knob[list[str]]):
    """Some of a fixed set of words, at least one."""

    choices: tuple[str, ...]
    value_type: ClassVar[ValueType] = "json"

    @property
    def limits(self) -> str:
        """The words."""
        return f"a list of at least one of: {', '.join(self.choices)}"

    def check(self, value: object) -> list[str]:
        """Return the chosen words in the order of `choices`, each once."""
        if not isinstance(value, list) or not value:
            raise KnobError(f"{self.name} must be {self.limits}; not {_shown(value)}")
        for word in value:
            if word not in self.choices:
                raise KnobError(f"{self.name} must be {self.limits}; not {_shown(word)}")
        return [choice for choice in self.choices if choice in value]


def _number_within(bounds: Bounds, name: str, value: object) -> float:
    if not _is_number(value):
        raise KnobError(f"{name} must be a number, not {_shown(value)}")
    if not bounds.admit(value):
        raise KnobError(f"{name} out of range {bounds}: {_shown(value)}")
    return float(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_storable(text: str) -> bool:
    # PostgreSQL's text takes neither NUL nor half a surrogate pair.
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    except (TypeError, ValueError, RecursionError):  # a number of 5,000 digits, 10,000 brackets
        text = f"this {type(value).__name__}"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
