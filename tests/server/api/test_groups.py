"""Failure groups over the API: their form, and the states that people put them in."""

import pytest

from detectors import group_id
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant


@pytest.fixture
def group(tenant, database) -> str:
    """The address of a group with one member."""
    tenant.ingest.post("/executions", make_execution(release="v1", environment="prod"))
    tenant.ingest.post("/events", [make_score(0.2, reason="two claims unsupported")])
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)
    (found,) = tenant.read.get("/failure-groups").json["failure_groups"]
    return f"/failure-groups/{found['group_id']}"


def another_member(tenant: Tenant, database, execution_id: str, **fields) -> None:
    tenant.ingest.post("/executions", make_execution(execution_id, **fields))
    tenant.ingest.post("/events", [make_score(0.2, execution_id=execution_id)])
    tenant.ingest.patch(f"/executions/{execution_id}", make_close())
    examine_all(database)


def test_a_group_has_the_fields_of_the_reference(tenant, group):
    shown = tenant.read.get(group).json

    execution = tenant.read.get("/executions/exec-1").json["execution"]
    expected = {
        "project_id": tenant.project.project_id,
        "failure_class": "grounding_failure",
        "signature": "grounding_failure:ragas:faithfulness",
        "event_count": 1,
        "affected_executions": 1,
        "sample_execution_id": "exec-1",
        "severity_hint": "critical",
        "first_seen": execution["received_at"],
        "last_seen": execution["received_at"],
        "resolved_at": None,
        "resolved_by": None,
    }
    assert {name: shown[name] for name in expected} == expected
    assert shown["group_id"] == group_id(
        tenant.project.project_id,
        "grounding_failure",
        "grounding_failure:ragas:faithfulness",
        "ragas",
    )
    assert tenant.read.get("/failure-groups").json["failure_groups"] == [shown]


def test_a_member_has_its_evidence(tenant, group):
    (member,) = tenant.read.get(f"{group}/executions").json["executions"]

    assert (member["execution_id"], member["status"]) == ("exec-1", "completed")
    assert (member["rule"], member["threshold_version"]) == ("mean_below_floor", 0)
    assert (member["release"], member["environment"]) == ("v1", "prod")
    evidence = member["evidence"]
    assert (evidence["mean"], evidence["floor"], evidence["floor_source"]) == (0.2, 0.5, "default")
    assert evidence["reasons"] == ["two claims unsupported"]


def test_an_execution_names_its_groups_the_first_apart(tenant, database):
    scores = [make_score(0.9, False, pair=f"judge/{metric}") for metric in "ab"]
    tenant.ingest.post("/events", scores)
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)

    content = tenant.read.get("/executions/exec-1").json

    signatures = [found["signature"] for found in content["failure_groups"]]
    assert signatures == ["grounding_failure:judge:a", "grounding_failure:judge:b"]
    assert content["failure_group"] == content["failure_groups"][0]


def test_events_are_shown_in_their_order(tenant):
    events = [make_event(sequence=number, timestamp=None) for number in (3, 1, 2)]
    tenant.ingest.post("/events", events)

    shown = tenant.read.get("/executions/exec-1").json["events"]

    assert [event["sequence"] for event in shown] == [1, 2, 3]


def test_what_the_cap_cut_is_told_with_the_execution(tenant, database):
    scores = [make_score(0.9, False, pair=f"judge/{number:02}") for number in range(25)]
    tenant.ingest.post("/events", scores)
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)

    content = tenant.read.get("/executions/exec-1").json

    assert len(content["failure_groups"]) == 20
    assert content["execution"]["overflow_count"] == 5
    assert content["execution"]["overflow_signatures"] == [
        f"grounding_failure:judge:{number}" for number in range(20, 25)
    ]


@pytest.mark.parametrize(
    ("action", "state", "is_resolved"),
    [
        ("resolve", "resolved", True),
        ("unresolve", "open", False),
        ("acknowledge", "acknowledged", False),
        ("ignore", "ignored", False),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_a_state_is_set_and_setting_it_again_changes_nothing(
    tenant, group, action, state, is_resolved, times
):
    for _ in range(times):
        response = tenant.admin.post(f"{group}/{action}", {"reason": "because"})

    answer = response.json
    assert (response.status_code, answer["ok"]) == (200, True)
    assert (answer["state"], answer["resolved"]) == (state, is_resolved)
    assert group.endswith(answer["group_id"])
    shown = tenant.read.get(group).json
    assert (shown["state"], shown["resolved_at"] is not None) == (state, is_resolved)
    lines = tenant.read.get(f"{group}/history").json
    assert lines["count"] == (1 if state == "open" else 2)


@pytest.mark.parametrize("body", [None, b"", b"not json", b"[]", {"reason": 7}, {"more": 1}])
@pytest.mark.parametrize("action", ["resolve", "unresolve", "acknowledge"])
def test_a_malformed_reason_is_no_obstacle(tenant, group, action, body):
    assert tenant.admin.post(f"{group}/{action}", body).status_code == 200


def test_a_long_reason_is_cut_between_characters(tenant, group):
    tenant.admin.post(f"{group}/resolve", {"reason": "é" * 400})

    reason = tenant.read.get(group).json["state_reason"]

    assert reason == "é" * 256


def test_a_new_member_of_a_resolved_group_is_a_regression_of_its_release(tenant, group, database):
    tenant.admin.post(f"{group}/resolve")

    another_member(tenant, database, "exec-2", release="v2")

    shown = tenant.read.get(group).json
    assert (shown["state"], shown["regressed_release"]) == ("open", "v2")
    assert shown["regressed_at"] is not None
    kinds = [line["kind"] for line in tenant.read.get(f"{group}/history").json["history"]]
    assert kinds == ["regressed", "resolved", "first_seen"]


def test_an_ignored_group_counts_on_and_wakes_at_its_number(tenant, group, database):
    tenant.admin.post(f"{group}/ignore", {"occurrences": 2, "reason": "known"})

    another_member(tenant, database, "exec-2")
    while_ignored = tenant.read.get(group).json
    another_member(tenant, database, "exec-3")
    awake = tenant.read.get(group).json

    assert (while_ignored["state"], while_ignored["occurrence_count"]) == ("ignored", 2)
    assert (awake["state"], awake["occurrence_count"]) == ("open", 3)


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        {"until": "soon"},
        {"until": "9999-12-31T23:59:59-05:00"},
        {"until": "2026-01-01T00:00:00Z"},
        {"until": float("inf")},
        {"occurrences": float("nan")},
        {"occurrences": 0},
        {"occurrences": "2"},
        {"occurrences": 2.5},
        {"occurrences": 2**31 + 1},
        {"reason": 7},
    ],
)
def test_an_ignore_that_cannot_be_read_is_400_and_ignores_nothing(tenant, group, body):
    response = tenant.admin.post(f"{group}/ignore", body)

    assert response.status_code == 400
    assert tenant.read.get(group).json["state"] == "open"


def test_an_ignore_until_a_time_is_shown_in_utc(tenant, group):
    tenant.admin.post(f"{group}/ignore", {"until": "2106-02-07T07:28:16+01:00"})

    assert tenant.read.get(group).json["ignored_until"] == "2106-02-07T06:28:16Z"


def test_over_strict_is_yes_or_no(tenant, group):
    assert tenant.admin.post(f"{group}/over-strict", {"over_strict": 0}).status_code == 400
    assert tenant.read.get(group).json["over_strict_at"] is None


def test_an_over_strict_evaluator_is_noted_and_taken_back(tenant, group):
    noted = tenant.admin.post(f"{group}/over-strict", {"reason": "the answers are right"})
    note = tenant.read.get(group).json["over_strict_note"]
    taken_back = tenant.admin.post(f"{group}/over-strict", {"over_strict": False})

    assert (noted.json["over_strict"], note) == (True, "the answers are right")
    assert taken_back.json["over_strict"] is False
    assert tenant.read.get(group).json["over_strict_at"] is None


def test_a_pair_is_a_discovery_until_its_twentieth_interaction(tenant, group, database):
    early = tenant.read.get(group).json
    for number in range(2, 21):
        tenant.ingest.post("/events", [make_score(0.9, execution_id=f"exec-{number}")])
        tenant.ingest.patch(f"/executions/exec-{number}", make_close())
    examine_all(database)
    later = tenant.read.get(group).json

    assert (early["is_discovery"], early["interactions"]) == (True, 1)
    assert "20" in early["discovery_reason"]
    assert (later["is_discovery"], later["discovery_reason"]) == (False, None)
