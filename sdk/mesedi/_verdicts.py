"""What an answer of the server means for what was sent. Pure."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from mesedi._courier import SILENT, UNREACHABLE, Answer
from mesedi._plain import Json

_REDIRECTIONS = range(300, 400)
_SUCCESSES = range(200, 300)


class Fate(enum.Enum):
    """What to do with what was sent."""

    TAKEN = "the server has it"
    AGAIN = "this one waits a while"
    PAUSE = "everything waits a while"
    HELD = "everything waits for a person"
    SPLIT = "send it in smaller parts; alone, give it up"
    REFUSED = "the server will never take it"


@dataclass(frozen=True)
class Verdict:
    """One answer, understood. `refused` maps places in the batch to the server's reason."""

    fate: Fate
    reason: str = ""
    retry_after_s: float | None = None
    refused: Mapping[int, str] = field(default_factory=dict)
    refused_unnamed: int = 0
    counted: int | None = None
    """How many events the server says it has, or refused; None: it does not say."""


_BY_STATUS = {
    400: Fate.SPLIT,
    401: Fate.HELD,
    402: Fate.HELD,
    403: Fate.HELD,
    405: Fate.HELD,
    408: Fate.AGAIN,
    413: Fate.SPLIT,
    422: Fate.SPLIT,
    425: Fate.AGAIN,
    429: Fate.PAUSE,
}


def judge(answer: Answer, method: str) -> Verdict:
    """Decide what `answer` means for a request of `method`."""
    if answer in (UNREACHABLE, SILENT):
        fate = Fate.PAUSE if answer is UNREACHABLE else Fate.AGAIN
        return Verdict(fate, answer.content.decode())
    if answer.status in _SUCCESSES:
        return _acknowledgement(answer)
    return Verdict(_fate(answer, method), f"HTTP {answer.status}", answer.retry_after_s)


def _fate(answer: Answer, method: str) -> Fate:
    if answer.status in _BY_STATUS:
        return _BY_STATUS[answer.status]
    if answer.status in _REDIRECTIONS or (answer.status in (404, 410) and method == "POST"):
        return Fate.HELD  # nobody of ours lives at this address
    if answer.status >= 500 or answer.status < 200:  # noqa: PLR2004
        return Fate.PAUSE if answer.retry_after_s is not None else Fate.AGAIN
    return Fate.REFUSED


def _acknowledgement(answer: Answer) -> Verdict:
    body = answer.json()
    if not isinstance(body, dict) or body.get("ok") is False:
        # A proxy's page, a captive portal: a 200 that no Mesedi server wrote stores nothing.
        return Verdict(Fate.AGAIN, f"HTTP {answer.status} without an acknowledgement")
    named = _named_refusals(body.get("errors"))
    rejected = body.get("rejected")
    total = rejected if isinstance(rejected, int) else 0
    unnamed = max(0, total - len(named))
    return Verdict(Fate.TAKEN, refused=named, refused_unnamed=unnamed, counted=_counted(body))


def _counted(body: dict[str, Json]) -> int | None:
    accepted = body.get("accepted")
    if not isinstance(accepted, int):
        return None
    others = (body.get(name) for name in ("duplicates", "rejected"))
    return accepted + sum(other for other in others if isinstance(other, int))


def _named_refusals(errors: Json) -> dict[int, str]:
    named: dict[int, str] = {}
    for error in errors if isinstance(errors, list) else ():
        if isinstance(error, dict) and isinstance(index := error.get("index"), int):
            named[index] = str(error.get("reason") or "no reason given")
    return named
