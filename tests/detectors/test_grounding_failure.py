import json
import math
from fractions import Fraction

import pytest

from detectors import Thresholds, grounding_failure
from tests.detectors.factories import NOON, make_score

NAN = math.nan
INF = math.inf
TRUE, FALSE, ABSENT = True, False, None
VERDICT, MEAN = "failed_verdict", "mean_below_floor"


def detect(*scores, **thresholds):
    return grounding_failure.detect(scores, Thresholds(**thresholds))


def rules(findings):
    return [(f.signature.removeprefix("grounding_failure:"), f.rule) for f in findings.found]


def fired_rule(findings):
    return findings.found[0].rule if findings.found else None


# The lines of detectors.md that must hold: scores of one pair, the floor, the rule that fires.
LINES = {
    "a failed verdict outranks a good score": ([(0.95, FALSE)], 0.5, VERDICT),
    "a mean of 0.3": ([(0.2, TRUE), (0.3, TRUE), (0.4, TRUE)], 0.5, MEAN),
    "the floor itself": ([(0.5, TRUE)], 0.5, None),
    "no verdict, low score": ([(0.4, ABSENT)], 0.5, MEAN),
    "null is unmeasured": ([(0.9, ABSENT), (None, ABSENT)], 0.5, None),
    "NaN only": ([(NAN, ABSENT)], 0.5, None),
    "NaN with a failed verdict": ([(NAN, FALSE)], 0.5, VERDICT),
    "its own floor": ([(0.7, TRUE)], 0.9, MEAN),
    "a pair fires once": ([(0.1, FALSE), (0.2, TRUE)], 0.5, VERDICT),
    # Means that only exact arithmetic decides.
    "three 0.7 at 0.7": ([(0.7, ABSENT)] * 3, 0.7, None),
    "ten 0.1 at 0.1": ([(0.1, ABSENT)] * 10, 0.1, None),
    "0.1, 0.2, 0.3 at 0.2": ([(0.1, ABSENT), (0.2, ABSENT), (0.3, ABSENT)], 0.2, None),
    "the next double under the floor": ([(math.nextafter(0.7, 0), ABSENT)], 0.7, MEAN),
    "a hair under the floor": (
        [(0.7, ABSENT), (0.7, ABSENT), (0.6999999999999999, TRUE)],
        0.7,
        MEAN,
    ),
    "two 1e308": ([(1e308, ABSENT), (1e308, ABSENT)], 0.5, None),
    "two -1e308": ([(-1e308, ABSENT), (-1e308, ABSENT)], 0.5, MEAN),
    "huge scores that cancel": ([(1e308, ABSENT), (0.8, ABSENT), (-1e308, ABSENT)], 0.3, MEAN),
    "huge scores that cancel, over": (
        [(1e308, ABSENT), (0.9, ABSENT), (-1e308, ABSENT)],
        0.3,
        None,
    ),
    "the smallest score is over zero": ([(5e-324, ABSENT)], 0.0, None),
    "the smallest score is under one hundredth": ([(5e-324, ABSENT)], 0.01, MEAN),
    # Unmeasured scores neither lift nor drag down.
    "infinity": ([(INF, ABSENT), (0.4, ABSENT)], 0.5, MEAN),
    "minus infinity": ([(-INF, ABSENT), (0.6, ABSENT)], 0.5, None),
    "null beside a low score": ([(None, TRUE), (0.4, TRUE)], 0.5, MEAN),
    "null with a failed verdict": ([(None, FALSE)], 0.5, VERDICT),
    # Bounds of the floor.
    "a floor of 0 never fires on 0": ([(0.0, ABSENT)], 0.0, None),
    "a floor of 0 fires below": ([(-0.1, ABSENT)], 0.0, MEAN),
    "minus zero is zero": ([(-0.0, ABSENT)], 0.0, None),
    "a floor of 1 fires below": ([(0.9999999999999999, TRUE)], 1.0, MEAN),
    "a floor of 1 is reached": ([(1.0, TRUE), (1.0, TRUE)], 1.0, None),
    # A passing verdict does not stop the floor; a later failure does not hide behind a pass.
    "passed, but below": ([(0.4, TRUE)], 0.5, MEAN),
    "failed at last": ([(0.9, TRUE), (0.9, FALSE)], 0.5, VERDICT),
    "above one as it is": ([(5.0, ABSENT), (-4.2, ABSENT)], 0.5, MEAN),
}


@pytest.mark.parametrize(("line", "floor", "rule"), LINES.values(), ids=LINES.keys())
def test_a_line_of_scores_fires_its_rule(line, floor, rule):
    scores = [make_score(score, passed) for score, passed in line]

    findings = detect(*scores, per_evaluator_floors={"ragas:faithfulness": floor})

    assert fired_rule(findings) == rule
    assert len(findings.found) == (rule is not None)


@pytest.mark.parametrize(
    ("score", "passed", "rule"),
    [(0.1, TRUE, None), (0.1, ABSENT, None), (0.1, FALSE, VERDICT), (None, FALSE, VERDICT)],
)
def test_an_inverse_metric_is_judged_by_its_verdict_alone(score, passed, rule):
    findings = detect(make_score(score, passed, higher_is_better=False))

    assert fired_rule(findings) == rule


def test_an_inverse_score_does_not_enter_the_mean_of_its_pair():
    findings = detect(make_score(0.4), make_score(1.0, higher_is_better=False))

    assert findings.found[0].evidence["mean"] == 0.4
    assert findings.found[0].evidence["measured"] == 1
    assert findings.found[0].evidence["scores"] == 2


def test_no_scores_no_findings():
    assert grounding_failure.detect([], Thresholds()) == detect()
    assert detect().found == ()
    assert detect().overflow == 0


@pytest.mark.parametrize("evaluator_id", ["", " ", "\t\n", "\u2003"])
def test_a_blank_evaluator_takes_no_part(evaluator_id):
    score = make_score(0.1, FALSE, evaluator_id=evaluator_id)

    assert grounding_failure.summarise([score]) == []
    assert detect(score).found == ()


def test_names_are_kept_as_they_are():
    findings = detect(
        make_score(0.1, evaluator_id=" Ragas ", metric_type="Faithful ness "),
        make_score(0.1, evaluator_id="Ragas", metric_type=""),
        make_score(0.1, evaluator_id="ragas", metric_type=""),
    )

    assert [f.signature for f in findings.found] == [
        "grounding_failure: Ragas :Faithful ness ",
        "grounding_failure:Ragas:",
        "grounding_failure:ragas:",
    ]


class TestOrder:
    def test_failed_verdicts_come_first_in_event_order_then_means_in_byte_order(self):
        findings = detect(
            make_score(0.1, ABSENT, "b/mean", sequence=1),
            make_score(0.9, FALSE, "z/verdict", sequence=3),
            make_score(0.9, FALSE, "y/verdict", sequence=4),
            make_score(0.9, FALSE, "x/verdict", sequence=2),
            make_score(0.1, ABSENT, "a/mean", sequence=5),
        )

        assert rules(findings) == [
            ("x:verdict", VERDICT),
            ("z:verdict", VERDICT),
            ("y:verdict", VERDICT),
            ("a:mean", MEAN),
            ("b:mean", MEAN),
        ]

    def test_equal_sequences_are_ordered_by_time_then_event_id(self):
        later = NOON.replace(hour=13)
        findings = detect(
            make_score(0.9, FALSE, "late/m", sequence=0, timestamp=later, event_id="evt-1"),
            make_score(0.9, FALSE, "second/m", sequence=0, timestamp=NOON, event_id="evt-3"),
            make_score(0.9, FALSE, "first/m", sequence=0, timestamp=NOON, event_id="evt-2"),
        )

        assert [f.evaluator_id for f in findings.found] == ["first", "second", "late"]

    def test_a_pair_stands_where_its_first_failed_verdict_stands(self):
        findings = detect(
            make_score(0.9, TRUE, "early/m"),
            make_score(0.9, FALSE, "other/m"),
            make_score(0.9, FALSE, "early/m"),
            make_score(0.9, FALSE, "other/m"),
        )

        assert [f.evaluator_id for f in findings.found] == ["other", "early"]

    def test_means_are_walked_in_byte_order_not_in_alphabetical_order(self):
        names = ["é", "z", "Z", "a", "\U0001f600", "\uffff", "a:", "a!"]
        findings = detect(*(make_score(0.1, evaluator_id=name, metric_type="m") for name in names))

        in_bytes = sorted(names, key=lambda name: f"{name}:m".encode())
        assert [f.evaluator_id for f in findings.found] == in_bytes

    def test_pairs_with_one_key_text_are_ordered_by_their_evaluator(self):
        findings = detect(
            make_score(0.1, evaluator_id="a:b", metric_type="c"),
            make_score(0.1, evaluator_id="a", metric_type="b:c"),
        )

        assert [f.evaluator_id for f in findings.found] == ["a", "a:b"]


class TestPairs:
    def test_pairs_with_one_key_text_are_two_pairs(self):
        findings = detect(
            make_score(0.2, evaluator_id="a:b", metric_type="c"),
            make_score(0.9, evaluator_id="a", metric_type="b:c"),
        )

        assert [(f.evaluator_id, f.metric_type) for f in findings.found] == [("a:b", "c")]

    def test_pairs_with_one_key_text_share_a_floor_and_a_signature(self):
        findings = detect(
            make_score(0.8, evaluator_id="a:b", metric_type="c"),
            make_score(0.8, evaluator_id="a", metric_type="b:c"),
            per_evaluator_floors={"a:b:c": 0.9},
        )

        assert [f.signature for f in findings.found] == ["grounding_failure:a:b:c"] * 2
        assert [f.evidence["floor"] for f in findings.found] == [0.9, 0.9]

    def test_three_evaluators_of_one_output_are_three_findings(self):
        findings = detect(
            make_score(0.2, FALSE, "ragas/faithfulness"),
            make_score(0.3, ABSENT, "ragas/answer_relevancy"),
            make_score(0.1, FALSE, "hhem/factual_consistency"),
        )

        assert rules(findings) == [
            ("ragas:faithfulness", VERDICT),
            ("hhem:factual_consistency", VERDICT),
            ("ragas:answer_relevancy", MEAN),
        ]


class TestCap:
    @pytest.mark.parametrize(
        ("pairs", "overflow"), [(19, 0), (20, 0), (21, 1), (25, 5), (130, 110)]
    )
    def test_twenty_pairs_are_found_and_the_others_counted(self, pairs, overflow):
        findings = detect(*(make_score(0.1, FALSE, f"judge/m{n:03}") for n in range(pairs)))

        assert len(findings.found) == min(pairs, 20)
        assert findings.overflow == overflow

    def test_the_cap_cuts_means_before_verdicts(self):
        means = [make_score(0.1, ABSENT, f"a/m{n:02}") for n in range(15)]
        verdicts = [make_score(0.9, FALSE, f"z/m{n:02}") for n in range(10)]

        findings = detect(*means, *verdicts)

        assert rules(findings) == [
            *((f"z:m{n:02}", VERDICT) for n in range(10)),
            *((f"a:m{n:02}", MEAN) for n in range(10)),
        ]
        assert findings.overflow_signatures == tuple(
            f"grounding_failure:a:m{n:02}" for n in range(10, 15)
        )

    def test_at_most_a_hundred_signatures_of_the_cut_are_kept(self):
        findings = detect(*(make_score(0.1, FALSE, f"judge/m{n:03}") for n in range(150)))

        assert findings.overflow == 130
        assert findings.overflow_signatures[0] == "grounding_failure:judge:m020"
        assert findings.overflow_signatures[-1] == "grounding_failure:judge:m119"
        assert len(findings.overflow_signatures) == 100

    def test_only_failing_pairs_count_towards_the_cap(self):
        passing = [make_score(0.9, TRUE, f"good/m{n}") for n in range(50)]
        failing = [make_score(0.1, ABSENT, f"judge/m{n}") for n in range(20)]

        findings = detect(*passing, *failing)

        assert (len(findings.found), findings.overflow) == (20, 0)


class TestThresholds:
    def test_a_lower_threshold_lets_the_score_pass(self):
        score = make_score(0.45)

        assert fired_rule(detect(score)) == MEAN
        assert fired_rule(detect(score, mean_floor=0.4)) is None

    def test_a_pairs_own_floor_leaves_the_others_alone(self):
        strict, plain = make_score(0.7, pair="ragas/strict"), make_score(0.7, pair="ragas/plain")

        findings = detect(strict, plain, per_evaluator_floors={"ragas:strict": 0.9})

        assert [f.metric_type for f in findings.found] == ["strict"]

    def test_a_pairs_own_floor_may_be_lower(self):
        findings = detect(
            make_score(0.3), mean_floor=0.8, per_evaluator_floors={"ragas:faithfulness": 0.2}
        )

        assert findings.found == ()

    def test_a_pairs_own_floor_of_zero_counts(self):
        findings = detect(make_score(0.1), per_evaluator_floors={"ragas:faithfulness": 0.0})

        assert findings.found == ()

    @pytest.mark.parametrize(
        ("values", "floor"),
        [
            ({}, (0.5, "default")),
            ({"mean_floor": 0.7}, (0.7, "project")),
            ({"mean_floor": 0.5}, (0.5, "project")),
            ({"mean_floor": 0}, (0.0, "project")),
            ({"per_evaluator_floors": {"ragas:faithfulness": 0.9}}, (0.9, "per_evaluator")),
            ({"per_evaluator_floors": {"ragas:faithfulness": 0}}, (0.0, "per_evaluator")),
            ({"per_evaluator_floors": {"ragas:other": 0.9}}, (0.5, "default")),
            ({"per_evaluator_floors": {"Ragas:faithfulness": 0.9}}, (0.5, "default")),
            (
                {"mean_floor": 0.7, "per_evaluator_floors": {"ragas:faithfulness": 0.5}},
                (0.5, "per_evaluator"),
            ),
            # What can no longer be allowed falls back.
            ({"mean_floor": 1.5}, (0.5, "default")),
            ({"mean_floor": None}, (0.5, "default")),
            ({"mean_floor": "0.7"}, (0.5, "default")),
            ({"mean_floor": True}, (0.5, "default")),
            ({"mean_floor": NAN}, (0.5, "default")),
            ({"mean_floor": 0.7, "per_evaluator_floors": None}, (0.7, "project")),
            ({"mean_floor": 0.7, "per_evaluator_floors": [1]}, (0.7, "project")),
            ({"per_evaluator_floors": {"ragas:faithfulness": 7}}, (0.5, "default")),
            ({"per_evaluator_floors": {"ragas:faithfulness": None}}, (0.5, "default")),
            (
                {"per_evaluator_floors": {"bad": 7, "ragas:faithfulness": 0.9}},
                (0.9, "per_evaluator"),
            ),
            ({"another_knob": 0.7}, (0.5, "default")),
        ],
    )
    def test_stored_values_give_a_floor_and_its_source(self, values, floor):
        thresholds = Thresholds.from_values(values, version=3)

        assert thresholds.floor("ragas", "faithfulness") == floor
        assert thresholds.version == 3

    def test_a_floor_given_in_code_is_the_projects(self):
        assert Thresholds(mean_floor=0.7).floor("a", "b").source == "project"
        assert Thresholds().floor("a", "b").source == "default"

    def test_more_entries_than_a_project_may_write_still_count_when_stored(self):
        floors = {f"judge:m{n}": 0.9 for n in range(60)}

        thresholds = Thresholds.from_values({"per_evaluator_floors": floors}, version=1)

        assert thresholds.floor("judge", "m59") == (0.9, "per_evaluator")


class TestEvidence:
    def test_a_finding_tells_all_that_led_to_it(self):
        findings = detect(
            make_score(0.2, TRUE, reason="first"),
            make_score(0.7, FALSE, reason="second"),
            make_score(None, ABSENT),
            make_score(0.3, FALSE),
            mean_floor=0.6,
            version=4,
        )

        (finding,) = findings.found
        assert finding.failure_class == "grounding_failure"
        assert finding.signature == "grounding_failure:ragas:faithfulness"
        assert (finding.evaluator_id, finding.metric_type) == ("ragas", "faithfulness")
        assert finding.severity == "critical"
        assert finding.evidence == {
            "rule": "failed_verdict",
            "scores": 4,
            "measured": 3,
            "mean": 0.4,
            "mean_exact": "2/5",
            "lowest": 0.2,
            "highest": 0.7,
            "failed_verdicts": 2,
            "unmeasured": 1,
            "floor": 0.6,
            "floor_source": "project",
            "threshold_version": 4,
            "higher_is_better": True,
            "raw_out_of_range": False,
            "reasons": ["second", "first"],
        }

    def test_without_a_measured_score_there_is_no_mean(self):
        (finding,) = detect(make_score(NAN, FALSE)).found

        evidence = finding.evidence
        assert (evidence["mean"], evidence["mean_exact"]) == (None, None)
        assert (evidence["lowest"], evidence["highest"]) == (None, None)
        assert (evidence["measured"], evidence["unmeasured"]) == (0, 1)

    def test_an_inverse_pair_shows_the_figures_of_its_inverse_scores(self):
        (finding,) = detect(
            make_score(0.1, FALSE, higher_is_better=False),
            make_score(0.3, TRUE, higher_is_better=False),
        ).found

        assert finding.evidence["higher_is_better"] is False
        assert finding.evidence["mean"] == 0.2
        assert finding.evidence["measured"] == 2

    def test_a_mean_is_the_double_nearest_to_the_exact_one(self):
        (finding,) = detect(make_score(0.1), make_score(0.2), make_score(0.2)).found

        assert finding.evidence["mean_exact"] == "1/6"
        assert finding.evidence["mean"] == 1 / 6

    @pytest.mark.parametrize(
        "scores",
        [[1e308, 1e308], [-1.7976931348623157e308, 5e-324], [NAN, INF, -INF], [0.1, None]],
    )
    def test_evidence_is_json_whatever_the_scores(self, scores):
        (finding,) = detect(*(make_score(score, FALSE) for score in scores)).found

        text = json.dumps(finding.evidence, allow_nan=False)

        assert json.loads(text) == finding.evidence


class TestReasons:
    def reasons(self, *scores):
        (summary,) = grounding_failure.summarise(scores)
        return summary.reasons

    def test_those_of_failed_verdicts_come_first(self):
        reasons = self.reasons(
            make_score(0.9, TRUE, reason="passed"),
            make_score(0.9, FALSE, reason="failed"),
            make_score(0.9, ABSENT, reason="no verdict"),
            make_score(0.9, FALSE, reason="failed again"),
        )

        assert reasons == ("failed", "failed again", "passed")

    def test_three_are_kept_in_event_order(self):
        scores = [make_score(0.1, reason=f"reason {n}") for n in range(5)]

        assert self.reasons(*reversed(scores)) == ("reason 0", "reason 1", "reason 2")

    def test_blank_ones_do_not_count(self):
        scores = [make_score(0.1, reason=reason) for reason in [None, "", " \n", "why", None, "so"]]

        assert self.reasons(*scores) == ("why", "so")

    def test_a_long_one_is_cut_to_500_characters(self):
        scores = [make_score(0.1, reason="é" * 501), make_score(0.1, reason="é" * 500)]

        assert self.reasons(*scores) == ("é" * 500, "é" * 500)


class TestScale:
    @pytest.mark.parametrize(
        ("scores", "scale", "floor", "mean", "rule"),
        [
            ([3.0], (1.0, 5.0), 0.5, Fraction(1, 2), None),
            ([2.9999999999999996], (1.0, 5.0), 0.5, Fraction("0.4999999999999999"), MEAN),
            ([1.0, 2.0], (1.0, 5.0), 0.5, Fraction(1, 8), MEAN),
            ([0.7], (0.0, 1.0), 0.7, Fraction(7, 10), None),
            ([0.3, 0.4, 0.5], (0.1, 0.7), 0.5, Fraction(1, 2), None),
            ([-1.0], (-2.0, 2.0), 0.25, Fraction(1, 4), None),
            ([60.0, 80.0], (0.0, 100.0), 0.7, Fraction(7, 10), None),
            ([2.0], (0.0, 3.0), 0.5, Fraction(2, 3), None),
            ([7.0], (1.0, 5.0), 0.5, Fraction(3, 2), None),
            ([0.0], (1.0, 5.0), 0.5, Fraction(-1, 4), MEAN),
        ],
    )
    def test_a_score_enters_as_its_place_on_the_scale(self, scores, scale, floor, mean, rule):
        scale_min, scale_max = scale
        rated = [make_score(s, scale_min=scale_min, scale_max=scale_max) for s in scores]

        (summary,) = grounding_failure.summarise(rated)

        assert summary.mean == mean
        assert fired_rule(detect(*rated, mean_floor=floor)) == rule

    def test_lowest_and_highest_are_places_on_the_scale(self):
        rated = [make_score(s, scale_min=1.0, scale_max=5.0) for s in [2.0, 5.0, 3.0]]

        (summary,) = grounding_failure.summarise([*rated, make_score(0.1)])

        assert (summary.lowest, summary.highest) == (0.1, 1.0)
        assert summary.mean == (Fraction(1, 4) + 1 + Fraction(1, 2) + Fraction(1, 10)) / 4

    @pytest.mark.parametrize(
        "scale",
        [(None, 5.0), (1.0, None), (5.0, 1.0), (1.0, 1.0), (NAN, 5.0), (1.0, INF), (-INF, INF)],
    )
    def test_a_scale_that_is_none_leaves_the_score_as_it_is(self, scale):
        scale_min, scale_max = scale

        (summary,) = grounding_failure.summarise(
            [make_score(3.0, scale_min=scale_min, scale_max=scale_max)]
        )

        assert summary.mean == 3
        assert summary.raw_out_of_range

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"score": 0.0}, False),
            ({"score": 1.0}, False),
            ({"score": math.nextafter(1.0, 2.0)}, True),
            ({"score": -5e-324}, True),
            ({"score": 3.0}, True),
            ({"score": 3.0, "scale_min": 1.0, "scale_max": 5.0}, False),
            ({"score": 9.0, "scale_min": 1.0, "scale_max": 5.0}, False),
            ({"score": INF}, False),
            ({"score": None}, False),
            ({"score": 3.0, "higher_is_better": False}, True),
        ],
    )
    def test_a_raw_score_outside_0_to_1_is_told(self, fields, expected):
        (summary,) = grounding_failure.summarise([make_score(0.5), make_score(**fields)])

        assert summary.raw_out_of_range is expected

    def test_a_score_beyond_all_doubles_is_shown_as_the_largest(self):
        scores = [make_score(s, scale_min=0.0, scale_max=5e-324) for s in [1e308, -1e308, -1.0]]

        (finding,) = detect(*scores).found

        assert finding.evidence["lowest"] == -1.7976931348623157e308
        assert finding.evidence["highest"] == 1.7976931348623157e308
        json.dumps(finding.evidence, allow_nan=False)

    def test_four_scales_of_extreme_numbers_have_a_mean_that_can_be_written(self):
        scales = [(-1.7976931348623157e308, 5e-324 * n) for n in range(1, 5)]
        scores = [
            make_score(-1.2345678901234567e-300, scale_min=low, scale_max=high)
            for low, high in scales
        ]

        (finding,) = detect(*scores, mean_floor=1.0).found

        assert Fraction(finding.evidence["mean_exact"]) < 1

    def test_a_scale_of_its_own_for_each_of_ten_thousand_scores_is_judged_all_the_same(self):
        scores = [make_score(0.25, scale_min=0.0, scale_max=1 + n / 10_000) for n in range(10_000)]

        (finding,) = detect(*scores).found

        recount = sum(0.25 / (1 + n / 10_000) for n in range(10_000)) / 10_000
        assert finding.evidence["mean"] == pytest.approx(recount, rel=1e-12)
        assert len(finding.evidence["mean_exact"]) < 200


class TestTwoSteps:
    def test_stored_summaries_can_be_judged_again_in_any_order(self):
        scores = [make_score(0.1 * n, None if n % 3 else FALSE, f"judge/m{n}") for n in range(10)]
        summaries = grounding_failure.summarise(scores)

        for floor in (0.0, 0.3, 0.5, 1.0):
            thresholds = Thresholds(mean_floor=floor)
            assert grounding_failure.judge(
                reversed(summaries), thresholds
            ) == grounding_failure.detect(scores, thresholds)

    def test_summaries_stand_in_the_order_of_their_first_events(self):
        scores = [make_score(pair=pair) for pair in ["b/x", "a/x", "b/x", "a/y"]]

        summaries = grounding_failure.summarise(reversed(scores))

        assert [(s.evaluator_id, s.metric_type) for s in summaries] == [
            ("b", "x"),
            ("a", "x"),
            ("a", "y"),
        ]

    def test_the_rank_counts_pairs_with_a_failed_verdict(self):
        scores = [
            make_score(pair="a/m"),
            make_score(passed=FALSE, pair="b/m"),
            make_score(passed=FALSE, pair="b/m"),
            make_score(passed=FALSE, pair="a/m"),
            make_score(passed=TRUE, pair="c/m"),
        ]

        ranks = {s.evaluator_id: s.failed_rank for s in grounding_failure.summarise(scores)}

        assert ranks == {"a": 1, "b": 0, "c": None}
