import json
from datetime import timedelta

import pytest

from detectors import SpikeThresholds, hitl_rejection_spike
from tests.detectors.factories import NOON, make_intervention


def decisions(text):
    """Make a decision an execution: a letter each, the others approved."""
    kinds = {"r": "rejected", "e": "edited", "t": "timeout", "c": "cancelled", "f": "forwarded"}
    return [
        make_intervention(kinds.get(letter, "approved"), f"exec-{n:03}")
        for n, letter in enumerate(text)
    ]


def spikes(interventions, **thresholds):
    found = hitl_rejection_spike.detect(interventions, SpikeThresholds(**thresholds))
    return {spike.finding.rule: spike.members for spike in found}


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("rraaa", ["rejected"]),  # 2 of 5 is exactly 0.40
        ("raaaa", []),
        ("rraa", []),  # four are too few
        ("rrrr", []),
        ("r" * 399 + "a" * 601, []),
        ("r" * 400 + "a" * 600, ["rejected"]),
        ("eeeaaaaaaa", ["edited"]),  # 3 of 10 is exactly 0.30
        ("eeaaaaaaa", []),
        ("eeaaa", ["edited"]),
        ("rree", []),
        ("rreea", ["rejected", "edited"]),
        ("aaaaa", []),
        ("fffff", []),  # a free kind is a decision too
        ("rrfff", ["rejected"]),
        ("", []),
    ],
)
def test_a_rate_that_is_reached_is_a_spike(text, rules):
    assert list(spikes(decisions(text))) == rules


@pytest.mark.parametrize("nobody", ["t", "c"])
def test_a_question_that_nobody_decided_does_not_dilute_the_rate(nobody):
    assert "rejected" in spikes(decisions("rraaa" + nobody * 20))
    assert spikes(decisions("rra" + nobody * 20)) == {}


def test_a_pending_question_is_no_decision():
    pending = [make_intervention("", f"waiting-{n}") for n in range(10)]

    assert "rejected" in spikes([*decisions("rraaa"), *pending])


def test_members_are_the_executions_whose_human_rejected_or_edited():
    found = spikes(decisions("raera"), rejected_rate=0.4, edited_rate=0.2)

    assert found == {"rejected": ("exec-000", "exec-003"), "edited": ("exec-002",)}


def test_an_execution_counts_once_however_often_it_asked():
    often = [make_intervention("rejected", "exec-000") for _ in range(10)]

    assert spikes([*often, *decisions("raaaa")]) == {}


def test_an_execution_may_be_rejected_and_edited():
    both = [
        make_intervention(kind, f"exec-{n}") for n in range(5) for kind in ["edited", "rejected"]
    ]

    found = spikes(both)

    assert found["rejected"] == found["edited"] == tuple(f"exec-{n}" for n in range(5))


def test_the_order_of_decisions_changes_nothing():
    given = decisions("raereaatr")

    assert spikes(reversed(given)) == spikes(given)


@pytest.mark.parametrize(
    ("thresholds", "fires"),
    [
        ({"min_sample": 6}, False),
        ({"min_sample": 5}, True),
        ({"rejected_rate": 0.41}, False),
        ({"rejected_rate": 0.39}, True),
    ],
)
def test_the_knobs_count(thresholds, fires):
    assert ("rejected" in spikes(decisions("rraaa"), **thresholds)) is fires


def test_a_sample_of_one_may_be_enough():
    assert list(spikes(decisions("r"), min_sample=1)) == ["rejected"]
    assert spikes([], min_sample=1) == {}


def test_a_tenth_of_ten_is_exactly_a_tenth():
    assert list(spikes(decisions("raaaaaaaaa"), rejected_rate=0.1)) == ["rejected"]


def test_the_evidence_holds_the_numbers():
    thresholds = SpikeThresholds.from_values({"min_sample": 3}, version=2)

    (spike,) = hitl_rejection_spike.detect(decisions("rra"), thresholds)

    assert spike.finding.severity == "warning"
    assert spike.finding.evidence == {
        "rule": "rejected",
        "executions": 2,
        "sample": 3,
        "rate": 2 / 3,
        "rate_threshold": 0.4,
        "min_sample": 3,
        "measurement_window_minutes": 60,
        "threshold_version": 2,
    }
    json.dumps(spike.finding.evidence, allow_nan=False)


def test_stored_values_that_are_no_longer_allowed_fall_back():
    values = {"min_sample": 0, "rejected_rate": 0.2, "measurement_window_minutes": 2.5}

    thresholds = SpikeThresholds.from_values(values, version=1)

    assert thresholds == SpikeThresholds(rejected_rate=0.2, version=1)


@pytest.mark.parametrize(
    ("minutes", "is_in"), [(0, True), (60, True), (60.001, False), (-0.001, False), (30, True)]
)
def test_the_window_holds_both_its_ends(minutes, is_in):
    decision = make_intervention(
        timestamp=NOON - timedelta(days=9), decided_at=NOON - timedelta(minutes=minutes)
    )

    found = hitl_rejection_spike.decided_within([decision], until=NOON, window_minutes=60)

    assert found == ([decision] if is_in else [])


def test_without_a_time_of_decision_the_events_time_is_in_the_window():
    decision = make_intervention(timestamp=NOON)

    assert hitl_rejection_spike.decided_within([decision], NOON, 5) == [decision]
