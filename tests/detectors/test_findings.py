import pytest

from detectors import (
    Finding,
    Findings,
    Thresholds,
    crashes,
    grounding_failure,
    group_id,
    hitl_rejection_spike,
    hitl_timeout,
    validator_failures,
)
from detectors.findings import bounded_signature
from tests.detectors.factories import make_intervention, make_result, make_score

LONG = "é" * 400


class TestGroupId:
    # Frozen: another id for one of these splits every group that is already stored. They were made
    # apart from the code, by hashing the documented text with `sha256sum`.
    @pytest.mark.parametrize(
        ("failure_class", "signature", "evaluator_id", "expected"),
        [
            (
                "grounding_failure",
                "grounding_failure:ragas:faithfulness",
                "ragas",
                "grp-1d9f8b65f1d3266e",
            ),
            (
                "grounding_failure",
                "grounding_failure:vectara/hhem:hallucination",
                "vectara/hhem",
                "grp-e217da94dff19f94",
            ),
            ("grounding_failure", "grounding_failure:judge:", "judge", "grp-bf76315a4258b2dc"),
            ("grounding_failure", "grounding_failure:a:b:c", "a", "grp-2020e462b64a0a69"),
            ("grounding_failure", "grounding_failure:a:b:c", "a:b", "grp-712239d5e9c29a94"),
            ("grounding_failure", "grounding_failure:é:ü:c", "é:ü", "grp-2f0bc0d0872e80a7"),
            ("validator_failures", "citations:missing", "", "grp-a1d219402493415a"),
            ("hitl_timeout", "hitl_timeout:explicit", "", "grp-32d774e999b8208a"),
            ("hitl_rejection_spike", "hitl_rejection_spike:rejected", "", "grp-901925859e419607"),
            ("crashes", "536c3c739749c549", "", "grp-678947006f90101b"),
        ],
    )
    def test_it_is_frozen(self, failure_class, signature, evaluator_id, expected):
        assert group_id("proj-1", failure_class, signature, evaluator_id) == expected

    def test_pairs_with_one_signature_are_two_groups(self):
        signature = "grounding_failure:a:b:c"

        ids = {group_id("p", "grounding_failure", signature, e) for e in ["a", "a:b", "a:b:c"]}

        assert len(ids) == 3

    def test_a_metric_cannot_imitate_the_length(self):
        colon = group_id("p", "grounding_failure", "grounding_failure:a:b:c", "a:b")

        for metric_type in ["b:c|3", "b:c|a:b", "b:c|"]:
            signature = f"grounding_failure:a:{metric_type}"
            assert group_id("p", "grounding_failure", signature, "a") != colon

    def test_projects_and_classes_are_kept_apart(self):
        ids = {group_id(p, c, "s") for p in ["p", "q"] for c in ["crashes", "validator_failures"]}

        assert len(ids) == 4

    def test_half_a_surrogate_pair_has_an_id_too(self):
        assert group_id("p", "crashes", "\ud800") != group_id("p", "crashes", "\udfff")


# Frozen like the ids: a project's alert rules and links are written against these texts.
@pytest.mark.parametrize(
    ("found", "signature"),
    [
        (
            grounding_failure.detect([make_score(0.1, pair="ragas/faithfulness")], Thresholds()),
            "grounding_failure:ragas:faithfulness",
        ),
        (
            grounding_failure.detect([make_score(0.1, pair="judge/")], Thresholds()),
            "grounding_failure:judge:",
        ),
        (validator_failures.detect([make_result("schema")]), "schema"),
        (validator_failures.detect([make_result("schema", category="type")]), "schema:type"),
        (crashes.detect("crashed", "536c3c739749c549"), "536c3c739749c549"),
        (hitl_timeout.detect([make_intervention("timeout")]), "hitl_timeout:explicit"),
        (
            hitl_timeout.detect([make_intervention(wait_duration_ms=1001, sla_seconds=1)]),
            "hitl_timeout:sla_exceeded",
        ),
    ],
)
def test_signatures_are_frozen(found, signature):
    assert [finding.signature for finding in found.found] == [signature]


@pytest.mark.parametrize("kind", ["rejected", "edited"])
def test_signatures_of_spikes_are_frozen(kind):
    decisions = [make_intervention(kind, f"exec-{n}") for n in range(5)]

    (spike,) = hitl_rejection_spike.detect(decisions, hitl_rejection_spike.SpikeThresholds())

    assert spike.finding.signature == f"hitl_rejection_spike:{kind}"


class TestBoundedSignature:
    @pytest.mark.parametrize("text", ["", "short", "x" * 600, "é" * 300])
    def test_up_to_600_bytes_it_is_the_text(self, text):
        assert bounded_signature(text) == text

    @pytest.mark.parametrize("text", ["x" * 601, "é" * 301, "\U0001f600" * 5000, "\ud800" * 300])
    def test_a_longer_one_keeps_its_head_and_fits(self, text):
        signature = bounded_signature(text)

        assert len(signature.encode()) <= 600
        head, _, digest = signature.rpartition("~")
        assert text.replace("\ud800", "").startswith(head)
        assert len(digest) == 16

    def test_two_long_texts_stay_two(self):
        assert bounded_signature(LONG + "a") != bounded_signature(LONG + "b")


def test_the_cap_keeps_the_first_and_counts_the_others():
    findings = [
        Finding(failure_class="c", signature=str(n), rule="r", severity="error", evidence={})
        for n in range(23)
    ]

    capped = Findings.capped(findings)

    assert capped.found == tuple(findings[:20])
    assert (capped.overflow, capped.overflow_signatures) == (3, ("20", "21", "22"))
