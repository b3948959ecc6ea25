"""grounding_failure: an evaluator's own verdict, or a mean score below the project's floor.

Two steps, so that a preview can judge stored summaries by other thresholds: `summarise` counts the
scores of an execution for each (evaluator, metric) pair, `judge` decides which pairs have failed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from detectors.events import EVENT_ORDER, MAX_MESSAGE, EvalScore
from detectors.exact import exact, nearest_float
from detectors.figures import UNIT_SCALE, Scale, figures
from detectors.findings import Finding, Findings, JsonValue, Severity
from detectors.knobs import Bounds, FloatKnob, PairMapKnob

NAME = "grounding_failure"
DESCRIPTION = "An evaluator failed an output, or the mean of its scores fell below the floor."
EVENT_TYPE = "eval_score"
SEVERITY: Severity = "critical"  # wire.md 6.4

MEAN_FLOOR = FloatKnob(
    name="mean_floor",
    default=0.5,
    bounds=Bounds(0, 1),
    description="The mean that the scores of a pair must reach in an execution,"
    " unless the pair has a floor of its own.",
)
PER_EVALUATOR_FLOORS = PairMapKnob(
    name="per_evaluator_floors",
    default={},
    bounds=Bounds(0, 1),
    max_entries=50,
    max_key_bytes=513,  # an evaluator's and a metric's name of 256 bytes each, and the colon
    description="Floors of single pairs, in place of mean_floor.",
)
KNOBS = (MEAN_FLOOR, PER_EVALUATOR_FLOORS)

MAX_REASONS = 3
"""Reasons that are kept of each pair."""

FloorSource: TypeAlias = Literal["default", "project", "per_evaluator"]


class PairSummary(NamedTuple):
    """The scores of one (evaluator, metric) pair in one execution.

    Attributes:
        events: All scores of the pair.
        measured: Those that enter the mean: finite, and higher is better.
        mean: Of the measured scores, exact; None without any.
        lowest: Of the measured scores.
        highest: Of the measured scores.
        unmeasured: Scores that are missing or not finite.
        failed: Explicit `passed: false`.
        failed_rank: The pair's place, from 0, among those with a failed verdict, in event order.
        higher_is_better: False if every event of the pair says so. Then `measured`, `mean`,
            `lowest` and `highest` tell of these inverse scores, and no floor applies to them.
        raw_out_of_range: A score without a scale lies outside [0, 1]: no floor can judge it.
        reasons: The first few, those of failed verdicts before the others.
    """

    evaluator_id: str
    metric_type: str
    events: int
    measured: int
    mean: Fraction | None
    lowest: float | None
    highest: float | None
    unmeasured: int
    failed: int
    failed_rank: int | None
    higher_is_better: bool
    raw_out_of_range: bool
    reasons: tuple[str, ...]


class Floor(NamedTuple):
    """The mean that a pair must reach, and who said so."""

    value: float
    source: FloorSource


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The floors in force in a project.

    `version` 0 is that of a project without settings. `is_own_mean_floor` says that the project
    chose `mean_floor` even though it equals the default.
    """

    mean_floor: float = MEAN_FLOOR.default
    per_evaluator_floors: Mapping[str, float] = field(default_factory=dict)
    version: int = 0
    is_own_mean_floor: bool = False

    @classmethod
    def from_values(cls, values: Mapping[str, object], version: int) -> "Thresholds":
        """Read stored knob values; what is not allowed (any more) falls back to the default.

        A bad entry of the map takes only itself out.
        """
        mean_floor = MEAN_FLOOR.stored_in(values)
        return cls(
            mean_floor=MEAN_FLOOR.default if mean_floor is None else mean_floor,
            per_evaluator_floors=PER_EVALUATOR_FLOORS.good_entries(values),
            version=version,
            is_own_mean_floor=mean_floor is not None,
        )

    def floor(self, evaluator_id: str, metric_type: str) -> Floor:
        """Return the pair's own floor if it has one, else the project's."""
        own = self.per_evaluator_floors.get(_key(evaluator_id, metric_type))
        if own is not None:
            return Floor(own, "per_evaluator")
        is_project = self.is_own_mean_floor or self.mean_floor != MEAN_FLOOR.default
        return Floor(self.mean_floor, "project" if is_project else "default")


def detect(scores: Iterable[EvalScore], thresholds: Thresholds) -> Findings:
    """Find the pairs of one execution that have failed.

    >>> from datetime import UTC, datetime
    >>> noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    >>> scores = [
    ...     EvalScore("evt-1", 1, noon, "ragas", "faithfulness", 0.2, passed=True),
    ...     EvalScore("evt-2", 2, noon, "ragas", "faithfulness", 0.4, passed=True),
    ...     EvalScore("evt-3", 3, noon, "hhem", "factual_consistency", 0.95, passed=False),
    ... ]
    >>> for finding in detect(scores, Thresholds()).found:
    ...     print(finding.signature, finding.rule, finding.evidence["mean"])
    grounding_failure:hhem:factual_consistency failed_verdict 0.95
    grounding_failure:ragas:faithfulness mean_below_floor 0.3
    """
    return judge(summarise(scores), thresholds)


def summarise(scores: Iterable[EvalScore]) -> list[PairSummary]:
    """Sum up the scores of one execution, a summary a pair, in the order of their first events.

    The order in which `scores` arrive does not matter; event ids are taken to be unique. A blank
    evaluator takes no part.
    """
    pairs: dict[tuple[str, str], list[EvalScore]] = {}
    failed: dict[tuple[str, str], int] = {}
    for score in sorted(scores, key=EVENT_ORDER):
        pair = score.evaluator_id, score.metric_type
        if not pair[0].strip():
            continue
        pairs.setdefault(pair, []).append(score)
        if score.passed is False:
            failed.setdefault(pair, len(failed))
    return [_summary(pair, events, failed.get(pair)) for pair, events in pairs.items()]


def judge(summaries: Iterable[PairSummary], thresholds: Thresholds) -> Findings:
    """Decide which pairs of one execution have failed (detectors.md, grounding_failure).

    Failed verdicts come first, in event order (rule 1); then the means below their floor, in byte
    order of `evaluator_id:metric_type` (rule 2); a pair fires once (rule 3), and what exceeds 20
    findings is counted (rule 4).
    """
    failed: list[PairSummary] = []
    others: list[PairSummary] = []
    for summary in summaries:
        (others if summary.failed_rank is None else failed).append(summary)
    failed.sort(key=attrgetter("failed_rank"))
    others.sort(key=_byte_order)
    findings = [_finding(summary, "failed_verdict", thresholds) for summary in failed]
    findings += [
        _finding(summary, "mean_below_floor", thresholds)
        for summary in others
        if _is_below_floor(summary, thresholds)
    ]
    return Findings.capped(findings)


def _summary(
    pair: tuple[str, str], events: Sequence[EvalScore], failed_rank: int | None
) -> PairSummary:
    evaluator_id, metric_type = pair
    failed = 0 if failed_rank is None else sum(event.passed is False for event in events)
    upright: dict[Scale, list[float]] = {}
    inverse: dict[Scale, list[float]] = {}
    is_inverse = True
    unmeasured = 0
    raw_out_of_range = False
    for event in events:
        if event.higher_is_better:
            is_inverse = False
        score = event.score
        if score is None or not isfinite(score):
            unmeasured += 1
            continue
        scale = _scale(event)
        if scale is None and not 0 <= score <= 1:
            raw_out_of_range = True
        side = upright if event.higher_is_better else inverse
        side.setdefault(scale or UNIT_SCALE, []).append(score)
    shown = figures(inverse if is_inverse else upright)
    return PairSummary(
        evaluator_id,
        metric_type,
        len(events),
        shown.measured,
        shown.mean,
        shown.lowest,
        shown.highest,
        unmeasured,
        failed,
        failed_rank,
        not is_inverse,
        raw_out_of_range,
        _first_reasons(events),
    )


def _scale(event: EvalScore) -> Scale | None:
    lowest, highest = event.scale_min, event.scale_max
    if lowest is None or highest is None:
        return None
    is_range = isfinite(lowest) and isfinite(highest) and lowest < highest
    return (lowest, highest) if is_range else None


def _first_reasons(events: Sequence[EvalScore]) -> tuple[str, ...]:
    given = [event for event in events if event.reason and event.reason.strip()]
    if not given:
        return ()
    given.sort(key=lambda event: event.passed is not False)
    return tuple((event.reason or "")[:MAX_MESSAGE] for event in given[:MAX_REASONS])


def _key(evaluator_id: str, metric_type: str) -> str:
    return f"{evaluator_id}:{metric_type}"


def _byte_order(summary: PairSummary) -> tuple[str, str]:
    # Python compares text by code points, which is the byte order of its UTF-8.
    return _key(summary.evaluator_id, summary.metric_type), summary.evaluator_id


def _is_below_floor(summary: PairSummary, thresholds: Thresholds) -> bool:
    if summary.mean is None or not summary.higher_is_better:
        return False
    floor = thresholds.floor(summary.evaluator_id, summary.metric_type)
    return summary.mean < exact(floor.value)


def _finding(summary: PairSummary, rule: str, thresholds: Thresholds) -> Finding:
    key = _key(summary.evaluator_id, summary.metric_type)
    return Finding(
        failure_class=NAME,
        signature=f"{NAME}:{key}",
        rule=rule,
        evaluator_id=summary.evaluator_id,
        metric_type=summary.metric_type,
        severity=SEVERITY,
        evidence={"rule": rule, **_evidence(summary, thresholds)},
    )


def _evidence(summary: PairSummary, thresholds: Thresholds) -> dict[str, JsonValue]:
    floor = thresholds.floor(summary.evaluator_id, summary.metric_type)
    mean = summary.mean
    return {
        "scores": summary.events,
        "measured": summary.measured,
        "mean": None if mean is None else nearest_float(mean),
        "mean_exact": None if mean is None else str(mean),
        "lowest": summary.lowest,
        "highest": summary.highest,
        "failed_verdicts": summary.failed,
        "unmeasured": summary.unmeasured,
        "floor": floor.value,
        "floor_source": floor.source,
        "threshold_version": thresholds.version,
        "higher_is_better": summary.higher_is_better,
        "raw_out_of_range": summary.raw_out_of_range,
        "reasons": list(summary.reasons),
    }
