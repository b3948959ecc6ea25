from datetime import UTC, datetime

import pytest

from detectors import HumanIntervention, ValidatorResult
from tests.detectors.factories import NOON


def read_result(payload):
    return ValidatorResult.from_payload("evt-1", 7, NOON, payload)


def read_intervention(payload):
    return HumanIntervention.from_payload("evt-1", 0, NOON, "exec-1", payload)


class TestValidatorResult:
    def test_a_payload_of_the_sdk_is_read(self):
        result = read_result(
            {
                "name": "citations",
                "passed": False,
                "severity": "critical",
                "message": "no citation for claim 3",
                "category": "missing",
            }
        )

        assert result == ValidatorResult(
            "evt-1",
            7,
            NOON,
            "citations",
            passed=False,
            severity="critical",
            message="no citation for claim 3",
            category="missing",
        )

    @pytest.mark.parametrize("payload", [None, [], "text", 5, {}])
    def test_a_payload_that_says_nothing_is_no_failure(self, payload):
        assert read_result(payload) == ValidatorResult("evt-1", 7, NOON, "", passed=None)

    @pytest.mark.parametrize(
        ("given", "passed"),
        [(True, True), (False, False), (None, None), (0, None), ("false", None), ([], None)],
    )
    def test_only_a_bool_is_a_verdict(self, given, passed):
        assert read_result({"name": "n", "passed": given}).passed is passed

    @pytest.mark.parametrize(
        ("given", "severity"),
        [
            ("critical", "critical"),
            ("error", "error"),
            ("warning", "warning"),
            ("info", "error"),
            ("CRITICAL", "error"),
            ("", "error"),
            (None, "error"),
            (3, "error"),
            (["critical"], "error"),
        ],
    )
    def test_an_unknown_severity_is_an_error(self, given, severity):
        assert read_result({"severity": given}).severity == severity

    @pytest.mark.parametrize(
        ("given", "category"),
        [
            (" missing ", "missing"),
            ("a\x00b\x1fc\x7fd\x9fe\nf", "abcdef"),
            ("\t \n", ""),
            ("x" * 81, "x" * 80),
            ("x" * 79 + " y", "x" * 79),
            (7, ""),
            (None, ""),
        ],
    )
    def test_a_category_is_trimmed_cleaned_and_cut(self, given, category):
        assert read_result({"category": given}).category == category

    @pytest.mark.parametrize(
        ("given", "message"), [("m" * 501, "m" * 500), ("", None), (5, None), (None, None)]
    )
    def test_a_message_is_cut(self, given, message):
        assert read_result({"message": given}).message == message

    @pytest.mark.parametrize(("given", "name"), [(" n ", " n "), (5, ""), (None, "")])
    def test_a_name_is_kept_as_it_is(self, given, name):
        assert read_result({"name": given}).name == name


class TestHumanIntervention:
    def test_a_payload_of_the_sdk_is_read(self):
        intervention = read_intervention(
            {
                "request_id": "hitl-899f9c5d7e17",
                "question": "Send the refund?",
                "response_kind": "approved",
                "decided_at": "2026-12-01T13:00:00.5+01:00",
                "wait_duration_ms": 102,
                "sla_seconds": 60,
            }
        )

        assert intervention == HumanIntervention(
            "evt-1",
            0,
            NOON,
            "exec-1",
            "hitl-899f9c5d7e17",
            "approved",
            datetime(2026, 12, 1, 12, 0, 0, 500_000, tzinfo=UTC),
            102,
            60,
        )

    @pytest.mark.parametrize("payload", [None, [], "text", 5, {}])
    def test_a_payload_that_says_nothing_is_no_decision(self, payload):
        assert read_intervention(payload) == HumanIntervention("evt-1", 0, NOON, "exec-1", "", "")

    @pytest.mark.parametrize("given", ["5", 5.0, True, None, [5], float("nan")])
    def test_only_a_whole_number_is_a_duration(self, given):
        intervention = read_intervention({"wait_duration_ms": given, "sla_seconds": given})

        assert (intervention.wait_duration_ms, intervention.sla_seconds) == (None, None)

    @pytest.mark.parametrize("kind", [None, 5, ["timeout"]])
    def test_a_response_kind_of_another_type_is_none(self, kind):
        assert read_intervention({"response_kind": kind}).response_kind == ""

    @pytest.mark.parametrize(
        "given",
        [
            None,
            5,
            "",
            "yesterday",
            "2026-12-01",
            "2026-12-01T12:00:00",
            "0001-01-01T00:00:00+14:00",
            "9999-12-31T23:59:59-14:00",
        ],
    )
    def test_without_a_time_and_its_zone_the_events_own_time_counts(self, given):
        intervention = read_intervention({"decided_at": given})

        assert intervention.decided_at is None
        assert intervention.effective_at == NOON

    def test_the_time_of_the_decision_counts_before_that_of_its_event(self):
        intervention = read_intervention({"decided_at": "2026-12-01T10:30:00Z"})

        assert intervention.effective_at == NOON.replace(hour=10, minute=30)
