"""Release gates: limits on metrics, and on how much worse than a baseline an evaluation may be.

A policy is a YAML file, read as strictly as a spec. A name that the evaluation does not know is an
error, since a gate that never applies would look like one that holds.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from evaluators import strict
from evaluators.comparison import COVERAGE, MET_RATE
from evaluators.counting import counted
from evaluators.errors import SpecError
from evaluators.summary import Json

OPERATORS = ("at_least", "at_most")
_ORDER = ("fail", "inconclusive", "pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricGate:
    """A limit on a metric, of the whole evaluation or of one criterion or tag."""

    id: str
    metric: str
    operator: str
    threshold: float
    criterion: str | None = None
    tag: str | None = None
    min_denominator: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionGate:
    """How much worse than in the baseline a metric may be, in the metric's own unit."""

    id: str
    max_regression: float
    metric: str = MET_RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Gates that have to hold together."""

    id: str
    revision: str
    metric_gates: tuple[MetricGate, ...] = ()
    regression_gates: tuple[RegressionGate, ...] = ()

    def to_json(self) -> Json:
        """Return the policy with every default filled in."""
        return asdict(self)


def load(path: Path) -> Policy:
    """Read a policy from a YAML file. Raises SpecError, which names the file."""
    try:
        return from_json(strict.read_yaml(path))
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def from_json(value: object) -> Policy:
    """Build a policy from an object of plain values. Raises SpecError."""
    fields = strict.record(
        value, "policy", ("id", "revision"), ("schema_version", "metric_gates", "regression_gates")
    )
    strict.version(fields, "policy")
    gates = strict.items(fields.get("metric_gates", []), "metric gate", _metric_gate)
    regressions = strict.items(
        fields.get("regression_gates", []), "regression gate", _regression_gate
    )
    if not gates and not regressions:
        raise SpecError("policy: has no gate")
    ids = [*(gate.id for gate in gates), *(gate.id for gate in regressions)]
    strict.unique(ids, "policy: gate id")
    return Policy(
        id=strict.text(fields["id"], "policy: id"),
        revision=strict.text(fields["revision"], "policy: revision"),
        metric_gates=gates,
        regression_gates=regressions,
    )


def _metric_gate(value: object, where: str) -> MetricGate:
    optional = ("criterion", "tag", "min_denominator")
    fields = strict.record(value, where, ("id", "metric", "operator", "threshold"), optional)
    for name in ("id", "metric", *({"criterion", "tag"} & fields.keys())):
        strict.text(fields[name], f"{where}: {name}")
    strict.choice(fields["operator"], OPERATORS, f"{where}: operator")
    strict.number(fields["threshold"], f"{where}: threshold")
    strict.integer(fields.get("min_denominator", 1), f"{where}: min_denominator", 1)
    if "criterion" in fields and "tag" in fields:
        raise SpecError(f"{where}: has a criterion and a tag; one at most")
    return MetricGate(**fields)


def _regression_gate(value: object, where: str) -> RegressionGate:
    fields = strict.record(value, where, ("id", "max_regression"), ("metric",))
    for name in {"id", "metric"} & fields.keys():
        strict.text(fields[name], f"{where}: {name}")
    if strict.number(fields["max_regression"], f"{where}: max_regression") < 0:
        raise SpecError(f"{where}: max_regression must be a number from 0")
    return RegressionGate(**fields)


# Decisions


def release(summary: Json, policy: Policy | None = None, comparison: Json | None = None) -> Json:
    """Decide about a release: the evaluation's own decision and that of every gate.

    A comparison that no regression gate reads is a gate by itself. Raises SpecError for a name
    that the evaluation does not know, and for a regression gate without a comparison.
    """
    gates = [] if policy is None else [_metric_decision(g, summary) for g in policy.metric_gates]
    regressions = () if policy is None else policy.regression_gates
    gates += [_regression_decision(gate, comparison) for gate in regressions]
    if comparison is not None and not regressions:
        gates.append({"id": "comparison", "kind": "comparison", **_compared(comparison)})
    return {
        "decision": worst([summary["decision"], *(gate["decision"] for gate in gates)]),
        "evaluation": summary["decision"],
        "policy": None if policy is None else {"id": policy.id, "revision": policy.revision},
        "gates": gates,
    }


def worst(decisions: Iterable[str]) -> str:
    """Return the worst of some decisions: fail, inconclusive, pass."""
    return min(decisions, key=_ORDER.index)


def _compared(comparison: Json) -> Json:
    return {
        "decision": comparison["decision"],
        "reason": f"{counted(len(comparison['regressions']), 'regression')} in {counted(comparison['paired'], 'pair')}",
    }


def _metric_decision(gate: MetricGate, summary: Json) -> Json:
    entry = _entry(gate, _group(gate, summary))
    decision, reason = _limited(gate, entry["value"], entry["denominator"])
    measured = {name: entry[name] for name in ("value", "numerator", "denominator")}
    return {"kind": "metric", **asdict(gate), **measured, "decision": decision, "reason": reason}


def _limited(gate: MetricGate, value: float | None, denominator: int) -> tuple[str, str]:
    if value is None or denominator < gate.min_denominator:
        return "inconclusive", f"measured on {denominator}, {gate.min_denominator} are needed"
    is_high = gate.operator == "at_least"
    holds = value >= gate.threshold if is_high else value <= gate.threshold
    words = gate.operator.replace("_", " ")
    return "pass" if holds else "fail", f"{value:g}, {words} {gate.threshold:g}"


def _group(gate: MetricGate, summary: Json) -> Json:
    for kind, name in (("criteria", gate.criterion), ("tags", gate.tag)):
        if name is None:
            continue
        if name not in summary[kind]:
            raise SpecError(f"gate {gate.id!r}: the evaluation has no {name!r} among its {kind}")
        found: Json = summary[kind][name]
        return found
    return summary


def _entry(gate: MetricGate, group: Json) -> dict[str, Any]:
    if gate.metric == MET_RATE:
        met = group["counts"].get("met", 0)
        return _share(group["met_rate"], met, group["judged"])
    if gate.metric == COVERAGE:
        return _share(group["coverage"], group["judged"], group["applicable"])
    if gate.metric not in group["metrics"]:
        raise SpecError(f"gate {gate.id!r}: the evaluation has no metric {gate.metric!r} there")
    found: dict[str, Any] = group["metrics"][gate.metric]
    return found


def _share(value: float | None, numerator: int, denominator: int) -> dict[str, Any]:
    return {"value": value, "numerator": float(numerator), "denominator": denominator}


def _regression_decision(gate: RegressionGate, comparison: Json | None) -> Json:
    if comparison is None:
        raise SpecError(f"gate {gate.id!r} compares with a baseline, and none is given")
    metric = comparison["metrics"].get(gate.metric)
    if metric is None:
        raise SpecError(f"gate {gate.id!r}: the evaluation has no metric {gate.metric!r}")
    if metric["direction"] == "neutral":
        raise SpecError(f"gate {gate.id!r}: of {gate.metric!r}, neither more nor less is better")
    decision, reason = _regressed(gate, metric, comparison)
    measured = {name: metric[name] for name in ("baseline", "candidate", "delta", "paired")}
    return {
        "kind": "regression",
        **asdict(gate),
        **measured,
        "decision": decision,
        "reason": reason,
    }


def _regressed(gate: RegressionGate, metric: Json, comparison: Json) -> tuple[str, str]:
    if metric["delta"] is None:
        return "inconclusive", "no pair of answers measures it"
    worse = _worse(metric)
    words = f"worse by {float(max(worse, Fraction(0))):g}, at most {gate.max_regression:g}"
    if worse > Fraction(str(gate.max_regression)):
        return "fail", words
    lost = len(comparison["removed"]) + len(comparison["mismatched"]) + metric["unavailable"]
    if lost:
        # What is gone cannot be seen to be worse, so nothing was shown.
        return (
            "inconclusive",
            f"{words}, but {counted(lost, 'answer')} of the baseline cannot be compared",
        )
    return "pass", words


def _worse(metric: Json) -> Fraction:
    # Exact: as floats, 0.95 - 0.9 is more than 0.05.
    before, after = (
        Fraction(metric[f"{side}_numerator"])
        / (1 if metric["aggregation"] == "count" else metric[f"{side}_denominator"])
        for side in ("baseline", "candidate")
    )
    return before - after if metric["direction"] == "higher" else after - before
