"""The lifecycle of an execution (wire.md, section 3, **Ours**); the order of arrival does not count."""

from itertools import permutations

import pytest

from mesedi_server import examination
from tests.factories import at, make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant

OPEN = ["started", "awaiting_human"]
TERMINAL = ["completed", "crashed", "halted", "timeout", "validation_failed"]

# What depends on when requests come, not on what they say.
CLOCK = {"received_at", "closed_at", "last_event_at", "detect_due_at", "examined_at"}


def shown(tenant: Tenant, execution_id: str = "exec-1") -> dict:
    return tenant.read.get(f"/executions/{execution_id}").json["execution"]


def patch(tenant: Tenant, status: str, **fields):
    return tenant.ingest.patch("/executions/exec-1", {"status": status, **fields})


@pytest.mark.parametrize("first", OPEN)
@pytest.mark.parametrize("then", [*OPEN, *TERMINAL])
def test_an_open_execution_takes_every_status(tenant, first, then):
    patch(tenant, first)

    response = patch(tenant, then)

    assert (response.status_code, response.json["status"]) == (200, then)
    assert shown(tenant)["status"] == then
    assert (shown(tenant)["closed_at"] is not None) == (then in TERMINAL)


@pytest.mark.parametrize("first", TERMINAL)
@pytest.mark.parametrize("then", [*OPEN, *TERMINAL])
def test_a_closed_execution_keeps_the_status_that_closed_it(tenant, first, then):
    patch(tenant, first, duration_ms=1)
    before = shown(tenant)

    response = patch(tenant, then, duration_ms=2, crash_signature="late")

    assert response.status_code == (200 if then == first else 409)
    if then != first:
        assert response.json["error"] == f"invalid lifecycle transition: {first} -> {then}"
    assert shown(tenant) == before


def test_a_post_closes_nothing_and_reopens_nothing(tenant):
    tenant.ingest.post("/executions", make_execution(status="completed"))
    is_open_after_post = shown(tenant)["closed_at"] is None
    patch(tenant, "crashed", crash_signature="KeyError")

    response = tenant.ingest.post("/executions", make_execution(status="started"))

    assert is_open_after_post
    assert response.json["status"] == "crashed"
    assert shown(tenant)["status"] == "crashed"
    assert shown(tenant)["closed_at"] is not None


def test_a_patch_of_an_unknown_execution_makes_it(tenant):
    response = patch(tenant, "halted", crash_signature="halt:step_count", duration_ms=39)

    assert response.json == {"ok": True, "execution_id": "exec-1", "status": "halted"}
    execution = shown(tenant)
    assert execution["crash_signature"] == "halt:step_count"
    assert execution["duration_ms"] == 39


def test_an_event_of_an_unknown_execution_makes_it(tenant):
    response = tenant.ingest.post("/events", [make_event("exec-new")])

    assert response.json["accepted"] == 1
    assert shown(tenant, "exec-new")["status"] == "started"


def test_what_a_patch_leaves_out_keeps_its_value(tenant):
    tenant.ingest.post(
        "/executions", make_execution(total_tokens_in=10, ended_at=at(7), release="v1")
    )

    patch(tenant, "completed", total_tokens_out=2, duration_ms=None)

    execution = shown(tenant)
    assert (execution["total_tokens_in"], execution["total_tokens_out"]) == (10, 2)
    assert (execution["ended_at"], execution["release"]) == (at(7), "v1")


def test_an_end_that_nobody_gave_is_the_time_of_the_close(tenant):
    patch(tenant, "completed")

    assert shown(tenant)["ended_at"] == shown(tenant)["closed_at"]


def test_a_patch_wins_over_a_post_that_comes_late(tenant):
    patch(tenant, "crashed", crash_signature="from the patch", ended_at=at(9))

    tenant.ingest.post(
        "/executions",
        make_execution(status="started", crash_signature="from the post", ended_at=at(5)),
    )

    execution = shown(tenant)
    assert execution["crash_signature"] == "from the patch"
    assert execution["ended_at"] == at(9)
    assert execution["started_at"] == at(0)


def test_a_pause_is_counted_and_its_time_is_added_when_it_ends(tenant):
    for status in ("awaiting_human", "awaiting_human", "started", "awaiting_human", "completed"):
        patch(tenant, status)

    execution = shown(tenant)
    assert execution["pause_count"] == 2
    assert execution["paused_at"] is None
    assert execution["total_paused_ms"] >= 0


def test_a_pause_has_a_beginning_while_it_lasts(tenant):
    tenant.ingest.post("/executions", make_execution())
    patch(tenant, "awaiting_human")
    begun_at = shown(tenant)["paused_at"]

    patch(tenant, "awaiting_human")

    assert begun_at is not None
    assert shown(tenant)["paused_at"] == begun_at


def test_a_run_that_begins_paused_can_be_resumed(tenant):
    tenant.ingest.post("/executions", make_execution(status="awaiting_human"))
    is_paused = shown(tenant)["paused_at"] is not None

    response = patch(tenant, "started")

    assert is_paused
    assert response.status_code == 200
    assert (shown(tenant)["paused_at"], shown(tenant)["pause_count"]) == (None, 1)


STARTED = ("POST", "/executions", make_execution(tenant_id="t1", release="v1"))
INSTANT = ("POST", "/executions", make_execution(status="crashed"))
ENDED = ("POST", "/executions", make_execution(ended_at=at(5), total_tokens_in=7))
PAUSED = ("POST", "/executions", make_execution(status="awaiting_human"))
SCORES = [
    make_score(0.3, pair="ragas/faithfulness"),
    make_score(0.9, False, pair="judge/tone"),
    make_score(0.9, pair="ragas/relevance"),
]
EVENTS = [("POST", "/events", [score]) for score in SCORES]
CRASHED = ("PATCH", "/executions/exec-1", make_close("crashed", crash_signature="KeyError"))
CLOSED = ("PATCH", "/executions/exec-1", {"status": "crashed", "crash_signature": "KeyError"})
RESUMED = ("PATCH", "/executions/exec-1", {"status": "started"})

GROUPS = {
    ("crashes", "KeyError"),
    ("grounding_failure", "grounding_failure:judge:tone"),
    ("grounding_failure", "grounding_failure:ragas:faithfulness"),
}


def end_state(tenant: Tenant, database) -> tuple:
    examine_all(database)
    content = tenant.read.get("/executions/exec-1").json
    execution = {
        name: value
        for name, value in content["execution"].items()
        if name not in CLOCK | {"project_id"}
    }
    if execution["ended_at"] == content["execution"]["closed_at"]:
        execution["ended_at"] = "at the close"
    events = [(event["event_id"], event["payload"]) for event in content["events"]]
    groups = {(group["failure_class"], group["signature"]) for group in content["failure_groups"]}
    return execution, events, groups


@pytest.mark.parametrize(
    "requests",
    [
        [STARTED, EVENTS[0], EVENTS[1], CRASHED],
        [INSTANT, EVENTS[0], EVENTS[1], CRASHED],
        [ENDED, EVENTS[0], EVENTS[1], CLOSED],
    ],
    ids=["an ordinary run", "an instant run", "a run whose POST knows the end"],
)
def test_every_order_of_arrival_has_the_same_end(make_tenant, database, requests):
    orders = [order + order[:2] for order in permutations(requests)]
    ends = []

    for order in orders:
        tenant = make_tenant()
        answers = [tenant.ingest.send(*request) for request in order]
        assert {answer.status_code for answer in answers} == {200}
        ends.append(end_state(tenant, database))

    execution, events, groups = ends[0]
    assert execution["status"] == "crashed"
    assert len(events) == 2
    assert groups == GROUPS
    assert all(end == ends[0] for end in ends)


def test_examining_between_the_requests_changes_nothing_in_the_end(make_tenant, database):
    ends = []
    for order in permutations([STARTED, EVENTS[0], EVENTS[1], CRASHED]):
        tenant = make_tenant()
        for request in order:
            tenant.ingest.send(*request)
            examination.examine_due(database, settle_s=0)
        ends.append(end_state(tenant, database))

    assert ends[0][2] == GROUPS
    assert all(end == ends[0] for end in ends)


def test_the_place_of_a_post_among_pauses_does_not_count(make_tenant):
    pauses = [
        ("PATCH", "/executions/exec-1", {"status": status})
        for status in ("awaiting_human", "started", "awaiting_human")
    ]
    ends = []
    for place in range(4):
        tenant = make_tenant()
        for request in [*pauses[:place], PAUSED, *pauses[place:], RESUMED]:
            tenant.ingest.send(*request)
        execution = shown(tenant)
        ends.append((execution["status"], execution["pause_count"], execution["paused_at"]))

    assert set(ends) == {("started", 2, None)}


def test_events_may_come_in_any_batches(make_tenant, database):
    ends = []
    for cuts in ([[0, 1, 2]], [[2], [1], [0]], [[1, 2], [0, 1]], [[0], [0], [2, 1, 0]]):
        tenant = make_tenant()
        for cut in cuts:
            tenant.ingest.post("/events", [SCORES[number] for number in cut])
        tenant.ingest.send(*CRASHED)
        execution, events, groups = end_state(tenant, database)
        execution.pop("started_at")
        ends.append((execution, events, groups))

    assert ends[0][2] == GROUPS
    assert all(end == ends[0] for end in ends)
