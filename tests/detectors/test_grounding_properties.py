"""What must hold for any scores, against a plain recount written apart from the code."""

import math
import sys
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detectors import EvalScore, Thresholds, grounding_failure
from tests.detectors.factories import at

# A busy machine is no reason to fail.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

FLOORS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
# Few names, so that pairs meet, and colons, so that their key texts do.
NAMES = st.sampled_from(["a", "b", "a:b", "b:c", "c", ""])
SHORT_DECIMALS = st.integers(-2, 12).map(lambda tenths: tenths / 10)
NUMBERS = st.one_of(SHORT_DECIMALS, st.floats(allow_nan=False, allow_infinity=False))
SCORES = st.one_of(st.none(), st.sampled_from([math.nan, math.inf, -math.inf]), NUMBERS)
SCALES = st.sampled_from([(None, None), (0.0, 1.0), (1.0, 5.0), (0.1, 0.7), (5.0, 1.0)])
REASONS = st.sampled_from([None, "", " ", "unsupported", "x" * 600])


@st.composite
def executions(draw, max_size=12):
    ids = draw(st.lists(st.integers(0, 10**6), unique=True, max_size=max_size))
    return [draw(eval_scores(f"evt-{number}")) for number in ids]


@st.composite
def eval_scores(draw, event_id):
    scale_min, scale_max = draw(SCALES)
    return EvalScore(
        event_id=event_id,
        sequence=draw(st.integers(0, 3)),
        timestamp=at(draw(st.integers(0, 2))),
        evaluator_id=draw(NAMES),
        metric_type=draw(NAMES),
        score=draw(SCORES),
        passed=draw(st.sampled_from([True, False, None])),
        higher_is_better=draw(st.booleans()),
        scale_min=scale_min,
        scale_max=scale_max,
        reason=draw(REASONS),
    )


@st.composite
def thresholds(draw):
    keys = st.tuples(NAMES, NAMES).map(":".join)
    floors = draw(st.dictionaries(keys, st.sampled_from(FLOORS), max_size=4))
    return Thresholds(draw(st.sampled_from(FLOORS)), floors)


def value(event):
    score = Fraction(repr(event.score))
    if event.scale_min is None or event.scale_min >= event.scale_max:
        return score
    low, high = Fraction(repr(event.scale_min)), Fraction(repr(event.scale_max))
    return (score - low) / (high - low)


def shown(number):
    """Round to the nearest double; a score far off its scale may lie beyond them all."""
    largest = Fraction(sys.float_info.max)
    return float(min(max(number, -largest), largest))


def counted(events, *, higher_is_better):
    return [
        value(event)
        for event in events
        if event.score is not None
        and math.isfinite(event.score)
        and event.higher_is_better is higher_is_better
    ]


def recount(events, thresholds):
    """Say which pairs fail by which rule, in order, as detectors.md words it."""
    events = [e for e in events if e.evaluator_id]
    events.sort(key=lambda e: (e.sequence, e.timestamp, e.event_id))
    failed = []
    for event in events:
        pair = (event.evaluator_id, event.metric_type)
        if event.passed is False and (pair, "failed_verdict") not in failed:
            failed.append((pair, "failed_verdict"))
    others = {(e.evaluator_id, e.metric_type) for e in events} - {pair for pair, _ in failed}
    for pair in sorted(others, key=lambda pair: (":".join(pair).encode(), pair[0].encode())):
        own = [e for e in events if (e.evaluator_id, e.metric_type) == pair]
        values = counted(own, higher_is_better=True)
        floor = thresholds.per_evaluator_floors.get(":".join(pair), thresholds.mean_floor)
        if values and sum(values) < len(values) * Fraction(repr(floor)):
            failed.append((pair, "mean_below_floor"))
    return failed


@patient
@given(executions(), thresholds())
def test_findings_are_those_of_a_plain_recount(events, thresholds):
    findings = grounding_failure.detect(events, thresholds)

    expected = recount(events, thresholds)
    assert [((f.evaluator_id, f.metric_type), f.rule) for f in findings.found] == expected[:20]
    assert findings.overflow == len(expected[20:])


@patient
@given(executions(), thresholds(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(events, thresholds, random):
    shuffled = random.sample(events, len(events))

    assert grounding_failure.summarise(shuffled) == grounding_failure.summarise(events)
    assert grounding_failure.detect(shuffled, thresholds) == grounding_failure.detect(
        events, thresholds
    )


@patient
@given(executions())
def test_every_event_is_counted_once(events):
    summaries = grounding_failure.summarise(events)

    assert sum(s.events for s in summaries) == sum(bool(e.evaluator_id) for e in events)
    assert len({(s.evaluator_id, s.metric_type) for s in summaries}) == len(summaries)
    ranks = sorted(s.failed_rank for s in summaries if s.failed_rank is not None)
    assert ranks == list(range(len(ranks)))


@patient
@given(executions())
def test_a_summary_is_a_plain_recount_of_its_pair(events):
    for summary in grounding_failure.summarise(events):
        pair = (summary.evaluator_id, summary.metric_type)
        own = [e for e in events if (e.evaluator_id, e.metric_type) == pair]
        upright = any(e.higher_is_better for e in own)
        values = counted(own, higher_is_better=upright)

        assert summary.higher_is_better is upright
        assert summary.events == len(own)
        assert summary.measured == len(values)
        assert summary.mean == (sum(values) / len(values) if values else None)
        assert summary.lowest == (shown(min(values)) if values else None)
        assert summary.highest == (shown(max(values)) if values else None)
        assert summary.failed == sum(e.passed is False for e in own)
        assert (summary.failed_rank is None) == (summary.failed == 0)
        assert summary.unmeasured == sum(e.score is None or not math.isfinite(e.score) for e in own)
        assert len(summary.reasons) == min(3, sum(bool((e.reason or "").strip()) for e in own))


@patient
@given(executions(), st.sampled_from(FLOORS), st.sampled_from(FLOORS))
def test_a_higher_floor_never_lets_more_pairs_pass(events, one, other):
    lower, higher = sorted([one, other])

    few = grounding_failure.detect(events, Thresholds(lower))
    many = grounding_failure.detect(events, Thresholds(higher))

    assert {f.signature for f in few.found} <= {
        *(f.signature for f in many.found),
        *many.overflow_signatures,
    }
