"""The units that a quantity can have, and the exact conversion to the base unit of each dimension.

Every factor is a finite decimal once temperatures are counted in ninths of a kelvin, so that values
are compared as `Decimal`: exact, and linear in the number of digits, which neither `int` nor
`Fraction` is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from math import gcd

_EXACT = Context(
    prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, InvalidOperation], clamp=0
)

_GRAINS = {"temperature": 9}
"""How many grains make the base unit; 1 where nothing is said."""

SHOWN_DIGITS = 4300
"""A longer value is compared like any other but not written as a fraction, whose reduction takes
quadratic time. It is also where Python's own integers stop to be printable."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit whose base value is `number * factor + offset`, counted in grains of the base unit."""

    dimension: str
    factor: Decimal
    offset: Decimal

    def grains(self, digits: str, sign: int) -> Decimal:
        """Convert a number in this unit.

        Args:
            digits: Decimal digits of any script with at most one point.
            sign: 1 or -1.
        """
        factor = self.factor if sign > 0 else -self.factor
        return _EXACT.fma(Decimal(digits), factor, self.offset)


def base_fraction(dimension: str, grains: Decimal) -> str | None:
    """Write a value in the base unit as a reduced fraction; None above SHOWN_DIGITS."""
    if len(str(grains)) > SHOWN_DIGITS:
        return None
    top, bottom = grains.as_integer_ratio()
    bottom *= _GRAINS.get(dimension, 1)
    common = gcd(top, bottom)
    whole = f"{Decimal(top // common):f}"  # Decimal prints integers that str() would refuse
    return whole if bottom == common else f"{whole}/{Decimal(bottom // common):f}"


def _unit(dimension: str, factor: str, offset: str) -> Unit:
    grains = _GRAINS.get(dimension, 1)
    return Unit(dimension, _decimal(Fraction(factor) * grains), _decimal(Fraction(offset) * grains))


def _decimal(value: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))


# dimension, factor, offset, symbols, names that also take an s
_TABLE = (
    ("length", "1/1000", "0", "mm", "millimeter, millimetre"),
    ("length", "1/100", "0", "cm", "centimeter, centimetre"),
    ("length", "1", "0", "m", "meter, metre"),
    ("length", "1000", "0", "km", "kilometer, kilometre"),
    ("mass", "1/1000000", "0", "mcg, \u00b5g, \u03bcg", "microgram"),  # micro sign, Greek mu
    ("mass", "1/1000", "0", "mg", "milligram"),
    ("mass", "1", "0", "g", "gram"),
    ("mass", "1000", "0", "kg", "kilogram"),
    ("volume", "1/1000", "0", "ml", "milliliter, millilitre"),
    ("volume", "1", "0", "l", "liter, litre"),
    ("time", "1", "0", "s", "sec, second"),
    ("time", "60", "0", "", "min, minute"),
    ("time", "3600", "0", "h", "hr, hour"),
    ("time", "86400", "0", "", "day"),
    ("time", "604800", "0", "", "week"),
    ("temperature", "1", "273.15", "° c, c, celsius, degrees celsius", ""),
    ("temperature", "5/9", "45967/180", "° f, f, fahrenheit, degrees fahrenheit", ""),
    ("temperature", "1", "0", "k, kelvin", ""),
    ("ratio", "1/100", "0", "%, percent", ""),
    *((name, "1", "0", "", name) for name in ("drop", "part", "cup", "tsp", "tbsp", "gallon")),
    *((name, "1", "0", "", name) for name in ("month", "year")),
)


def _spelled() -> Iterator[tuple[str, Unit]]:
    for dimension, factor, offset, symbols, names in _TABLE:
        unit = _unit(dimension, factor, offset)
        singular = names.split(", ") if names else []
        plural = [f"{name}s" for name in singular]
        for spelling in (*(symbols.split(", ") if symbols else ()), *singular, *plural):
            yield spelling, unit


_BY_SPELLING = dict(_spelled())

SPELLINGS = tuple(_BY_SPELLING)
"""How units are written, in lower case; a space stands for white space, possibly none."""

_BY_KEY = {spelling.replace(" ", "").casefold(): unit for spelling, unit in _BY_SPELLING.items()}


def named(spelling: str) -> Unit:
    """Return the unit of one of SPELLINGS, in any case; KeyError for anything else."""
    unit = _BY_KEY.get(spelling)  # most are written like this
    return unit or _BY_KEY["".join(spelling.split()).casefold()]
