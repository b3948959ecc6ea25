"""What detectors.md says of a set of events, counted plainly: by fractions, one execution at a time.

Written apart from the server: nothing of it is imported here.
"""

import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Any

CAP = 20


@dataclass(frozen=True)
class Floors:
    """The floors of a project: what is set, and the version that set it."""

    mean_floor: float | None = None
    pairs: dict[str, float] = field(default_factory=dict)
    version: int = 0

    def of(self, pair: tuple[str, str]) -> tuple[float, str]:
        if ":".join(pair) in self.pairs:
            return self.pairs[":".join(pair)], "per_evaluator"
        return (0.5, "default") if self.mean_floor is None else (self.mean_floor, "project")


@dataclass(frozen=True)
class Expected:
    """What an examination of one execution must leave."""

    found: dict[str, dict[str, Any]]
    """By group id: signature, rule, severity, and the evidence where it is counted here."""
    overflow: list[str]
    rollups: dict[tuple[str, str], dict[str, Any]]


def recount(project_id: str, events: list[dict], floors: Floors) -> Expected:
    """Count one execution's events, which may be in any order and there more than once."""
    unique = {event["event_id"]: event for event in events}
    ordered = sorted(unique.values(), key=lambda e: (e["sequence"], e["timestamp"], e["event_id"]))
    scores = [e["payload"] for e in ordered if e["event_type"] == "eval_score"]
    checks = [e["payload"] for e in ordered if e["event_type"] == "validator_result"]
    rollups = {pair: _rollup(pair, scores) for pair in _pairs(scores)}
    grounding = _grounding(scores, rollups, floors)
    validators = _validators(checks)
    found = {}
    for finding in grounding[:CAP]:
        found[_group_id(project_id, "grounding_failure", finding)] = finding
    for finding in validators[:CAP]:
        found[_group_id(project_id, "validator_failures", finding)] = finding
    overflow = [finding["signature"] for finding in grounding[CAP:] + validators[CAP:]]
    return Expected(found, overflow, rollups)


def _grounding(scores, rollups, floors):
    failed = _pairs(score for score in scores if score["passed"] is False)
    low = []
    for pair in rollups:
        values = _values(pair, scores, higher_is_better=True)
        floor = Fraction(repr(floors.of(pair)[0]))
        if pair not in failed and values and sum(values) < len(values) * floor:
            low.append(pair)
    low.sort(key=lambda pair: (":".join(pair).encode(), pair[0].encode()))
    rules = [(pair, "failed_verdict") for pair in failed]
    rules += [(pair, "mean_below_floor") for pair in low]
    return [_finding(pair, rule, scores, rollups[pair], floors) for pair, rule in rules]


def _finding(pair, rule, scores, rollup, floors):
    floor, source = floors.of(pair)
    own = [score for score in scores if _pair(score) == pair and (score["reason"] or "").strip()]
    own.sort(key=lambda score: score["passed"] is not False)
    shared = ("measured", "mean", "mean_exact", "lowest", "highest", "unmeasured")
    return {
        "signature": f"grounding_failure:{pair[0]}:{pair[1]}",
        "evaluator_id": pair[0],
        "rule": rule,
        "severity": "critical",
        "evidence": {
            "rule": rule,
            "scores": rollup["events"],
            **{name: rollup[name] for name in shared},
            "failed_verdicts": rollup["failed"],
            "floor": floor,
            "floor_source": source,
            "threshold_version": floors.version,
            "higher_is_better": rollup["higher_is_better"],
            "raw_out_of_range": rollup["raw_out_of_range"],
            "reasons": [score["reason"][:500] for score in own[:3]],
        },
    }


def _rollup(pair, scores):
    own = [score for score in scores if _pair(score) == pair]
    is_upright = any(score["higher_is_better"] is not False for score in own)
    values = _values(pair, scores, higher_is_better=is_upright)
    mean = sum(values) / len(values) if values else None
    failed = _pairs(score for score in scores if score["passed"] is False)
    return {
        "events": len(own),
        "measured": len(values),
        "mean": None if mean is None else _shown(mean),
        "mean_exact": None if mean is None else str(mean),
        "lowest": _shown(min(values)) if values else None,
        "highest": _shown(max(values)) if values else None,
        "unmeasured": sum(not _is_measured(score) for score in own),
        "failed": sum(score["passed"] is False for score in own),
        "failed_rank": failed.index(pair) if pair in failed else None,
        "higher_is_better": is_upright,
        "raw_out_of_range": any(
            _is_measured(score) and score["scale"] is None and not 0 <= score["score"] <= 1
            for score in own
        ),
    }


def _validators(checks):
    failures: dict[str, list[dict]] = {}
    for check in checks:
        if check["passed"] is False and check["name"].strip():
            signature = ":".join(filter(None, [check["name"], check["category"]]))
            failures.setdefault(signature, []).append(check)
    return [
        {
            "signature": signature,
            "evaluator_id": "",
            "rule": "failed_check",
            "severity": worst(check["severity"] for check in own),
        }
        for signature, own in failures.items()
    ]


def worst(severities) -> str:
    """The worst of some severities; what is none of the three is an error."""
    known = ("critical", "error", "warning")
    given = {severity if severity in known else "error" for severity in severities}
    return next(severity for severity in known if severity in given)


def _group_id(project_id, failure_class, finding):
    parts = [project_id, failure_class, finding["signature"]]
    if ":" in finding["evaluator_id"]:
        parts.insert(2, str(len(finding["evaluator_id"].encode())))
    return "grp-" + sha256("|".join(parts).encode()).hexdigest()[:16]


def _pair(score):
    return score["evaluator_id"], score["metric_type"]


def _pairs(scores):
    return list(dict.fromkeys(_pair(score) for score in scores))


def _is_measured(score):
    return score["score"] is not None and math.isfinite(score["score"])


def _values(pair, scores, *, higher_is_better):
    return [
        _value(score)
        for score in scores
        if _pair(score) == pair
        and _is_measured(score)
        and (score["higher_is_better"] is not False) is higher_is_better
    ]


def _value(score):
    low, high = (Fraction(repr(end)) for end in score["scale"] or (0, 1))
    return (Fraction(repr(score["score"])) - low) / (high - low)


def _shown(number):
    largest = Fraction(sys.float_info.max)
    return float(min(max(number, -largest), largest))
