"""Amounts of money: decimal numbers outside, whole millionths (micros) inside, and no binary fraction in between."""

from decimal import Decimal
from typing import Any

from marshmallow import ValidationError, fields

LARGEST = 1_000_000

_MICROS = 1_000_000
_MICRO = Decimal("0.000001")


class Money(fields.Field[int]):
    """An amount above 0 and up to LARGEST, with at most six decimals; loaded as micros, dumped as a Decimal."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise ValidationError("a number.")
        if not 0 < value <= LARGEST:
            raise ValidationError(f"above 0, {LARGEST} at most.")
        # JSON's numbers come as floats, and str gives back what was written: no amount needs more than 13 digits.
        micros, rest = divmod(Decimal(str(value)), _MICRO)
        if rest:
            raise ValidationError("six decimals at most.")
        return int(micros)

    def _serialize(self, value: int | None, *_: Any, **__: Any) -> Decimal | None:
        return None if value is None else amount(value)


def amount(micros: int) -> Decimal:
    """Return an amount as people write it: 20,000 micros are 0.02."""
    return Decimal(micros) / _MICROS
