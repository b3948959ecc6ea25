import pytest

from detectors import crashes


def test_a_crash_is_known_by_its_signature():
    (finding,) = crashes.detect("crashed", "536c3c739749c549").found

    assert finding.failure_class == "crashes"
    assert finding.signature == "536c3c739749c549"
    assert finding.severity == "critical"
    assert finding.evidence == {"rule": "crashed", "crash_signature": "536c3c739749c549"}


@pytest.mark.parametrize(
    ("status", "crash_signature"),
    [
        ("crashed", None),
        ("crashed", ""),
        ("crashed", "  "),
        ("halted", "halt:step_count"),
        ("completed", "536c3c739749c549"),
        ("started", "536c3c739749c549"),
        ("CRASHED", "536c3c739749c549"),
        ("", "536c3c739749c549"),
    ],
)
def test_anything_else_is_no_crash(status, crash_signature):
    assert crashes.detect(status, crash_signature).found == ()


def test_a_very_long_signature_is_bounded():
    (finding,) = crashes.detect("crashed", "Error: " * 10_000).found

    assert finding.signature.startswith("Error: Error: ")
    assert len(finding.signature.encode()) <= 600
