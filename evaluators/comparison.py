"""Two evaluations by the same spec, answer by answer: what got worse, and by how much.

Answers are paired by case id and criterion. The baseline is held in memory without its texts, the
candidate is read once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from evaluators.bootstrap import Sums, interval
from evaluators.errors import ComparisonRefusedError
from evaluators.store.evaluations import Case
from evaluators.summary import Json, View, summarize

MET_RATE = "evaluation.met_rate"
COVERAGE = "evaluation.coverage"
SYSTEM_METRICS: Mapping[str, Json] = {
    MET_RATE: {"aggregation": "ratio", "unit": "fraction", "direction": "higher"},
    COVERAGE: {"aggregation": "ratio", "unit": "fraction", "direction": "higher"},
}
"""Metrics that every evaluation has, beside those of its evaluators."""

_SAME = {
    "judge": "judges",
    "engine_revision": "engines",
    "evaluators": "evaluators or their metrics",
    "package_version": "package versions",
}
_AVAILABLE = ("met", "violated", "not_applicable")

Sample: TypeAlias = tuple[int, int]
_Key: TypeAlias = tuple[str, str, str]


class _Answer(NamedTuple):
    """What a comparison needs of one result."""

    status: str
    revision: str
    group: str
    samples: Mapping[str, Sample]


def compare(baseline: View, candidate: View) -> Json:
    """Compare two evaluations; raises ComparisonRefusedError when they are too unlike."""
    _refuse_unlike(baseline.manifest, candidate.manifest)
    summaries = summarize(baseline), summarize(candidate)
    pairs = _Pairs(baseline, candidate, summaries[1])
    report = {
        "schema_version": 1,
        "baseline": _side(summaries[0]),
        "candidate": _side(summaries[1]),
        "decision": "",
        **pairs.to_json(),
    }
    report["decision"] = _decision(report)
    return report


def is_complete(report: Json) -> bool:
    """Say whether every answer has its pair, and a verdict on both sides."""
    return not any(report[name] for name in ("added", "removed", "mismatched", "unavailable"))


def _side(summary: Json) -> Json:
    return {
        "run_id": summary["run_id"],
        "evaluation_id": summary["evaluation_id"],
        "streams": _streams(summary["spec"]),
        "decision": summary["decision"],
    }


def _decision(report: Json) -> str:
    decisions = report["baseline"]["decision"], report["candidate"]["decision"]
    if decisions[1] == "fail" or report["regressions"]:
        return "fail"
    if "inconclusive" in decisions or not is_complete(report):
        return "inconclusive"
    return "pass"


def _refuse_unlike(baseline: Json, candidate: Json) -> None:
    if _asked(baseline["spec"]) != _asked(candidate["spec"]):
        names = [f"{m['spec']['id']} {m['spec']['revision']}" for m in (baseline, candidate)]
        raise ComparisonRefusedError(
            f"the two evaluations have different specs: {' and '.join(names)}; "
            "--baseline-evaluation-id and --candidate-evaluation-id name others than the latest"
        )
    for name, words in _SAME.items():
        if baseline.get(name) != candidate.get(name):
            raise ComparisonRefusedError(f"the two evaluations have different {words}")
    streams = _streams(baseline["spec"]), _streams(candidate["spec"])
    if max(map(len, streams)) > 1 and set(streams[0]) != set(streams[1]):
        raise ComparisonRefusedError("the two evaluations have different numbers of streams")


def _asked(spec: Json) -> Json:
    return {name: value for name, value in spec.items() if name != "streams"}


def _streams(spec: Json) -> list[str]:
    return list(spec.get("streams", ["primary"]))


class _Pairs:
    """All pairs of two evaluations, and what is left without a pair."""

    def __init__(self, baseline: View, candidate: View, summary: Json) -> None:
        # One stream can be compared with another; of several, each with itself.
        self._by_stream = len(_streams(candidate.manifest["spec"])) > 1
        self._metrics = _metrics_of(summary)
        self._metric_names = {
            criterion: (*SYSTEM_METRICS, *group["metrics"])
            for criterion, group in summary["criteria"].items()
        }
        self._transitions: Counter[tuple[str, str]] = Counter()
        self._lists: dict[str, list[Json]] = {
            name: [] for name in ("regressions", "added", "removed", "mismatched")
        }
        self._paired = self._unavailable = 0
        self._pair(baseline, candidate)

    def to_json(self) -> Json:
        """Return the report's part about pairs."""
        return {
            "paired": self._paired,
            "unavailable": self._unavailable,
            **self._lists,
            "transitions": [
                {"baseline": before, "candidate": after, "answers": count}
                for (before, after), count in sorted(self._transitions.items())
            ],
            "metrics": {name: metric.to_json() for name, metric in self._metrics.items()},
        }

    def _pair(self, baseline: View, candidate: View) -> None:
        before = dict(self._answers(baseline))
        for key, answer in self._answers(candidate):
            earlier = before.pop(key, None)
            if earlier is None:
                self._list("added", key)
            elif earlier.revision != answer.revision:
                self._list("mismatched", key)
            else:
                self._add(key, earlier, answer)
        for key in before:
            self._list("removed", key)

    def _add(self, key: _Key, before: _Answer, after: _Answer) -> None:
        self._paired += 1
        self._transitions[before.status, after.status] += 1
        if (before.status, after.status) == ("met", "violated"):
            self._list("regressions", key)
        if before.status not in _AVAILABLE or after.status not in _AVAILABLE:
            self._unavailable += 1
        for name in self._metric_names[key[2]]:
            samples = _sample(before, name), _sample(after, name)
            self._metrics[name].add(before.group, *samples)

    def _list(self, name: str, key: _Key) -> None:
        stream, case_id, criterion = key
        shown = {"stream": stream} if stream else {}
        self._lists[name].append({**shown, "case_id": case_id, "criterion_id": criterion})

    def _answers(self, view: View) -> Iterator[tuple[_Key, _Answer]]:
        known: dict[tuple[tuple[str, int, int], ...], dict[str, Sample]] = {}
        for case in view.cases(texts=False):
            stream = case.input.stream if self._by_stream else ""
            key = (stream, case.case_id, case.input.criterion_id)
            yield key, _answer(case, known)


def _answer(
    case: Case, known: dict[tuple[tuple[str, int, int], ...], dict[str, Sample]]
) -> _Answer:
    result = case.result or {"status": "pending"}
    samples = {
        name: (sample["numerator"], sample["denominator"])
        for name, sample in (result.get("metrics") or {}).items()
    }
    # Most answers have the samples of another one: kept once, fifty thousand take little memory.
    shared = known.setdefault(tuple((name, *each) for name, each in samples.items()), samples)
    return _Answer(result["status"], case.case_revision, case.split_group, shared)


def _sample(answer: _Answer, metric: str) -> Sample | None:
    """Return what an answer adds to a metric; None when it is unavailable."""
    if metric == COVERAGE:
        if answer.status == "not_applicable":
            return 0, 0
        return int(answer.status in _AVAILABLE), 1
    if metric == MET_RATE:
        return {"met": (1, 1), "violated": (0, 1), "not_applicable": (0, 0)}.get(answer.status)
    without = (0, 0) if answer.status == "not_applicable" else None
    return answer.samples.get(metric, without)


def _metrics_of(summary: Json) -> dict[str, "_Metric"]:
    described = {**SYSTEM_METRICS, **summary["metrics"]}
    return {
        name: _Metric(each["aggregation"], each["unit"], each["direction"])
        for name, each in described.items()
    }


class _Metric:
    """One metric on both sides, over the pairs that measure it on both."""

    def __init__(self, aggregation: str, unit: str, direction: str) -> None:
        self._described = {"aggregation": aggregation, "unit": unit, "direction": direction}
        self._is_count = aggregation == "count"
        self._counts = {"paired": 0, "unavailable": 0, "not_applicable": 0}
        self._groups: dict[str, Sums] = {}

    def add(self, group: str, before: Sample | None, after: Sample | None) -> None:
        """Count a pair; only one with a denominator on both sides is compared."""
        if before is None or after is None:
            self._counts["unavailable"] += 1
        elif not before[1] or not after[1]:
            self._counts["not_applicable"] += 1
        else:
            self._counts["paired"] += 1
            sums = self._groups.get(group, (0, 0, 0, 0))
            added = zip(sums, (*before, *after), strict=True)
            self._groups[group] = Sums(*(old + new for old, new in added))

    def to_json(self) -> Json:
        """Return the metric's line of the report."""
        totals = [sum(sums[place] for sums in self._groups.values()) for place in range(4)]
        before, after = self._value(*totals[:2]), self._value(*totals[2:])
        found = None if self._is_count else interval(self._groups.values())
        return {
            **self._described,
            "baseline": before,
            "candidate": after,
            "delta": None if before is None or after is None else after - before,
            "interval": None if found is None else list(found),
            "groups": len(self._groups),
            **self._counts,
            **dict(zip(Sums._fields, totals, strict=True)),
        }

    def _value(self, numerator: int, denominator: int) -> float | None:
        if not denominator:
            return None
        return float(numerator) if self._is_count else numerator / denominator
