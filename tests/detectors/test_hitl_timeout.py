import json

import pytest

from detectors import hitl_timeout
from tests.detectors.factories import make_intervention


def rules(*interventions, **knobs):
    return [finding.rule for finding in hitl_timeout.detect(interventions, **knobs).found]


@pytest.mark.parametrize(
    ("kind", "fires"),
    [("timeout", True), ("approved", False), ("Timeout", False), ("cancelled", False), ("", False)],
)
def test_a_response_kind_of_timeout_is_explicit(kind, fires):
    assert rules(make_intervention(kind)) == (["explicit"] if fires else [])


@pytest.mark.parametrize(
    ("wait_ms", "sla_s", "fires"),
    [
        (60_001, 60, True),
        (60_000, 60, False),
        (59_999, 60, False),
        (1, 0, False),
        (1, -5, False),
        (None, 60, False),
        (60_001, None, False),
        (10**30, 10**27, False),
        (10**30 + 1, 10**27, True),
    ],
)
def test_a_wait_longer_than_agreed_exceeds_the_sla(wait_ms, sla_s, fires):
    intervention = make_intervention(wait_duration_ms=wait_ms, sla_seconds=sla_s)

    assert rules(intervention) == (["sla_exceeded"] if fires else [])


def test_both_modes_fire_once_each_explicit_first():
    late = make_intervention(wait_duration_ms=2000, sla_seconds=1)
    timeout = make_intervention("timeout", wait_duration_ms=3000, sla_seconds=1)

    assert rules(late, timeout, late, timeout) == ["explicit", "sla_exceeded"]


@pytest.mark.parametrize("modes", [["explicit"], ["sla_exceeded"], ["explicit", "sla_exceeded"]])
def test_only_the_chosen_modes_fire(modes):
    timeout = make_intervention("timeout", wait_duration_ms=2000, sla_seconds=1)

    assert rules(timeout, fire_modes=modes) == modes


def test_the_evidence_is_the_worst_wait_and_the_first_requests():
    waits = [1500, 9000, 2000, 2500]
    interventions = [
        make_intervention(wait_duration_ms=wait, sla_seconds=1, request_id=f"hitl-{wait}")
        for wait in waits
    ]

    (finding,) = hitl_timeout.detect(reversed(interventions)).found

    assert finding.severity == "warning"
    assert finding.evidence == {
        "rule": "sla_exceeded",
        "interventions": 4,
        "wait_duration_ms": 9000,
        "sla_seconds": 1,
        "request_ids": ["hitl-1500", "hitl-9000", "hitl-2000"],
    }
    json.dumps(finding.evidence, allow_nan=False)


def test_a_timeout_without_an_agreed_time_tells_the_longest_wait():
    interventions = [
        make_intervention("timeout", wait_duration_ms=wait) for wait in [10, None, 500, 20]
    ]

    (finding,) = hitl_timeout.detect(interventions).found

    assert finding.evidence["wait_duration_ms"] == 500
    assert finding.evidence["sla_seconds"] is None
