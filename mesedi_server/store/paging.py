"""Lists come in pages; a cursor says where the last page ended."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from sqlalchemy import ColumnElement, tuple_

from mesedi_server.errors import RefusedError

T = TypeVar("T")


class Position(msgspec.Struct, array_like=True, frozen=True):
    """The last row of a page: its time, its key where times are equal, and the list that it is in."""

    at: datetime
    pk: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    listing: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Paging:
    """How long a page is, and after which row it begins."""

    limit: int = 50
    cursor: str | None = None

    def after(
        self, listing: str, at: ColumnElement[Any], pk: ColumnElement[Any]
    ) -> list[ColumnElement[bool]]:
        """Say which rows of a list come after the cursor, newest first.

        Raises:
            RefusedError: the cursor is none of ours, or another list's.
        """
        if self.cursor is None:
            return []
        position = _decode(self.cursor)
        if position.listing != listing:
            raise RefusedError("cursor: another list has answered it")
        return [tuple_(at, pk) < tuple_(position.at, position.pk)]

    def page(
        self, listing: str, rows: Sequence[T], position: Callable[[T], tuple[datetime, int]]
    ) -> Page[T]:
        """Make a page of `limit + 1` rows or fewer: one more than fits tells that there is a next one."""
        items = list(rows[: self.limit])
        has_more = len(rows) > self.limit
        return Page(items, cursor_after(listing, *position(items[-1])) if has_more else None)


def cursor_after(listing: str, at: datetime, pk: int) -> str:
    """Return the cursor of the page of a list that begins after a row."""
    position = Position(at, pk, listing)
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def _decode(cursor: str) -> Position:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.json.decode(text, type=Position)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise RefusedError("cursor: not one that a list has answered") from error
