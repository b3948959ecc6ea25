"""Requests of the published SDK 0.7.0, as captured on the wire, sent again with a key of ours.

Each label of the file is one scenario. What should come of it was read off the payloads by hand (detectors.md).
"""

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.server.examining import examine_all
from tests.server.tenants import Tenant, new_tenant

CAPTURED = Path(__file__).parents[2] / "fixtures" / "sdk_requests.jsonl"

VERDICT, MEAN = "failed_verdict", "mean_below_floor"

GROUPS: dict[str, dict[str, str]] = {
    "wrap_success": {},
    "wrap_success_instant": {},
    "wrap_crash": {"536c3c739749c549": "crashed"},
    "wrap_options": {},
    "eval_scores": {
        "grounding_failure:custom/judge:faithfulness": VERDICT,
        "grounding_failure:custom/rate:hallucination_rate": VERDICT,
        "grounding_failure:custom/zero:faithfulness": MEAN,
        "grounding_failure:raw/no-metric:": VERDICT,
        "grounding_failure:raw/no-passed:faithfulness": MEAN,
    },
    "eval_helpers": {
        "grounding_failure:promptfoo/factuality:factuality": VERDICT,
        "grounding_failure:ragas/faithfulness:faithfulness": VERDICT,
        "grounding_failure:vectara/hhem:hallucination": VERDICT,
    },
    "many_failing_evaluators": {
        f"grounding_failure:judge/{number:02}:faithfulness": VERDICT for number in range(20)
    },
    "tools": {},
    "validators": {"citations:missing": "failed_check", "length": "failed_check"},
    "other_emitters": {},
    "human_approved": {},
    "human_rejected_then_timeout": {"hitl_timeout:explicit": "explicit"},
    "pause_resume": {},
    "budget_halt": {},
    "remote_halt": {},
    "compressed_batch": {},
    "truncated_payload": {},
    "batch_over_100": {},
    "sync_calls": {"grounding_failure:sync/judge:faithfulness": VERDICT},
    "late_event_after_close": {"grounding_failure:late/judge:faithfulness": VERDICT},
    # Refused by the reference, with every event of its batch.
    "nan_score": {"grounding_failure:ragas/faithfulness:faithfulness": VERDICT},
    "thread_without_context": {},
    "oversize_nested_payload": {},
    "async_function": {},
    "zz_unserialisable_kills_shipper": {},
    "fault_429_events": {},
    "fault_413_events": {},
    "fault_408_events": {},
    "fault_429_create": {},
    "fault_500_twice_create": {},
    "fault_503_always_events": {},
    "fault_302_events": {},
    "fault_409_patch": {},
    "fault_slow_patch_timeout": {},
    "fault_events_stored_but_answer_lost": {},
    "fault_hitl_patch_503": {"f713a4e176d8c953": "crashed"},
    "fault_halt_stream_403": {},
}

# A score that is a text, and an evaluator that is blank.
REFUSED = {"evt-e427ab44afbb", "evt-df9e4b7449c2"}

EXECUTIONS = {"wrap_success_instant": 40, "wrap_options": 2}


def scenarios() -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for line in CAPTURED.read_text().splitlines():
        request = json.loads(line)
        found.setdefault(request["label"], []).append(request)
    return found


SCENARIOS = scenarios()


def content_of(request: dict):
    """What the request says, NaN as null."""
    return json.loads(request["text"], parse_constant=lambda _: None) if request["text"] else None


def replay(tenant: Tenant, request: dict):
    caller = tenant.admin if request["path"].endswith("/halt") else tenant.ingest
    headers = {
        name.replace("-", "_"): value
        for name, value in request["headers"]
        if name in ("Content-Type", "Content-Encoding", "X-Mesedi-Schema-Version", "Accept")
    }
    body = base64.b64decode(request["body_b64"]) if request["body_b64"] else None
    return caller.send(request["method"], request["path"], body, **headers)


@pytest.fixture(scope="module", params=GROUPS)
def scenario(request, app, database) -> Iterator[tuple[str, Tenant, list]]:
    """A scenario sent again into a project of its own, and what was answered."""
    tenant = new_tenant(app, database)
    responses = [replay(tenant, sent) for sent in SCENARIOS[request.param]]
    examine_all(database)
    yield request.param, tenant, responses
    for response in responses:
        response.close()


def test_the_file_has_no_scenario_without_an_expectation():
    assert set(SCENARIOS) == set(GROUPS)
    assert sum(map(len, SCENARIOS.values())) == 211


def test_every_request_is_taken(scenario):
    _, _, responses = scenario

    assert {response.status_code for response in responses} == {200}


def test_every_event_is_stored_as_it_was_sent_once(scenario):
    label, tenant, _ = scenario
    sent = {
        event["event_id"]: event
        for request in SCENARIOS[label]
        if request["path"] == "/events"
        for event in content_of(request)
        if event["event_id"] not in REFUSED
    }

    stored = {}
    for execution in tenant.read.get("/executions?limit=200").json["executions"]:
        content = tenant.read.get(f"/executions/{execution['execution_id']}").json
        for event in content["events"]:
            assert event["event_id"] not in stored
            stored[event["event_id"]] = event
            assert sent[event["event_id"]]["execution_id"] == execution["execution_id"]

    assert set(stored) == set(sent)
    for event_id, event in stored.items():
        expected = sent[event_id]
        assert event["payload"] == expected["payload"]
        assert (event["event_type"], event["sequence"], event["duration_ms"]) == (
            expected["event_type"],
            expected["sequence"],
            expected.get("duration_ms"),
        )
        times = (event["timestamp"], expected["timestamp"])
        assert datetime.fromisoformat(times[0]) == datetime.fromisoformat(times[1])


def test_every_fact_of_the_executions_is_kept(scenario):
    label, tenant, _ = scenario
    expected: dict[str, dict] = {}
    for request in SCENARIOS[label]:
        content = content_of(request)
        if isinstance(content, dict) and not request["path"].endswith("/halt"):
            execution_id = content.get("execution_id") or request["path"].split("/")[2]
            expected.setdefault(execution_id, {}).update(content)

    rows = tenant.read.get("/executions?limit=200").json["executions"]

    assert len(expected) == EXECUTIONS.get(label, 1)
    assert {row["execution_id"] for row in rows} == set(expected)
    for row in rows:
        for name, value in expected[row["execution_id"]].items():
            if name.endswith("_at"):
                assert datetime.fromisoformat(row[name]) == datetime.fromisoformat(value)
            else:
                assert row[name] == value


def test_what_is_refused_is_told(scenario):
    label, _, responses = scenario
    errors = [
        error["event_id"]
        for response in responses
        if response.request.path == "/events"
        for error in response.json["errors"]
    ]

    assert set(errors) == (REFUSED if label == "eval_scores" else set())


def test_the_groups_are_those_of_the_payloads(scenario):
    label, tenant, _ = scenario

    rows = tenant.read.get("/failure-groups?limit=200").json["failure_groups"]
    rules = {
        group["signature"]: group["rule"]
        for execution in tenant.read.get("/executions?limit=200").json["executions"]
        for group in tenant.read.get(f"/executions/{execution['execution_id']}").json[
            "failure_groups"
        ]
    }

    assert rules == GROUPS[label]
    assert {row["signature"] for row in rows} == set(GROUPS[label])
    assert all(row["occurrence_count"] == 1 for row in rows)


def test_a_run_is_closed_exactly_when_its_end_was_sent(scenario):
    label, tenant, _ = scenario

    for execution in tenant.read.get("/executions?limit=200").json["executions"]:
        assert (execution["closed_at"] is None) == (label == "zz_unserialisable_kills_shipper")


@pytest.fixture
def played(tenant, database):
    """Plays one scenario; gives its execution with events and groups."""

    def play(label: str) -> dict:
        for request in SCENARIOS[label]:
            replay(tenant, request).close()
        examine_all(database)
        (row,) = tenant.read.get("/executions").json["executions"]
        return tenant.read.get(f"/executions/{row['execution_id']}").json

    return play


def test_the_cap_of_twenty_cuts_the_last_five(played):
    execution = played("many_failing_evaluators")["execution"]

    assert execution["overflow_count"] == 5
    assert execution["overflow_signatures"] == [
        f"grounding_failure:judge/{number}:faithfulness" for number in range(20, 25)
    ]


def test_the_evidence_is_that_of_the_scores(played):
    by_signature = {g["signature"]: g["evidence"] for g in played("eval_scores")["failure_groups"]}

    judge = by_signature["grounding_failure:custom/judge:faithfulness"]
    rate = by_signature["grounding_failure:custom/rate:hallucination_rate"]
    assert (judge["scores"], judge["mean"], judge["failed_verdicts"]) == (2, 0.57, 1)
    assert (judge["lowest"], judge["highest"]) == (0.21, 0.93)
    assert judge["reasons"] == ["claim 2 unsupported", "all claims supported"]
    assert (rate["higher_is_better"], rate["failed_verdicts"]) == (False, 1)


def test_a_score_of_nan_is_unmeasured_and_its_verdict_stands(played):
    (group,) = played("nan_score")["failure_groups"]

    evidence = group["evidence"]
    assert (evidence["measured"], evidence["unmeasured"], evidence["failed_verdicts"]) == (0, 1, 1)
    assert evidence["mean"] is None


def test_a_person_who_was_waited_for_twice_is_two_pauses(played):
    execution = played("human_rejected_then_timeout")["execution"]

    assert (execution["pause_count"], execution["paused_at"]) == (2, None)


def test_a_validator_has_its_own_severity(tenant, played):
    played("validators")

    rows = tenant.read.get("/failure-groups").json["failure_groups"]

    assert {row["signature"]: row["severity"] for row in rows} == {
        "citations:missing": "critical",
        "length": "error",
    }


def test_the_halt_that_an_operator_sent_reaches_the_stream(tenant):
    responses = [replay(tenant, request) for request in SCENARIOS["remote_halt"]]

    (stream,) = [r for r in responses if r.mimetype == "text/event-stream"]

    assert stream.data.endswith(b'event: halt\ndata: {"reason":"operator stop"}\n\n')
