"""How a project may have its answers judged, and what a person may say about a call."""

from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate, validates_schema

from evaluators.faithfulness import DEFAULT_MIN_CORRECTNESS
from mesedi_server.schemas.flags import Flag
from mesedi_server.schemas.money import Money, amount
from mesedi_server.schemas.names import Name

ANSWERS = ("failing", "sample", "all")
MAX_URL = 500
MAX_MODEL = 200
MAX_KEY = 1_000
MAX_CALLS_PER_DAY = 10_000
MAX_CALLS_PER_MONTH = 100_000
MAX_CONCURRENCY = 8
HIGHEST = 10
MAX_REASON = 500
MAX_REPLY_BYTES = 1_000_000
"""Bytes of a judge's reply that are taken, from the judge as from a person who found it."""
USUAL_DAYS = 7
MAX_DAYS = 90
"""Days whose failing answers can be judged after the fact."""

USUAL = {
    "is_on": False,
    "url": "",
    "model": "",
    "calls_per_day": 100,
    "calls_per_month": 1_000,
    "concurrency": 1,
    "answers": "failing",
    "sample_percent": 10,
    "min_correctness": DEFAULT_MIN_CORRECTNESS,
    "cost_per_call": None,
    "cost_per_day": None,
    "cost_per_month": None,
}
"""What a project without a judge begins with."""


def _number(lowest: int, highest: int, name: str) -> fields.Integer:
    return fields.Integer(
        strict=True, load_default=USUAL[name], validate=validate.Range(lowest, highest)
    )


def _money(name: str) -> Money:
    return Money(attribute=f"{name}_micros", allow_none=True, load_default=USUAL[name])


def _check_reply(reply: str) -> None:
    if len(reply.encode()) > MAX_REPLY_BYTES:
        raise ValidationError(f"{MAX_REPLY_BYTES} bytes at most: no judge's reply is longer.")


class _JudgeSettings(Schema):
    class Meta:
        unknown = RAISE

    is_on = Flag(load_default=False)
    url = Name(longest=MAX_URL, shortest=1, required=True)
    model = Name(longest=MAX_MODEL, shortest=1, required=True)
    calls_per_day = _number(0, MAX_CALLS_PER_DAY, "calls_per_day")
    calls_per_month = _number(0, MAX_CALLS_PER_MONTH, "calls_per_month")
    concurrency = _number(1, MAX_CONCURRENCY, "concurrency")
    answers = fields.String(load_default=USUAL["answers"], validate=validate.OneOf(ANSWERS))
    sample_percent = _number(0, 100, "sample_percent")
    min_correctness = _number(0, HIGHEST, "min_correctness")
    cost_per_call = _money("cost_per_call")
    cost_per_day = _money("cost_per_day")
    cost_per_month = _money("cost_per_month")
    # Absent: the one that is there stays. None: it is removed. No message shows it.
    key = fields.String(
        allow_none=True,
        validate=[
            validate.Length(1, MAX_KEY, error="between 1 and {max} characters."),
            validate.Regexp(r"[!-~]+\Z", error="ASCII characters without spaces."),
        ],
    )

    @validates_schema
    def _check_sample(self, data: dict[str, Any], **_: Any) -> None:
        if data["answers"] == "sample" and not data["sample_percent"]:
            raise ValidationError("from 1 to 100.", "sample_percent")

    @validates_schema
    def _check_money(self, data: dict[str, Any], **_: Any) -> None:
        bound = data["cost_per_call_micros"]
        for name in ("cost_per_day", "cost_per_month"):
            budget = data[f"{name}_micros"]
            if budget is None:
                continue
            if bound is None:
                raise ValidationError("needed, since there is a budget in money.", "cost_per_call")
            if budget < bound:
                raise ValidationError(
                    f"less than the {amount(bound)} that one call can cost: none would be made.",
                    name,
                )


class _Settlement(Schema):
    class Meta:
        unknown = RAISE

    # None: the judge gave none. Empty: it gave one without a text.
    reply = fields.String(load_default=None, allow_none=True, validate=_check_reply)
    reason = fields.String(required=True, validate=validate.Length(1, MAX_REASON))


class _Earlier(Schema):
    class Meta:
        unknown = RAISE

    days = fields.Integer(
        strict=True, load_default=USUAL_DAYS, validate=validate.Range(1, MAX_DAYS)
    )


SETTINGS = _JudgeSettings()
SETTLEMENT = _Settlement()
EARLIER = _Earlier()
