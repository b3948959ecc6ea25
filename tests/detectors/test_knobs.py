import json
import math

import pytest

from detectors import DETECTORS, EVENT_TYPES, KnobError
from detectors.grounding_failure import MEAN_FLOOR, PER_EVALUATOR_FLOORS
from detectors.hitl_rejection_spike import (
    EDITED_RATE,
    MEASUREMENT_WINDOW_MINUTES,
    MIN_SAMPLE,
    REJECTED_RATE,
)
from detectors.hitl_timeout import FIRE_MODES


def floors(count):
    return {f"judge:m{n}": 0.5 for n in range(count)}


@pytest.mark.parametrize(
    ("knob", "value", "normalised"),
    [
        (MEAN_FLOOR, 0.7, 0.7),
        (MEAN_FLOOR, 0, 0.0),
        (MEAN_FLOOR, 1, 1.0),
        (MEAN_FLOOR, 0.0, 0.0),
        (MEAN_FLOOR, 1.0, 1.0),
        (MEASUREMENT_WINDOW_MINUTES, 5, 5),
        (MEASUREMENT_WINDOW_MINUTES, 1440, 1440),
        (MIN_SAMPLE, 1, 1),
        (MIN_SAMPLE, 10_000, 10_000),
        (REJECTED_RATE, 1, 1.0),
        (REJECTED_RATE, 5e-324, 5e-324),
        (EDITED_RATE, 0.3, 0.3),
        (PER_EVALUATOR_FLOORS, {}, {}),
        (
            PER_EVALUATOR_FLOORS,
            {"a:b": 1, "a:b:c": 0.25, ":": 0},
            {"a:b": 1.0, "a:b:c": 0.25, ":": 0.0},
        ),
        (PER_EVALUATOR_FLOORS, floors(50), floors(50)),
        (
            PER_EVALUATOR_FLOORS,
            {f"{'é' * 128}:{'m' * 256}": 0.5},
            {f"{'é' * 128}:{'m' * 256}": 0.5},
        ),
        (FIRE_MODES, ["explicit"], ["explicit"]),
        (FIRE_MODES, ["sla_exceeded", "explicit", "explicit"], ["explicit", "sla_exceeded"]),
    ],
)
def test_a_good_value_is_taken(knob, value, normalised):
    checked = knob.check(value)

    assert checked == normalised
    assert json.dumps(checked) == json.dumps(normalised)  # 1 and 1.0 are equal, not the same


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        (MEAN_FLOOR, 1.5, "mean_floor out of range [0, 1]: 1.5"),
        (MEAN_FLOOR, -0.1, "mean_floor out of range [0, 1]: -0.1"),
        (MEAN_FLOOR, math.nextafter(1, 2), "mean_floor out of range [0, 1]: 1.0000000000000002"),
        (MEAN_FLOOR, 2, "mean_floor out of range [0, 1]: 2"),
        (MEAN_FLOOR, math.inf, "mean_floor out of range [0, 1]: Infinity"),
        (MEAN_FLOOR, 10**400, f"mean_floor out of range [0, 1]: 1{'0' * 79}…"),
        pytest.param(
            MEAN_FLOOR,
            10**5000,
            "mean_floor out of range [0, 1]: this int",
            id="5,000 digits",  # too many for Python to write them
        ),
        (MEAN_FLOOR, math.nan, "mean_floor must be a number, not NaN"),
        (MEAN_FLOOR, None, "mean_floor must be a number, not null"),
        (MEAN_FLOOR, True, "mean_floor must be a number, not true"),
        (MEAN_FLOOR, "0.5", 'mean_floor must be a number, not "0.5"'),
        (MEAN_FLOOR, [0.5], "mean_floor must be a number, not [0.5]"),
        (MEASUREMENT_WINDOW_MINUTES, 4, "measurement_window_minutes out of range [5, 1440]: 4"),
        (
            MEASUREMENT_WINDOW_MINUTES,
            1441,
            "measurement_window_minutes out of range [5, 1440]: 1441",
        ),
        (MIN_SAMPLE, 0, "min_sample out of range [1, 10000]: 0"),
        (MIN_SAMPLE, 10_001, "min_sample out of range [1, 10000]: 10001"),
        (MIN_SAMPLE, 3.0, "min_sample must be a whole number, not 3.0"),
        (MIN_SAMPLE, None, "min_sample must be a whole number, not null"),
        (MIN_SAMPLE, True, "min_sample must be a whole number, not true"),
        (MIN_SAMPLE, "5", 'min_sample must be a whole number, not "5"'),
        (REJECTED_RATE, 0, "rejected_rate out of range (0, 1]: 0"),
        (EDITED_RATE, 0.0, "edited_rate out of range (0, 1]: 0.0"),
        (EDITED_RATE, 1.01, "edited_rate out of range (0, 1]: 1.01"),
        (PER_EVALUATOR_FLOORS, None, "per_evaluator_floors must be an object, not null"),
        (
            PER_EVALUATOR_FLOORS,
            [["a:b", 1]],
            'per_evaluator_floors must be an object, not [["a:b", 1]]',
        ),
        (
            PER_EVALUATOR_FLOORS,
            floors(51),
            "per_evaluator_floors has 51 entries, at most 50 are allowed",
        ),
        (
            PER_EVALUATOR_FLOORS,
            {"a:b": 0.5, "c:d": 7},
            'per_evaluator_floors out of range [0, 1]: 7 (entry "c:d")',
        ),
        (
            PER_EVALUATOR_FLOORS,
            {"a:b": None},
            'per_evaluator_floors must be a number, not null (entry "a:b")',
        ),
        (
            PER_EVALUATOR_FLOORS,
            {"a:b": True},
            'per_evaluator_floors must be a number, not true (entry "a:b")',
        ),
        (
            PER_EVALUATOR_FLOORS,
            {"ragas/faithfulness": 0.5},
            'per_evaluator_floors: key "ragas/faithfulness" is not evaluator_id:metric_type',
        ),
        (
            PER_EVALUATOR_FLOORS,
            {5: 0.5},
            "per_evaluator_floors: key 5 is not evaluator_id:metric_type",
        ),
        (
            PER_EVALUATOR_FLOORS,
            {"a:\0": 0.5},
            'per_evaluator_floors: key "a:\\u0000" contains a character that is no text',
        ),
        (
            PER_EVALUATOR_FLOORS,
            {"a:\ud800": 0.5},
            'per_evaluator_floors: key "a:\\ud800" contains a character that is no text',
        ),
        (
            PER_EVALUATOR_FLOORS,
            {f"{'é' * 128}:{'m' * 257}": 0.5},
            f'per_evaluator_floors: key "{"é" * 79}… is longer than 513 bytes',
        ),
        (
            FIRE_MODES,
            [],
            "fire_modes must be a list of at least one of: explicit, sla_exceeded; not []",
        ),
        (
            FIRE_MODES,
            None,
            "fire_modes must be a list of at least one of: explicit, sla_exceeded; not null",
        ),
        (
            FIRE_MODES,
            "explicit",
            'fire_modes must be a list of at least one of: explicit, sla_exceeded; not "explicit"',
        ),
        (
            FIRE_MODES,
            ["explicit", "never"],
            'fire_modes must be a list of at least one of: explicit, sla_exceeded; not "never"',
        ),
        (
            FIRE_MODES,
            [{}],
            "fire_modes must be a list of at least one of: explicit, sla_exceeded; not {}",
        ),
    ],
)
def test_a_bad_value_is_refused_in_words(knob, value, message):
    with pytest.raises(KnobError) as refusal:
        knob.check(value)

    assert str(refusal.value) == message


def test_a_value_that_is_nested_too_deeply_to_be_shown_is_refused():
    nested = []
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(KnobError, match="mean_floor must be a number, not this list"):
        MEAN_FLOOR.check(nested)


def test_a_stored_value_that_is_no_longer_allowed_gives_the_default():
    assert MEAN_FLOOR.in_force({"mean_floor": 0.7}) == 0.7
    assert MEAN_FLOOR.in_force({"mean_floor": 0}) == 0.0
    assert MEAN_FLOOR.in_force({"mean_floor": 7}) == 0.5
    assert MEAN_FLOOR.in_force({}) == 0.5
    assert FIRE_MODES.in_force({"fire_modes": []}) == ["explicit", "sla_exceeded"]


def test_a_map_is_copied():
    given = {"a:b": 0.5}

    checked = PER_EVALUATOR_FLOORS.check(given)
    checked["c:d"] = 0.1

    assert given == {"a:b": 0.5}


ALL_KNOBS = [
    pytest.param(knob, id=f"{detector.name}/{knob.name}")
    for detector in DETECTORS.values()
    for knob in detector.knobs.values()
]


class TestRegistry:
    def test_every_tunable_detector_is_listed_with_its_knobs(self):
        assert {name: sorted(detector.knobs) for name, detector in DETECTORS.items()} == {
            "grounding_failure": ["mean_floor", "per_evaluator_floors"],
            "hitl_rejection_spike": [
                "edited_rate",
                "measurement_window_minutes",
                "min_sample",
                "rejected_rate",
            ],
            "hitl_timeout": ["fire_modes"],
        }

    def test_the_event_types_are_those_that_detectors_read(self):
        assert {"eval_score", "validator_result", "human_intervention"} == EVENT_TYPES

    @pytest.mark.parametrize("knob", ALL_KNOBS)
    def test_a_default_passes_its_own_check(self, knob):
        assert knob.check(knob.default) == knob.default
        assert json.loads(json.dumps(knob.default)) == knob.default

    @pytest.mark.parametrize("knob", ALL_KNOBS)
    def test_a_knob_says_what_it_is(self, knob):
        assert knob.value_type in {"float", "int", "json"}
        assert knob.description.endswith(".")
        assert knob.limits

    def test_names_are_keys(self):
        for name, detector in DETECTORS.items():
            assert detector.name == name
            assert all(knob.name == key for key, knob in detector.knobs.items())
