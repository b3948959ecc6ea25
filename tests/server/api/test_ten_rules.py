"""The rules that the published SDK needs (wire.md, section 0); rule 9, and 7 over real HTTP, are in test_over_http."""

import json
import time

import pytest
from backports import zstd

from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all

TERMINAL = ["completed", "crashed", "halted", "timeout", "validation_failed"]


def signatures(tenant, execution_id: str = "exec-1") -> list[str]:
    groups = tenant.read.get(f"/executions/{execution_id}").json["failure_groups"]
    return [group["signature"] for group in groups]


def shown(tenant, execution_id: str = "exec-1") -> dict:
    return tenant.read.get(f"/executions/{execution_id}").json["execution"]


@pytest.mark.parametrize("status", [*TERMINAL, "started", "awaiting_human", "resting"])
def test_rule_1_a_run_may_begin_with_any_status_and_is_open_all_the_same(tenant, status):
    response = tenant.ingest.post("/executions", make_execution(status=status))

    assert (response.status_code, response.json) == (
        200,
        {"ok": True, "execution_id": "exec-1", "status": status},
    )
    assert shown(tenant)["closed_at"] is None
    assert shown(tenant)["ended_at"] is None


@pytest.mark.parametrize("status", TERMINAL)
def test_rule_2_the_first_closing_patch_has_the_run_examined_whatever_its_status_was(
    tenant, database, status
):
    tenant.ingest.post("/executions", make_execution(status=status))
    tenant.ingest.post("/events", [make_score(0.2)])

    response = tenant.ingest.patch("/executions/exec-1", make_close(status))
    examine_all(database)

    assert (response.status_code, response.json["status"]) == (200, status)
    assert shown(tenant)["closed_at"] is not None
    assert signatures(tenant) == ["grounding_failure:ragas:faithfulness"]


@pytest.mark.parametrize("status", ["started", "awaiting_human"])
def test_rule_2_the_same_open_status_again_is_taken_and_closes_nothing(tenant, status):
    tenant.ingest.post("/executions", make_execution(status=status))

    answers = [tenant.ingest.patch("/executions/exec-1", {"status": status}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert shown(tenant)["ended_at"] is None
    assert shown(tenant)["closed_at"] is None


def test_rule_3_events_of_a_run_that_says_it_is_over_are_taken_and_examined(tenant, database):
    tenant.ingest.post("/executions", make_execution(status="completed"))

    response = tenant.ingest.post("/events", [make_score(0.2)])
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)

    assert response.json["accepted"] == 1
    assert signatures(tenant) == ["grounding_failure:ragas:faithfulness"]


def test_rule_4_a_burst_is_never_told_to_go_away(tenant):
    answers = [
        tenant.ingest.post("/executions", make_execution(f"exec-{number}")) for number in range(300)
    ]

    assert {answer.status_code for answer in answers} == {200}


def test_rule_5_everything_can_be_sent_twice(tenant):
    batch = [make_event(), make_score(0.2)]
    requests = [
        ("POST", "/executions", make_execution()),
        ("POST", "/events", batch),
        ("PATCH", "/executions/exec-1", make_close()),
    ]

    first = [tenant.ingest.send(*request) for request in requests]
    before = tenant.read.get("/executions/exec-1").json
    again = [tenant.ingest.send(*request) for request in requests]
    after = tenant.read.get("/executions/exec-1").json

    assert [answer.status_code for answer in first + again] == [200] * 6
    assert (first[1].json["accepted"], first[1].json["duplicates"]) == (2, 0)
    assert (again[1].json["accepted"], again[1].json["duplicates"]) == (0, 2)
    assert again[1].json["errors"] == []
    for side in (before, after):
        side["execution"].pop("last_event_at")
    assert after == before


def test_rule_6_a_closing_patch_answers_before_any_detector_has_run(tenant, database):
    tenant.ingest.post("/executions", make_execution())
    tenant.ingest.post("/events", [make_score(0.1, pair=f"judge/{n}") for n in range(1000)])

    begun_at = time.monotonic()
    tenant.ingest.patch("/executions/exec-1", make_close())
    took_s = time.monotonic() - begun_at

    execution = shown(tenant)
    assert took_s < 1
    assert execution["detect_due_at"] is not None
    assert execution["examined_at"] is None
    assert signatures(tenant) == []
    examine_all(database)
    assert len(signatures(tenant)) == 20


def test_rule_7_a_zstd_body_is_decoded(tenant):
    body = zstd.compress(json.dumps([make_event() for _ in range(30)]).encode())

    response = tenant.ingest.post("/events", body, Content_Encoding="zstd")

    assert response.json["accepted"] == 30


def test_rule_8_bare_nan_and_infinities_are_stored_as_unmeasured(tenant, database):
    scores = [make_score(float(text)) for text in ("nan", "inf", "-inf")]
    tenant.ingest.post("/executions", make_execution())

    response = tenant.ingest.post("/events", [*scores, make_score(0.3)])
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)

    assert response.json["accepted"] == 4
    (group,) = tenant.read.get("/executions/exec-1").json["failure_groups"]
    evidence = group["evidence"]
    assert (evidence["scores"], evidence["measured"], evidence["unmeasured"]) == (4, 1, 3)
    assert evidence["mean"] == 0.3


def test_rule_8_no_token_that_is_not_json_comes_back(tenant):
    tenant.ingest.post("/events", [make_score(float("nan")), make_event(payload=[float("inf")])])

    text = tenant.read.get("/executions/exec-1").text

    assert "NaN" not in text
    assert "Infinity" not in text


def test_rule_10_unknown_keys_gaps_and_equal_sequences_are_taken(tenant):
    events = [
        make_event(sequence=0, event_type="human_intervention", payload={"new": {"key": [1]}}),
        make_event(sequence=0, event_type="human_intervention", payload={"sla_seconds": None}),
        make_event(sequence=7),
        make_event(sequence=7),
        make_event(sequence=None, timestamp=None, duration_ms=None, payload=None),
        make_event(unknown_field={"a": 1}),
    ]

    response = tenant.ingest.post("/events", events)

    assert (response.json["accepted"], response.json["errors"]) == (6, [])
    stored = tenant.read.get("/executions/exec-1").json["events"]
    assert [event["sequence"] for event in stored][:3] == [0, 0, 0]
