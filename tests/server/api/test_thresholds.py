"""The thresholds primitive (wire.md, section 5; detectors.md, Thresholds)."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.factories import make_close, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant

ROOT = "/me/detector-thresholds"
MEAN_FLOOR = f"{ROOT}/grounding_failure/mean_floor"
FLOORS = f"{ROOT}/grounding_failure/per_evaluator_floors"
WINDOW = f"{ROOT}/hitl_rejection_spike/measurement_window_minutes"
REJECTED_RATE = f"{ROOT}/hitl_rejection_spike/rejected_rate"
FIRE_MODES = f"{ROOT}/hitl_timeout/fire_modes"


def shown(tenant: Tenant, path: str) -> dict:
    return tenant.read.get(path).json


def history(tenant: Tenant, path: str) -> list[dict]:
    return tenant.read.get(f"{path}/history").json["history"]


def test_a_detector_shows_its_knobs_by_name_with_their_defaults(tenant):
    answer = shown(tenant, f"{ROOT}/grounding_failure")

    assert answer["project_id"] == tenant.project.project_id
    assert (answer["detector"], answer["version"]) == ("grounding_failure", 0)
    assert answer["tier"]
    mean_floor, floors = answer["thresholds"]
    assert mean_floor.pop("description")
    assert mean_floor == {
        "detector": "grounding_failure",
        "threshold_key": "mean_floor",
        "value_type": "float",
        "limits": "a number in [0, 1]",
        "default": 0.5,
        "value": 0.5,
        "is_default": True,
    }
    assert (floors["threshold_key"], floors["value_type"]) == ("per_evaluator_floors", "json")
    assert (floors["default"], floors["value"], floors["is_default"]) == ({}, {}, True)


@pytest.mark.parametrize(
    ("detector", "defaults"),
    [
        ("grounding_failure", {"mean_floor": 0.5, "per_evaluator_floors": {}}),
        (
            "hitl_rejection_spike",
            {
                "edited_rate": 0.3,
                "measurement_window_minutes": 60,
                "min_sample": 5,
                "rejected_rate": 0.4,
            },
        ),
        ("hitl_timeout", {"fire_modes": ["explicit", "sla_exceeded"]}),
    ],
)
def test_every_detector_has_the_defaults_of_its_contract(tenant, detector, defaults):
    knobs = shown(tenant, f"{ROOT}/{detector}")["thresholds"]

    assert [(knob["threshold_key"], knob["default"]) for knob in knobs] == list(defaults.items())
    for knob in knobs:
        own = shown(tenant, f"{ROOT}/{detector}/{knob['threshold_key']}")
        assert {name: own[name] for name in knob} == knob
        assert own["project_id"] == tenant.project.project_id


TAKEN = [
    (MEAN_FLOOR, 0, 0.0),
    (MEAN_FLOOR, 1, 1.0),
    (MEAN_FLOOR, 0.7, 0.7),
    (MEAN_FLOOR, 1e-300, 1e-300),
    (FLOORS, {}, {}),
    (FLOORS, {"ragas/faithfulness:faithfulness": 0.9}, {"ragas/faithfulness:faithfulness": 0.9}),
    (FLOORS, {"a:b:c": 1}, {"a:b:c": 1.0}),
    (FLOORS, {"judge:": 0}, {"judge:": 0.0}),
    (FLOORS, {"richter:güte \N{SNOWMAN}": 0.5}, {"richter:güte \N{SNOWMAN}": 0.5}),
    (FLOORS, {f"judge:{n}": 0.5 for n in range(50)}, {f"judge:{n}": 0.5 for n in range(50)}),
    (WINDOW, 5, 5),
    (WINDOW, 1440, 1440),
    (REJECTED_RATE, 1, 1.0),
    (REJECTED_RATE, 0.0001, 0.0001),
    (FIRE_MODES, ["explicit"], ["explicit"]),
    (FIRE_MODES, ["sla_exceeded", "explicit", "explicit"], ["explicit", "sla_exceeded"]),
]


@pytest.mark.parametrize(("path", "value", "stored"), TAKEN)
def test_a_value_within_its_bounds_is_in_force_at_once(tenant, path, value, stored):
    detector, key = path.split("/")[-2:]

    response = tenant.admin.put(path, {"value": value})

    assert response.status_code == 200
    assert response.json == {
        "project_id": tenant.project.project_id,
        "tier": response.json["tier"],
        "detector": detector,
        "threshold_key": key,
        "value": stored,
        "is_default": False,
        "version": 1,
    }
    assert (shown(tenant, path)["value"], shown(tenant, path)["is_default"]) == (stored, False)


def value_of(text: str) -> bytes:
    return b'{"value":%s}' % text.encode()


REFUSED = [
    (MEAN_FLOOR, value_of("null"), "must be a number, not null"),
    (MEAN_FLOOR, value_of("true"), "must be a number, not true"),
    (MEAN_FLOOR, value_of('"0.5"'), 'must be a number, not "0.5"'),
    (MEAN_FLOOR, value_of("[0.5]"), "must be a number"),
    (MEAN_FLOOR, value_of("{}"), "must be a number"),
    (MEAN_FLOOR, value_of("NaN"), "must be a number"),
    (MEAN_FLOOR, value_of("Infinity"), "out of range [0, 1]"),
    (MEAN_FLOOR, value_of("1e400"), "out of range [0, 1]"),
    (MEAN_FLOOR, value_of("9" * 5000), "out of range [0, 1]"),
    (MEAN_FLOOR, value_of("9" * 400), "out of range [0, 1]"),
    (MEAN_FLOOR, value_of("1.0000000000000002"), "out of range [0, 1]: 1.0000000000000002"),
    (MEAN_FLOOR, value_of("-0.0001"), "mean_floor out of range [0, 1]: -0.0001"),
    (MEAN_FLOOR, value_of("[" * 10_000 + "]" * 10_000), "nested"),
    (WINDOW, value_of("3.0"), "must be a whole number, not 3.0"),
    (WINDOW, value_of("60.0"), "must be a whole number"),
    (WINDOW, value_of("6e1"), "must be a whole number"),
    (WINDOW, value_of("null"), "must be a whole number, not null"),
    (WINDOW, value_of("false"), "must be a whole number, not false"),
    (WINDOW, value_of('"60"'), "must be a whole number"),
    (WINDOW, value_of("4"), "measurement_window_minutes out of range [5, 1440]: 4"),
    (WINDOW, value_of("1441"), "out of range [5, 1440]: 1441"),
    (REJECTED_RATE, value_of("0"), "rejected_rate out of range (0, 1]: 0"),
    (FLOORS, value_of("null"), "must be an object, not null"),
    (FLOORS, value_of("[]"), "must be an object"),
    (FLOORS, value_of('{"judge:tone":null}'), "must be a number, not null"),
    (FLOORS, value_of('{"judge:tone":true}'), "must be a number, not true"),
    (FLOORS, value_of('{"judge:tone":"0.5"}'), "must be a number"),
    (FLOORS, value_of('{"judge:tone":1.5}'), "out of range [0, 1]: 1.5"),
    (FLOORS, value_of('{"judge:tone":NaN}'), "must be a number"),
    (FLOORS, value_of('{"judge":0.5}'), "is not evaluator_id:metric_type"),
    (FLOORS, value_of('{"":0.5}'), "is not evaluator_id:metric_type"),
    (FLOORS, value_of('{"%s:":0.5}' % ("x" * 513)), "longer than 513 bytes"),
    (
        FLOORS,
        value_of(json.dumps({f"judge:{n}": 0.5 for n in range(51)})),
        "51 entries, at most 50",
    ),
    (FIRE_MODES, value_of("null"), "must be a list"),
    (FIRE_MODES, value_of("[]"), "at least one of"),
    (FIRE_MODES, value_of('"explicit"'), "must be a list"),
    (FIRE_MODES, value_of('["explicit","never"]'), 'not "never"'),
    (FIRE_MODES, value_of("[null]"), "not null"),
    (FIRE_MODES, value_of("[[]]"), "not []"),
    (MEAN_FLOOR, b"{}", "value: Missing"),
    (MEAN_FLOOR, b"", "value: Missing"),
    (MEAN_FLOOR, b"0.5", "JSON object"),
    (MEAN_FLOOR, b"not json", "not JSON"),
    (MEAN_FLOOR, b'{"value":0.5,"colour":"red"}', "colour: Unknown field"),
    (MEAN_FLOOR, b'{"value":0.5,"reason":7}', "reason: Not a valid string"),
]


@pytest.mark.parametrize(("path", "body", "reason"), REFUSED)
def test_another_value_is_400_with_the_bound_that_it_broke(tenant, path, body, reason):
    response = tenant.admin.put(path, body)

    assert response.status_code == 400
    assert reason in response.json["error"]
    assert len(response.json["error"]) < 400
    assert shown(tenant, path)["is_default"] is True
    assert history(tenant, path) == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "name",
    [
        "grounding_failure/nothing",
        "nothing/mean_floor",
        "crashes/mean_floor",
        "hitl_timeout/mean_floor",
    ],
)
def test_an_unknown_knob_is_404(tenant, method, name):
    response = tenant.admin.send(method, f"{ROOT}/{name}", {"value": 0.5})

    assert response.status_code == 404


@pytest.mark.parametrize("name", ["nothing", "crashes", "pricing"])
def test_a_detector_that_cannot_be_tuned_is_404(tenant, name):
    assert tenant.read.get(f"{ROOT}/{name}").status_code == 404
    assert tenant.read.get(f"{ROOT}/{name}/mean_floor/history").status_code == 404
    assert tenant.read.post(f"{ROOT}/{name}/preview", {"values": {}}).status_code == 404


def test_the_history_tells_what_when_who_and_why(tenant):
    tenant.admin.put(MEAN_FLOOR, {"value": 0.7, "reason": " too many\x00 misses "})
    tenant.admin.put(MEAN_FLOOR, {"value": 0.6})
    tenant.admin.delete(f"{MEAN_FLOOR}?reason=back%20to%20normal")

    lines = history(tenant, MEAN_FLOOR)

    assert [(line["version"], line["value"], line["is_reset"]) for line in lines] == [
        (3, None, True),
        (2, 0.6, False),
        (1, 0.7, False),
    ]
    assert lines[0]["reason"] == "back to normal"
    assert lines[1]["reason"] is None
    assert lines[2]["reason"].startswith("too many")
    assert "\x00" not in lines[2]["reason"]
    assert len({line["changed_by"] for line in lines}) == 1
    assert lines[0]["changed_by"].startswith("key key-")
    times = [line["changed_at"] for line in lines]
    assert times == sorted(times, reverse=True)


def test_a_history_is_that_of_its_own_knob(tenant):
    tenant.admin.put(MEAN_FLOOR, {"value": 0.7})
    tenant.admin.put(FLOORS, {"value": {"judge:tone": 0.9}})

    assert [line["value"] for line in history(tenant, MEAN_FLOOR)] == [0.7]
    assert [line["value"] for line in history(tenant, FLOORS)] == [{"judge:tone": 0.9}]


def test_the_version_counts_the_changes_of_a_detector(tenant):
    versions = [
        tenant.admin.put(MEAN_FLOOR, {"value": 0.7}).json["version"],
        tenant.admin.put(FLOORS, {"value": {}}).json["version"],
        tenant.admin.put(MEAN_FLOOR, {"value": 0.7}).json["version"],
        tenant.admin.put(WINDOW, {"value": 5}).json["version"],
    ]

    assert versions == [1, 2, 3, 1]
    assert shown(tenant, f"{ROOT}/grounding_failure")["version"] == 3
    assert shown(tenant, f"{ROOT}/hitl_timeout")["version"] == 0


def test_a_reset_is_204_also_when_nothing_was_set(tenant):
    tenant.admin.put(MEAN_FLOOR, {"value": 0.7})

    answers = [tenant.admin.delete(MEAN_FLOOR) for _ in range(2)]
    untouched = tenant.admin.delete(FLOORS)

    assert [answer.status_code for answer in (*answers, untouched)] == [204] * 3
    assert [answer.data for answer in answers] == [b"", b""]
    assert (shown(tenant, MEAN_FLOOR)["value"], shown(tenant, MEAN_FLOOR)["is_default"]) == (
        0.5,
        True,
    )
    assert [line["version"] for line in history(tenant, MEAN_FLOOR)] == [2, 1]
    assert history(tenant, FLOORS) == []


def test_a_value_equal_to_the_default_is_the_projects_own(tenant):
    tenant.admin.put(MEAN_FLOOR, {"value": 0.5})

    assert shown(tenant, MEAN_FLOOR)["is_default"] is False


def test_changes_at_the_same_time_each_have_a_version_of_their_own(tenant):
    values = [number / 100 for number in range(12)]
    together = Barrier(len(values))

    def put(value: float):
        together.wait(10)
        return tenant.admin.put(MEAN_FLOOR, {"value": value})

    with ThreadPoolExecutor(len(values)) as threads:
        responses = list(threads.map(put, values))

    assert {response.status_code for response in responses} == {200}
    by_version = {r.json["version"]: r.json["value"] for r in responses}
    assert sorted(by_version) == list(range(1, 13))
    lines = history(tenant, MEAN_FLOOR)
    assert {line["version"]: line["value"] for line in lines} == by_version
    assert shown(tenant, MEAN_FLOOR)["value"] == by_version[12]


def test_a_change_counts_from_the_next_examination_and_its_version_is_kept(tenant, database):
    for execution_id in ("exec-old", "exec-new"):
        tenant.ingest.post("/events", [make_score(0.6, execution_id=execution_id)])
        tenant.ingest.patch(f"/executions/{execution_id}", make_close())
        examine_all(database)
        tenant.admin.put(MEAN_FLOOR, {"value": 0.7})

    old, new = (
        tenant.read.get(f"/executions/{execution_id}").json["failure_groups"]
        for execution_id in ("exec-old", "exec-new")
    )

    assert old == []
    assert (new[0]["threshold_version"], new[0]["evidence"]["floor"]) == (1, 0.7)
    assert new[0]["evidence"]["floor_source"] == "project"


def test_a_pairs_own_floor_goes_before_the_projects(tenant, database):
    tenant.admin.put(MEAN_FLOOR, {"value": 0.1})
    tenant.admin.put(FLOORS, {"value": {"ragas:faithfulness": 0.9}})
    tenant.ingest.post("/events", [make_score(0.6), make_score(0.6, pair="ragas/relevance")])
    tenant.ingest.patch("/executions/exec-1", make_close())

    examine_all(database)

    (group,) = tenant.read.get("/failure-groups").json["failure_groups"]
    assert group["metric_type"] == "faithfulness"


def test_a_preview_tells_and_changes_nothing(tenant, database):
    for number, score in enumerate((0.3, 0.55, 0.8)):
        tenant.ingest.post("/events", [make_score(score, execution_id=f"exec-{number}")])
        tenant.ingest.patch(f"/executions/exec-{number}", make_close())
    examine_all(database)
    before = tenant.read.get("/failure-groups").json

    higher = tenant.read.post(
        f"{ROOT}/grounding_failure/preview", {"values": {"mean_floor": 0.6}, "days": 1}
    ).json
    lower = tenant.read.post(
        f"{ROOT}/grounding_failure/preview", {"values": {"mean_floor": 0.1}}
    ).json

    assert (higher["days"], higher["executions_examined"]) == (1, 3)
    assert [turn["execution_id"] for turn in higher["starting"]] == ["exec-1"]
    assert higher["starting"][0]["pairs"] == [["ragas", "faithfulness"]]
    assert (higher["stopping"], higher["groups_opening"]) == ([], [])
    assert [turn["execution_id"] for turn in lower["stopping"]] == ["exec-0"]
    assert [group["metric_type"] for group in lower["groups_falling_silent"]] == ["faithfulness"]
    assert tenant.read.get("/failure-groups").json == before
    assert history(tenant, MEAN_FLOOR) == []


@pytest.mark.parametrize(
    ("detector", "body", "reason"),
    [
        ("grounding_failure", {}, "values"),
        ("grounding_failure", {"values": None}, "values"),
        ("grounding_failure", {"values": [0.5]}, "values"),
        ("grounding_failure", {"values": {"mean_floor": "0.5"}}, "must be a number"),
        ("grounding_failure", {"values": {"mean_floor": 1.5}}, "out of range"),
        ("grounding_failure", {"values": {}, "days": 0}, "days"),
        ("grounding_failure", {"values": {}, "days": 91}, "days"),
        ("grounding_failure", {"values": {}, "days": "7"}, "days"),
        ("grounding_failure", {"values": {}, "colour": "red"}, "colour"),
        ("hitl_timeout", {"values": {"fire_modes": ["explicit"]}}, "no preview"),
    ],
)
def test_a_preview_of_what_could_not_be_set_is_400(tenant, detector, body, reason):
    response = tenant.read.post(f"{ROOT}/{detector}/preview", body)

    assert response.status_code == 400
    assert reason in response.json["error"]


def test_a_preview_of_an_unknown_knob_is_404(tenant):
    response = tenant.read.post(f"{ROOT}/grounding_failure/preview", {"values": {"min_sample": 5}})

    assert response.status_code == 404
