"""A judge described by environment variables: no line of Python is needed.

`mesedi-eval evaluate RUN --spec S --judge-factory evaluators.adapters:from_environment`
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from evaluators.adapters.openai_chat import OpenAIChat, PriceTable
from evaluators.errors import FactoryError

_Value = TypeVar("_Value")


def _flag(text: str) -> bool:
    return {"1": True, "true": True, "0": False, "false": False}[text.lower()]


def _temperature(text: str) -> float | None:
    return None if text == "none" else float(text)


_OPTIONS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "MESEDI_JUDGE_TIMEOUT_S": ("timeout_s", float),
    "MESEDI_JUDGE_JSON_MODE": ("json_mode", _flag),
    "MESEDI_JUDGE_TEMPERATURE": ("temperature", _temperature),
    "MESEDI_JUDGE_MAX_OUTPUT_TOKENS": ("max_output_tokens", int),
    "MESEDI_JUDGE_OUTPUT_TOKENS_FIELD": ("output_tokens_field", str),
    "MESEDI_JUDGE_MAX_INPUT_BYTES": ("max_input_bytes", int),
}
_INPUT_PRICE = "MESEDI_JUDGE_INPUT_MICROS_PER_MILLION"
_OUTPUT_PRICE = "MESEDI_JUDGE_OUTPUT_MICROS_PER_MILLION"


def from_environment() -> OpenAIChat:
    """Make an `OpenAIChat` of the variables `MESEDI_JUDGE_...`; an empty one counts as unset.

    `MESEDI_JUDGE_URL` and `MESEDI_JUDGE_MODEL` are required, `MESEDI_JUDGE_KEY` is the API key, the
    others are named after the arguments. Raises FactoryError, which never shows a value.
    """
    options: dict[str, Any] = {
        name: _read(variable, kind)
        for variable, (name, kind) in _OPTIONS.items()
        if os.environ.get(variable)
    }
    return OpenAIChat(
        _required("MESEDI_JUDGE_URL"),
        _required("MESEDI_JUDGE_MODEL"),
        api_key=os.environ.get("MESEDI_JUDGE_KEY") or None,
        prices=_prices(),
        **options,
    )


def _prices() -> PriceTable | None:
    given = [name for name in (_INPUT_PRICE, _OUTPUT_PRICE) if os.environ.get(name)]
    if not given:
        return None
    return PriceTable(_read(_INPUT_PRICE, int), _read(_OUTPUT_PRICE, int))


def _read(variable: str, kind: Callable[[str], _Value]) -> _Value:
    try:
        return kind(_required(variable))
    except (ValueError, KeyError):
        raise FactoryError(f"{variable} is not of the form that is expected") from None


def _required(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise FactoryError(f"{variable} is not set")
    return value
