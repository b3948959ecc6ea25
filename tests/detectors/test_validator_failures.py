import json

import pytest

from detectors import validator_failures
from tests.detectors.factories import make_result


def signatures(*results):
    return [finding.signature for finding in validator_failures.detect(results).found]


@pytest.mark.parametrize(("passed", "count"), [(False, 1), (True, 0), (None, 0)])
def test_only_an_explicit_false_is_a_failure(passed, count):
    assert len(signatures(make_result(passed=passed))) == count


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_no_name_no_finding(name):
    assert signatures(make_result(name)) == []


def test_every_failing_validator_is_found_in_event_order():
    late = make_result("late", sequence=9)
    early = make_result("early", sequence=1)
    passing = make_result("passing", passed=True, sequence=0)

    assert signatures(late, passing, early) == ["early", "late"]


def test_a_category_makes_another_validator():
    results = [
        make_result("citations", category="missing"),
        make_result("citations", category="dangling"),
        make_result("citations"),
    ]

    assert signatures(*results) == ["citations:missing", "citations:dangling", "citations"]


def test_a_validator_that_fails_often_is_found_once():
    results = [make_result("schema", message=f"row {n}") for n in range(5)]

    (finding,) = validator_failures.detect(results).found

    assert finding.evidence == {
        "rule": "failed_check",
        "name": "schema",
        "category": "",
        "failures": 5,
        "messages": ["row 0", "row 1", "row 2"],
    }
    json.dumps(finding.evidence, allow_nan=False)


@pytest.mark.parametrize(
    ("severities", "worst"),
    [
        (["warning"], "warning"),
        (["warning", "error"], "error"),
        (["error", "critical", "warning"], "critical"),
        (["warning", "critical"], "critical"),
    ],
)
def test_severity_is_the_worst_of_its_failures(severities, worst):
    results = [make_result("schema", severity=severity) for severity in severities]

    (finding,) = validator_failures.detect(results).found

    assert finding.severity == worst


def test_a_passing_result_does_not_make_a_failure_worse():
    results = [
        make_result("schema", severity="warning"),
        make_result("schema", severity="critical", passed=True),
    ]

    assert validator_failures.detect(results).found[0].severity == "warning"


@pytest.mark.parametrize(("count", "overflow"), [(20, 0), (21, 1), (25, 5)])
def test_twenty_are_found_and_the_others_counted(count, overflow):
    findings = validator_failures.detect(make_result(f"check {n:02}") for n in range(count))

    assert len(findings.found) == 20
    assert findings.overflow == overflow


def test_a_very_long_name_has_a_signature_that_an_index_can_hold():
    findings = validator_failures.detect([make_result("n" * 100_000 + x) for x in "ab"])

    assert len({f.signature for f in findings.found}) == 2
    assert all(len(f.signature.encode()) <= 600 for f in findings.found)
