"""Arithmetic on numbers as they were written: 0.7 is seven tenths, not the double beside it.

The mean of three 0.7 in floating point lies below 0.7, and two 1e308 overflow; a verdict must do
neither. `Decimal` adds (it is several times faster), `Fraction` divides and compares.
"""

import sys
from collections.abc import Collection
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from functools import lru_cache, reduce

# The digits of a double lie between 1e308 and 1e-324: 633 places, and room for any count of them.
_ADDING = Context(prec=800, traps=[Inexact])
_ROUNDING = Context(prec=50)


@lru_cache(maxsize=1024)  # floors and rates: the same few values, again and again
def exact(value: float) -> Fraction:
    """Return the number that the shortest decimal text of a finite `value` names."""
    return Fraction(Decimal(repr(value)))


def exact_sum(values: Collection[float], origin: float = 0.0) -> Decimal:
    """Return the sum of finite values, each measured from `origin`, none of them rounded.

    >>> exact_sum([0.1, 0.2])
    Decimal('0.3')
    """
    total = reduce(_ADDING.add, map(Decimal, map(repr, values)))
    return _ADDING.fma(-len(values), Decimal(repr(origin)), total) if origin else total


def ratio(numerator: Decimal, denominator: Decimal) -> Fraction:
    """Return the exact quotient."""
    (a, b), (c, d) = numerator.as_integer_ratio(), denominator.as_integer_ratio()
    return Fraction(a * d, b * c)


def rounded(value: Fraction) -> Fraction:
    """Return `value` with 50 significant digits; its denominator divides a power of ten."""
    return Fraction(_ROUNDING.divide(Decimal(value.numerator), Decimal(value.denominator)))


def nearest_float(value: Fraction) -> float:
    """Return the double nearest to `value`; the largest one where it lies beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
