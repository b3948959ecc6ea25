"""Form fields made from the declarations of knobs: filled from settings, or from what was sent.

One class a kind of field; `value` is what the form asks for, None for the default.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias
from urllib.parse import unquote

from werkzeug.datastructures import MultiDict

from detectors import Detector, Knob
from detectors.knobs import ChoicesKnob, IntKnob, PairMapKnob
from mesedi_server.errors import RefusedError
from mesedi_server.schemas.thresholds import checked

Form: TypeAlias = MultiDict[str, str]
Row: TypeAlias = tuple[str, str]
"""A pair's key, and the floor beside it as it is written; empty for none."""

OPEN_ROWS = 20
"""Pairs without a floor of their own that have a row in view."""
LISTED_ROWS = 100
"""Pairs without a floor of their own that have a row at all: a form of more could be too large to be sent."""


@dataclass(frozen=True, slots=True)
class NumberField:
    """A number; left empty for the default."""

    kind: ClassVar[str] = "number"
    knob: Knob[Any]
    text: str

    @classmethod
    def filled(cls, knob: Knob[Any], values: Mapping[str, object]) -> "NumberField":
        """Fill the field from settings."""
        stored = knob.stored_in(values)
        return cls(knob, "" if stored is None else str(stored))

    @classmethod
    def sent(cls, knob: Knob[Any], form: Form) -> "NumberField":
        """Fill the field from a form."""
        return cls(knob, form.get(knob.name, "").strip())

    def value(self) -> Any:
        """Return the number.

        Raises:
            RefusedError: it is none, or out of bounds.
        """
        read = int if isinstance(self.knob, IntKnob) else float
        return checked(self.knob, _number(self.text, read)) if self.text else None


@dataclass(frozen=True, slots=True)
class ChoicesField:
    """Some of a few words."""

    kind: ClassVar[str] = "choices"
    knob: ChoicesKnob
    chosen: list[str]

    @classmethod
    def filled(cls, knob: ChoicesKnob, values: Mapping[str, object]) -> "ChoicesField":
        """Fill the field from settings."""
        return cls(knob, knob.in_force(values))

    @classmethod
    def sent(cls, knob: ChoicesKnob, form: Form) -> "ChoicesField":
        """Fill the field from a form."""
        return cls(knob, form.getlist(knob.name))

    def value(self) -> Any:
        """Return the words.

        Raises:
            RefusedError: none is chosen, or one that does not exist.
        """
        return checked(self.knob, self.chosen)


@dataclass(frozen=True, slots=True)
class PairsField:
    """A row a pair: those that the project knows by name, and empty ones."""

    kind: ClassVar[str] = "pairs"
    knob: PairMapKnob
    rows: list[Row]
    typed: list[Row]

    @classmethod
    def filled(cls, knob: PairMapKnob, values: Mapping[str, object]) -> "PairsField":
        """Fill the field from settings."""
        floors = knob.good_entries(values)
        return cls(knob, [(key, str(floor)) for key, floor in floors.items()], [])

    @classmethod
    def sent(cls, knob: PairMapKnob, form: Form) -> "PairsField":
        """Fill the field from a form."""
        # Percent-encoded in the form: browsers change the line breaks of what they send.
        known = _rows(form, knob.name)
        return cls(
            knob,
            [(unquote(key), floor) for key, floor in known if floor],
            [
                (key.strip(), floor)
                for key, floor in _rows(form, f"{knob.name}.new")
                if key or floor
            ],
        )

    def value(self) -> Any:
        """Return the floors of pairs that have one.

        Raises:
            RefusedError: a floor is no number or out of bounds, a pair or its floor is missing, or a pair has two.
        """
        floors: dict[str, Any] = {}
        for key, text in [*self.rows, *self.typed]:
            if not key or not text:
                missing = "floor" if key else "evaluator:metric"
                raise RefusedError(f"{self.knob.name}: {key or text!r} has no {missing}")
            if key in floors:
                raise RefusedError(f"{self.knob.name}: {key!r} has two floors")
            floors[key] = _number(text, float)
        return checked(self.knob, floors) or None

    def empty_rows(self, pairs: Iterable[tuple[str, str]]) -> list[Row]:
        """Return rows to fill in, for pairs that the project sends and that have no own floor."""
        taken = {key for key, _ in self.rows + self.typed}
        keys = (f"{evaluator}:{metric}" for evaluator, metric in pairs)
        return [(key, "") for key in dict.fromkeys(keys) if key not in taken]


Field: TypeAlias = NumberField | ChoicesField | PairsField


def filled(detector: Detector, values: Mapping[str, object]) -> list[Field]:
    """Make a detector's fields and fill them from settings."""
    return [_class_of(knob).filled(knob, values) for knob in detector.knobs.values()]


def sent(detector: Detector, form: Form) -> list[Field]:
    """Make a detector's fields and fill them from a form."""
    return [_class_of(knob).sent(knob, form) for knob in detector.knobs.values()]


def _class_of(knob: Knob[Any]) -> Any:
    if isinstance(knob, PairMapKnob):
        return PairsField
    return ChoicesField if isinstance(knob, ChoicesKnob) else NumberField


def _rows(form: Form, name: str) -> list[Row]:
    floors = [floor.strip() for floor in form.getlist(f"{name}.floor")]
    return list(zip(form.getlist(f"{name}.pair"), floors, strict=False))


def _number(text: str, read: Any) -> Any:
    """Read a number; what is none stays as it is, for its knob to refuse."""
    try:
        return read(text)
    except ValueError:
        return text
