"""Facts in words: why a group fired, what happened to it, numbers and times as people read them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from evaluators.counting import counted
from mesedi_server.errors import FieldsRefusedError, RefusedError

_FLOOR_SOURCES = {
    "default": "default",
    "project": "set by this project",
    "per_evaluator": "set for this pair",
}
_HISTORY = {
    "first_seen": "First seen",
    "reopened": "Opened again",
    "acknowledged": "Acknowledged",
    "resolved": "Resolved",
    "ignored": "Ignored",
    "regressed": "Regressed: failed again after it was resolved",
    "ignore_ended": "Ignore ran out, open again",
    "undone": "Last change of the state taken back",
    "commented": "Comment",
    "labelled": "Answer labelled",
    "over_strict": "Evaluator marked as over-strict",
    "over_strict_taken_back": "Over-strict mark taken back",
}
_OUTCOMES = {
    "met": "met",
    "violated": "violated",
    "needs_review": "needs a reader",
    "not_applicable": "nothing to check",
    "missing_evidence": "no readable evidence",
    "invalid": "could not be assessed",
    "unknown_outcome": "the judge's answer never came",
    "budget_blocked": "the budget is used up",
    "waiting": "not yet assessed",
}
_SPIKES = {"rejected": "rejected", "edited": "rewrote"}

NOTHING = "\N{EN DASH}"
"""What stands where there is no value."""

MAX_GIST = 100
"""Characters of a payload that a timeline shows without being asked."""

# From here on a number with two decimals says nothing.
_LARGE = 1e6
_SMALL = 0.01
_NEARLY_ALL = 99

_SAID_ELSEWHERE = {"rule", "reasons", "messages", "mean_exact"}


def why(evidence: Mapping[str, Any], metric: str = "") -> str:
    """Say in a sentence why an execution is in a group."""
    rule = str(evidence.get("rule", ""))
    sentence = _SENTENCES.get(rule)
    return rule if sentence is None else sentence(evidence, isolated(metric) if metric else "")


def reasons(evidence: Mapping[str, Any]) -> list[str]:
    """Return what the evaluator or the check itself said."""
    return [str(text) for text in evidence.get("reasons") or evidence.get("messages") or []]


def happened(kind: str) -> str:
    """Say what a line of a group's history means."""
    return _HISTORY.get(kind, kind)


def outcome(name: str) -> str:
    """Say what has become of an assessment."""
    return _OUTCOMES.get(name, name)


def number(value: float | None) -> str:
    """Write a score: two decimals where they say something."""
    if value is None:
        return NOTHING
    is_plain = value == 0 or _SMALL <= abs(value) < _LARGE
    return f"{value:.2f}" if is_plain else f"{value:.3g}"


def gist(payload: str) -> str:
    """Write the beginning of a payload on one line."""
    line = " ".join(payload[: 4 * MAX_GIST].split())
    return line if len(line) <= MAX_GIST else f"{line[:MAX_GIST]}…"


def setting(value: Any) -> str:
    """Write the value of a knob on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{isolated(key)} {item:g}" for key, item in value.items()) or "none"
    return ", ".join(value) if isinstance(value, list) else str(value)


def share(part: int, whole: int) -> str:
    """Write a part of a whole in percent; a small one that is there does not become none, nor a large one all."""
    if not whole:
        return NOTHING
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "<1 %"
    return f"{percent:.0f} %" if percent <= _NEARLY_ALL or part >= whole else ">99 %"


def evidence(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name what a finding was made of, for a table: all but what its sentence and its quotes say already."""
    return [
        (name.replace("_", " "), _fact(value))
        for name, value in facts.items()
        if name not in _SAID_ELSEWHERE and value is not None
    ]


def iso(at: datetime) -> str:
    """Write a time to the millisecond, for programs and for whoever looks closely."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(ms: float | None) -> str:
    """Write a time span."""
    if ms is None:
        return NOTHING
    seconds = ms / 1000
    if seconds < 1:
        return f"{ms:g} ms"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def isolated(text: str) -> str:
    """Keep a name's writing direction from turning the text around it (Unicode's isolates)."""
    return f"\u2068{text}\u2069"


def _mean_below_floor(evidence: Mapping[str, Any], metric: str) -> str:
    mean, floor = _told_apart(evidence.get("mean"), evidence.get("floor"))
    scores = counted(evidence.get("measured", 0), "score")
    source = _FLOOR_SOURCES.get(evidence.get("floor_source", ""), "")
    return (
        f"{_mean_of(metric)} {mean} over {scores}{_unmeasured(evidence)}, floor {floor} ({source})"
    )


def _failed_verdict(evidence: Mapping[str, Any], metric: str) -> str:
    failed, scores = evidence.get("failed_verdicts", 0), evidence.get("scores", 0)
    mean = evidence.get("mean")
    told = "no score measured" if mean is None else f"{_mean_of(metric)} {number(mean)}"
    direction = "" if evidence.get("higher_is_better", True) else " (lower is better)"
    return (
        f"failed by the evaluator's own verdict ({failed:,} of {counted(scores, 'score')}),"
        f" {told}{direction}{_unmeasured(evidence)}"
    )


def _failed_check(evidence: Mapping[str, Any], _: str) -> str:
    return f"the check said no {_times(evidence.get('failures', 0))}"


def _explicit(evidence: Mapping[str, Any], _: str) -> str:
    return f"nobody answered; the client gave up after {duration(evidence.get('wait_duration_ms'))}"


def _sla_exceeded(evidence: Mapping[str, Any], _: str) -> str:
    waited = duration(evidence.get("wait_duration_ms"))
    agreed = duration((evidence.get("sla_seconds") or 0) * 1000)
    return f"the answer took {waited}, agreed were {agreed}"


def _crashed(_evidence: Mapping[str, Any], _: str) -> str:
    return "the execution crashed"


def _spike(evidence: Mapping[str, Any], _: str) -> str:
    did = _SPIKES[evidence["rule"]]
    sample = counted(evidence.get("sample", 0), "execution")
    rate, limit = evidence.get("rate", 0), evidence.get("rate_threshold", 0)
    window = evidence.get("measurement_window_minutes", 0)
    return (
        f"people {did} {evidence.get('executions', 0):,} of {sample} ({rate:.0%})"
        f" within {window:,} min; a spike begins at {limit:.0%}"
    )


_SENTENCES: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    "mean_below_floor": _mean_below_floor,
    "failed_verdict": _failed_verdict,
    "failed_check": _failed_check,
    "explicit": _explicit,
    "sla_exceeded": _sla_exceeded,
    "crashed": _crashed,
    "rejected": _spike,
    "edited": _spike,
}


def _fact(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _times(amount: int) -> str:
    return {1: "once", 2: "twice"}.get(amount, f"{amount:,} times")


def _mean_of(metric: str) -> str:
    return f"mean {metric}".rstrip()


def _unmeasured(evidence: Mapping[str, Any]) -> str:
    unmeasured = evidence.get("unmeasured", 0)
    return f", {unmeasured:,} unmeasured" if unmeasured else ""


def _told_apart(mean: float | None, floor: float | None) -> tuple[str, str]:
    """Write a mean and the floor that it missed, with as many digits as it takes to see it."""
    if mean is None or floor is None or number(mean) != number(floor):
        return number(mean), number(floor)
    for digits in range(3, 18):
        texts = f"{mean:.{digits}f}", f"{floor:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return f"just under {number(floor)}", number(floor)


def refusal(fault: RefusedError, labels: Mapping[str, str]) -> str:
    """Say in a sentence why a form was refused, by the labels of its fields."""
    words = fault.in_words(labels) if isinstance(fault, FieldsRefusedError) else str(fault)
    return words.rstrip(".") + "."


FILTERS: dict[str, Callable[..., Any]] = {
    "count": counted,
    "duration": duration,
    "evidence": evidence,
    "gist": gist,
    "happened": happened,
    "isolated": isolated,
    "number": number,
    "outcome": outcome,
    "reasons": reasons,
    "refusal": refusal,
    "setting": setting,
    "share": share,
    "why": why,
}
"""What templates may use of this module."""
