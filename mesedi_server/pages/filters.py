"""Query strings of lists: filters and pages."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from flask import request, url_for

from mesedi_server.errors import RefusedError
from mesedi_server.pages import times
from mesedi_server.schemas.events import MAX_NAME_BYTES
from mesedi_server.schemas.lenient_json import storable
from mesedi_server.store.assessments import FINDINGS
from mesedi_server.store.executions import ExecutionFilter
from mesedi_server.store.failure_groups import NEEDS_SOMEBODY, STATES, GroupFilter, State
from mesedi_server.store.paging import Paging
from mesedi_server.store.trends import Span

ALL = "all"
"""The state filter of a list that has every group."""
SPANS = (7, 30, 90)
"""Days that a list or a chart can look back."""
USUAL_SPAN = 30
"""Days that it looks back unless the address says otherwise."""
MAX_DIGITS = 9
"""Digits of a number that a form or an address may have: it fits every column."""

# What a browser's own field for numbers can send.
_DECIMAL = re.compile(r"-?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][-+]?[0-9]{1,2})?")

# Only what is named here gets into a link: an address may carry names that mean something to `url_for`.
_KEPT = (
    "q",
    "class",
    "state",
    "status",
    "evaluator",
    "metric",
    "release",
    "environment",
    "days",
    "id",
    "finding",
)


@dataclass(frozen=True, slots=True)
class Look:
    """How far a list looks back, and the days that its charts show."""

    is_unbounded: bool
    days: Span

    @property
    def name(self) -> str:
        """What the address calls it."""
        return ALL if self.is_unbounded else str(len(self.days))


def text(name: str) -> str | None:
    """Read a field of the query, no longer than a name may be; empty counts as absent."""
    value: str = storable(request.args.get(name, ""))
    return value[:MAX_NAME_BYTES] or None


def whole_number(text: str) -> int | str | None:
    """Read a whole number; what is none stays as it is, for the schema to refuse."""
    text = text.strip()
    is_number = text.isdecimal() and len(text) <= MAX_DIGITS
    return int(text) if is_number else text or None


def decimal_number(text: str) -> Decimal | str | None:
    """Read a number with decimals; what is none stays as it is, for the schema to refuse."""
    text = text.strip()
    return Decimal(text) if _DECIMAL.fullmatch(text) else text or None


def offset() -> int:
    """Read how many rows of a list come before the page; what is no number counts as 0."""
    wanted = whole_number(request.args.get("offset", ""))
    return wanted if isinstance(wanted, int) else 0


def look_back() -> Look:
    """Read how many days are wanted; for all of them, charts show the longest span.

    Raises:
        RefusedError: not one of the spans.
    """
    wanted = text("days") or str(USUAL_SPAN)
    if wanted == ALL:
        return Look(is_unbounded=True, days=times.last_days(SPANS[-1]))
    number = whole_number(wanted)
    if number not in SPANS:
        raise RefusedError(f"days: one of {', '.join(map(str, SPANS))}, {ALL}")
    return Look(is_unbounded=False, days=times.last_days(int(number)))


def groups() -> GroupFilter:
    """Read which groups are wanted; without `state`, those that need somebody.

    Raises:
        RefusedError: an unknown state.
    """
    state = text("state")
    return GroupFilter(
        q=text("q"),
        states=_states(state),
        is_empty_shown=state == ALL,
        failure_class=text("class"),
        evaluator=text("evaluator"),
        metric=text("metric"),
        release=text("release"),
        environment=text("environment"),
    )


def executions() -> ExecutionFilter:
    """Read which executions are wanted."""
    return ExecutionFilter(
        q=text("q"),
        status=text("status"),
        evaluator=text("evaluator"),
        metric=text("metric"),
        release=text("release"),
        environment=text("environment"),
    )


def finding() -> str | None:
    """Read which finding a group's executions are to have; None: any or none.

    Raises:
        RefusedError: not one of those that sums are made of.
    """
    wanted = text("finding")
    if wanted is not None and wanted not in FINDINGS:
        raise RefusedError(f"finding: one of {', '.join(FINDINGS)}")
    return wanted


def given(*names: str) -> dict[str, str]:
    """Return the filters that the address has."""
    asked = request.args.keys() & set(names)
    return {name: value for name in names if name in asked and (value := text(name))}


def paging(limit: int) -> Paging:
    """Read where the page begins."""
    return Paging(limit, request.args.get("cursor") or None)


def same_page(**changes: str | int | None) -> str:
    """Return this page's address with some of its filters changed; None takes one out."""
    fields: dict[str, Any] = {**given(*_KEPT), **changes}
    return url_for(request.endpoint or "", **(request.view_args or {}), **fields)


def _states(text: str | None) -> tuple[State, ...]:
    if text is None:
        return NEEDS_SOMEBODY
    if text == ALL:
        return STATES
    chosen = tuple(state for state in STATES if state == text)
    if not chosen:
        raise RefusedError(f"state: {text!r} is not one of {', '.join(STATES)}, {ALL}")
    return chosen
