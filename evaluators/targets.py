"""Targets: what answers the questions of a dataset, and what may be done when one was cut off.

A target factory takes no arguments and returns `(model, provider)`. The provider has a
`contract` and a method `chat(messages, request_id=...)`, which returns a `TargetReply` or the
text alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

from evaluators.canonical import canonical
from evaluators.contracts import check_digest, check_text
from evaluators.errors import FactoryError

Message = dict[str, str]
"""One turn as sent: `role` and `content`."""


@dataclass(frozen=True, slots=True)
class RecoveryContract:
    """What a target promises; frozen with the capture and compared when it is continued.

    Args:
        configuration_digest: 64 hexadecimal digits over everything that shapes the answers.
        session_state: "stateless" when an answer depends on the sent messages alone, else "opaque".
        interrupted_request: "idempotent" when the same request id may be sent again, else "refuse".
        max_attempts: requests a turn may cost in all.
    """

    configuration_digest: str
    session_state: str
    interrupted_request: str = "refuse"
    max_attempts: int = 3

    def __post_init__(self) -> None:
        check_digest(self.configuration_digest)
        if self.session_state not in {"stateless", "opaque"}:
            raise FactoryError("session_state must be stateless or opaque")
        if self.interrupted_request not in {"refuse", "idempotent"}:
            raise FactoryError("interrupted_request must be refuse or idempotent")
        if type(self.max_attempts) is not int or self.max_attempts < 1:
            raise FactoryError("max_attempts must be an integer from 1")


@dataclass(frozen=True, slots=True)
class TargetReply:
    """An answer. Without a context there is nothing to ground it on; `usage` is kept as it is."""

    text: str
    context: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None


class Provider(Protocol):
    """What answers."""

    @property
    def contract(self) -> RecoveryContract:
        """Say what may be done after an interruption."""

    def chat(self, messages: list[Message], *, request_id: str) -> TargetReply | str:
        """Answer a conversation; the same request id means the same request."""


@dataclass(frozen=True, slots=True)
class Target:
    """A provider and the name of the model behind it."""

    model: str
    provider: Provider

    def description(self, stream: str) -> dict[str, Any]:
        """Return what the manifest keeps of this target."""
        kind = type(self.provider)
        return {
            "stream": stream,
            "model": self.model,
            "mode": "generated",
            "adapter": f"{kind.__module__}.{kind.__qualname__}",
            "recovery": asdict(self.provider.contract),
        }


RECORDED = {"model": "recorded", "mode": "recorded", "adapter": None, "recovery": None}
"""What the manifest keeps of a stream whose answers are those of the dataset."""


def build(factory: Callable[[], object]) -> Target:
    """Call a target factory and check what it returns. Raises FactoryError."""
    try:
        built = factory()
    except (Exception, SystemExit) as error:
        raise FactoryError(f"the target factory failed: {type(error).__name__}") from error
    match built:
        case Target(model=model, provider=provider) | (model, provider):
            pass
        case _:
            raise FactoryError("a target factory returns (model, provider)")
    name = check_text(model, "the target's model")
    if not callable(getattr(provider, "chat", None)):
        raise FactoryError("the target's provider has no method chat")
    if not isinstance(getattr(provider, "contract", None), RecoveryContract):
        raise FactoryError("the target's provider has no RecoveryContract as contract")
    return Target(name, cast("Provider", provider))


def checked(reply: object) -> dict[str, Any]:
    """Return text, context and usage of a reply, or raise ValueError when it is not an answer."""
    if isinstance(reply, str):
        reply = TargetReply(reply)
    if not isinstance(reply, TargetReply) or not isinstance(reply.text, str):
        raise ValueError("the target must return a TargetReply or a string")  # noqa: TRY004
    for part in (reply.context, reply.usage):
        if part is not None and not isinstance(part, Mapping):
            raise ValueError("context and usage must be objects")
    answer = asdict(reply)
    canonical(answer).encode()
    return answer
