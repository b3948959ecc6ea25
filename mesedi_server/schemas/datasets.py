"""What a dataset of a group is to hold, as addresses say it."""

from collections.abc import Mapping
from dataclasses import dataclass

from marshmallow import EXCLUDE, Schema, fields, validate

from mesedi_server.schemas.bodies import load

DEFAULT_LIMIT = 10_000
"""Executions of a group that a dataset is about where none are asked for."""
MAX_LIMIT = 100_000
"""The most of them."""
MAX_PASSING = 1_000_000
"""The most passing answers that can be asked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a dataset is to hold.

    Args:
        limit: executions of the group, the newest.
        passing: passing answers, the newest; None: as many as there are failing ones.
    """

    limit: int = DEFAULT_LIMIT
    passing: int | None = None


class _Wanted(Schema):
    class Meta:
        unknown = EXCLUDE

    limit = fields.Integer(load_default=DEFAULT_LIMIT, validate=validate.Range(1, MAX_LIMIT))
    passing = fields.Integer(load_default=None, validate=validate.Range(0, MAX_PASSING))


_WANTED = _Wanted()


def read(query: Mapping[str, str]) -> Wanted:
    """Read `limit` and `passing`; empty fields count as absent.

    Raises:
        RefusedError: out of range, or no numbers.
    """
    given = {name: value for name, value in query.items() if value != ""}
    return Wanted(**load(_WANTED, given))
