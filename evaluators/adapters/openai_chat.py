"""Any endpoint that speaks the OpenAI chat protocol as a judge: Ollama, vLLM, hosted models.

One request is sent once: no retry, no redirect, no proxy. Whatever comes of it but a whole reply is
raised, so the outcome is unknown and nobody asks again by mistake.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evaluators.adapters import posting
from evaluators.adapters.errors import (
    EndpointFailedError,
    JudgeCallError,
    KeyInReplyError,
    PromptTooLargeError,
    RateLimitedError,
    RedirectedError,
    RequestRefusedError,
    UnreadableReplyError,
)
from evaluators.adapters.posting import Address, Response
from evaluators.canonical import canonical, digest
from evaluators.errors import FactoryError
from evaluators.judges import FinishReason, JudgeContract, JudgeReply, JudgeRequest

MAX_REPLY_BYTES = 16_000_000
FRAMING_TOKENS = 1_000
"""What a model's own template may add to the two texts of a request: far more than any does."""

_MILLION = 1_000_000
_MOST_TOKENS = 10**9  # more than any model reads; a bill beyond it is a mistake
_SHORT_KEY = 16  # shorter ones ("ollama") are words that a verdict can hold, not secrets
_OK, _TOO_MANY = 200, 429

_FINISH: Mapping[object, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}


@dataclass(frozen=True, slots=True)
class PriceTable:
    """What a model costs, in millionths of the budget's currency for a million tokens.

    2.50 a million is 2_500_000. Raises FactoryError.
    """

    input_micros_per_million: int
    output_micros_per_million: int

    def __post_init__(self) -> None:
        for name in self.__slots__:
            _check_count(getattr(self, name), name, least=0)

    def cost_micros(self, input_tokens: int, output_tokens: int) -> int:
        """Return what so many tokens cost, rounded up."""
        cost = input_tokens * self.input_micros_per_million
        cost += output_tokens * self.output_micros_per_million
        return -(-cost // _MILLION)


class OpenAIChat:
    """A judge behind `<base_url>/chat/completions`; safe to call from several threads.

    Args:
        base_url: http or https, up to and without `/chat/completions`.
        model: the model's name there.
        api_key: sent as a bearer token; it is in no digest, message or stored reply.
        api_key_variable: name of the environment variable that holds the key instead.
        timeout_s: seconds for a whole call, from connecting to the last byte.
        json_mode: ask for `response_format: json_object`.
        temperature: None leaves it to the endpoint, which some models demand.
        prices: with them the cost of a call is known whenever its usage is.
        max_output_tokens: the most that the model may write; None leaves it to the endpoint.
        output_tokens_field: what the endpoint calls that limit; newer hosted models want
            "max_completion_tokens".
        max_input_bytes: longer requests are not sent. With `prices` and `max_output_tokens` it
            makes the most that a call can cost known: no token is shorter than a byte.
        max_reply_bytes: longer replies are not taken.
        parameters: more members of the request, as they are; part of the configuration.
        is_public: connect to addresses of the public internet alone, whatever the URL's name
            stands for.

    Raises FactoryError.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        api_key_variable: str | None = None,
        timeout_s: float = 60,
        json_mode: bool = True,
        temperature: float | None = 0,
        prices: PriceTable | None = None,
        max_output_tokens: int | None = None,
        output_tokens_field: str = "max_tokens",
        max_input_bytes: int | None = None,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        parameters: Mapping[str, Any] | None = None,
        is_public: bool = False,
    ) -> None:
        if api_key_variable is not None:
            api_key = _variable(api_key_variable)
        _check_key(api_key)
        _check_timeout(timeout_s)
        _check_count(max_reply_bytes, "max_reply_bytes")
        for name, value in (
            ("max_output_tokens", max_output_tokens),
            ("max_input_bytes", max_input_bytes),
        ):
            if value is not None:
                _check_count(value, name)
        self._address = replace(_address(base_url), is_public=is_public)
        self._key = api_key
        self._timeout_s = timeout_s
        self._prices = prices
        self._max_input_bytes = max_input_bytes
        self._max_reply_bytes = max_reply_bytes
        self._settings = _settings(
            {
                "model": model,
                "temperature": temperature,
                "response_format": {"type": "json_object"} if json_mode else None,
                output_tokens_field: max_output_tokens,
            },
            parameters or {},
        )
        self.contract = JudgeContract(
            model=model,
            configuration_digest=self._configuration_digest(),
            max_cost_micros_per_call=_bound(prices, max_input_bytes, max_output_tokens),
        )

    def evaluate(self, request: JudgeRequest) -> JudgeReply:
        """Ask once. Raises JudgeCallError for everything but a whole reply."""
        size = len(request.system.encode()) + len(request.prompt.encode())
        if self._max_input_bytes is not None and size > self._max_input_bytes:
            raise PromptTooLargeError
        response = posting.post(
            self._address,
            self._body(request),
            self._headers(),
            timeout_s=self._timeout_s,
            max_bytes=self._max_reply_bytes,
        )
        self._refuse(response)
        return _reply(response.body, self._prices)

    def _configuration_digest(self) -> str:
        place = self._address
        endpoint = [place.is_secure, place.host, place.port, place.path]
        return digest({"adapter": "openai-chat", "endpoint": endpoint, "settings": self._settings})

    def _body(self, request: JudgeRequest) -> bytes:
        messages = [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.prompt},
        ]
        return canonical({**self._settings, "messages": messages, "stream": False}).encode()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def _refuse(self, response: Response) -> None:
        if response.status != _OK:
            raise _error_of(response.status)
        if self._key and len(self._key) >= _SHORT_KEY and self._key.encode() in response.body:
            raise KeyInReplyError


def _settings(own: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    if taken := sorted({"messages", "stream", "n", *own} & {*parameters}):
        raise FactoryError(f"parameters must not hold {', '.join(taken)}")
    settings = {name: value for name, value in own.items() if value is not None} | dict(parameters)
    try:
        canonical(settings).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise FactoryError(f"the judge's parameters are not JSON: {error}") from error
    return settings


def _reply(body: bytes, prices: PriceTable | None) -> JudgeReply:
    """Read a whole answer of the protocol; raises UnreadableReplyError."""
    try:
        answer = json.loads(body.decode())
        choice = answer["choices"][0]
        message = choice["message"]
        text, finish_reason = _text(message, choice.get("finish_reason"))
        usage = _usage(answer.get("usage"))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableReplyError from error
    return JudgeReply(text, finish_reason, usage, _cost(usage, prices))


def _text(message: Mapping[str, Any], finish_reason: object) -> tuple[str, FinishReason]:
    refusal = message.get("refusal")
    text = message.get("content")
    if text is None and isinstance(refusal, str) and refusal:
        return _storable(refusal), "refusal"
    if text is not None and not isinstance(text, str):
        raise TypeError("content is not text")
    known = _FINISH.get(finish_reason, "other") if isinstance(finish_reason, str) else "other"
    return _storable(text or ""), known


def _storable(text: str) -> str:
    r"""Write half a surrogate pair as the `\ud800` that it was: no file could hold it."""
    return text.encode(errors="backslashreplace").decode()


def _usage(usage: object) -> dict[str, Any] | None:
    """Keep what is said about tokens, if it is JSON."""
    if not isinstance(usage, dict):
        return None
    try:
        canonical(usage).encode()
    except ValueError:
        return None
    return usage


def _cost(usage: Mapping[str, Any] | None, prices: PriceTable | None) -> int | None:
    if usage is None or prices is None:
        return None
    tokens = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    if not all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in tokens):
        return None
    return prices.cost_micros(*tokens)  # type: ignore[arg-type]


def _bound(prices: PriceTable | None, input_bytes: int | None, tokens: int | None) -> int | None:
    if prices is None or input_bytes is None or tokens is None:
        return None
    return prices.cost_micros(input_bytes + FRAMING_TOKENS, tokens)


def _error_of(status: int) -> JudgeCallError:
    message = f"the endpoint answered {status}"
    if status == _TOO_MANY:
        return RateLimitedError(message, status)
    kinds = {3: RedirectedError, 4: RequestRefusedError}
    return kinds.get(status // 100, EndpointFailedError)(message, status)


def _address(base_url: object) -> Address:
    try:
        return posting.address(str(base_url), "/chat/completions")
    except ValueError as error:
        raise FactoryError(f"base_url {error}") from error


def _variable(name: str) -> str:
    key = os.environ.get(name, "")
    if not key:
        raise FactoryError(f"the environment variable {name} holds no key")
    return key


def _check_key(key: object) -> None:
    """Refuse what is no header value, without showing it."""
    if key is not None and not (isinstance(key, str) and re.fullmatch(r"[!-~]+", key)):
        raise FactoryError("the API key must be of ASCII characters without spaces")


def _check_timeout(timeout_s: object) -> None:
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 < timeout_s < math.inf:  # type: ignore[operator]
        raise FactoryError("timeout_s must be a finite number of seconds above 0")


def _check_count(value: object, name: str, *, least: int = 1) -> None:
    if type(value) is not int or not least <= value <= 10**12:
        raise FactoryError(f"{name} must be an integer from {least}")
