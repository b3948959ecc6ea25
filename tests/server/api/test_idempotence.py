"""Sending again changes nothing: a client that lost the answer cannot know whether it was heard."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.factories import at, make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all


def at_once(*calls: Callable) -> list:
    """Make calls at the same time, each in a thread of its own, and give their answers in order."""
    together = Barrier(len(calls))

    def make(call: Callable):
        together.wait(10)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(make, calls))


def payloads(tenant, execution_id: str = "exec-1") -> dict[str, object]:
    events = tenant.read.get(f"/executions/{execution_id}").json["events"]
    return {event["event_id"]: event["payload"] for event in events}


def test_an_event_that_is_stored_already_is_a_duplicate_and_no_error(tenant):
    old, new = make_event(), make_event()
    tenant.ingest.post("/events", [old])

    answer = tenant.ingest.post("/events", [old, new]).json

    assert answer == {"ok": True, "accepted": 1, "rejected": 0, "duplicates": 1, "errors": []}


def test_an_event_twice_in_one_batch_is_stored_once(tenant):
    event = make_event()

    answer = tenant.ingest.post("/events", [event, make_event(), event]).json

    assert (answer["accepted"], answer["duplicates"]) == (2, 1)
    assert len(payloads(tenant)) == 2


def test_the_first_word_of_an_event_counts(tenant):
    tenant.ingest.post("/events", [make_event(event_id="evt-1", payload="first")])

    answer = tenant.ingest.post("/events", [make_event(event_id="evt-1", payload="second")]).json

    assert answer["duplicates"] == 1
    assert payloads(tenant) == {"evt-1": "first"}


def test_an_event_stays_with_the_execution_that_had_it_first(tenant):
    tenant.ingest.post("/events", [make_event("exec-1", event_id="evt-1")])

    answer = tenant.ingest.post("/events", [make_event("exec-2", event_id="evt-1")]).json

    assert answer["duplicates"] == 1
    assert set(payloads(tenant, "exec-1")) == {"evt-1"}
    assert payloads(tenant, "exec-2") == {}


def test_accepted_rejected_and_duplicates_add_up(tenant):
    old = make_event()
    tenant.ingest.post("/events", [old])
    batch = [old, make_event(), make_event(event_id=""), old, make_event(timestamp="never")]

    answer = tenant.ingest.post("/events", batch).json

    assert (answer["accepted"], answer["rejected"], answer["duplicates"]) == (1, 2, 2)
    assert [error["index"] for error in answer["errors"]] == [2, 4]


def test_a_post_that_is_sent_again_changes_nothing(tenant):
    tenant.ingest.post("/executions", make_execution(tenant_id="t1", total_tokens_in=1))
    before = tenant.read.get("/executions/exec-1").json

    again = make_execution(
        status="crashed", tenant_id="t2", total_tokens_in=2, started_at=at(99), ended_at=None
    )
    answer = tenant.ingest.post("/executions", again)

    assert (answer.status_code, answer.json["status"]) == (200, "started")
    assert tenant.read.get("/executions/exec-1").json == before


def test_a_close_that_is_sent_again_makes_no_second_member_and_reopens_nothing(tenant, database):
    requests = [
        ("POST", "/executions", make_execution()),
        ("POST", "/events", [make_score(0.2)]),
        ("PATCH", "/executions/exec-1", make_close()),
    ]
    for request in requests:
        tenant.ingest.send(*request)
    examine_all(database)
    (group,) = tenant.read.get("/failure-groups").json["failure_groups"]
    tenant.admin.post(f"/failure-groups/{group['group_id']}/resolve")
    before = tenant.read.get(f"/failure-groups/{group['group_id']}").json

    for request in requests:
        assert tenant.ingest.send(*request).status_code == 200
    examine_all(database)

    after = tenant.read.get(f"/failure-groups/{group['group_id']}").json
    assert after == before
    assert (after["state"], after["occurrence_count"]) == ("resolved", 1)


def test_a_batch_that_is_sent_many_times_at_once_is_stored_once(tenant):
    batch = [make_event(), make_score(0.2), make_event("exec-2")]

    answers = at_once(*[lambda: tenant.ingest.post("/events", batch)] * 8)

    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json["accepted"] for answer in answers) == 3
    assert sum(answer.json["duplicates"] for answer in answers) == 7 * 3
    assert len(payloads(tenant)) + len(payloads(tenant, "exec-2")) == 3


def test_batches_with_the_same_executions_in_other_orders_do_not_block_each_other(tenant):
    ids = [f"exec-{number}" for number in range(20)]
    forth = [[make_event(execution_id) for execution_id in ids] for _ in range(4)]
    back = [[make_event(execution_id) for execution_id in reversed(ids)] for _ in range(4)]

    answers = at_once(
        *[lambda batch=batch: tenant.ingest.post("/events", batch) for batch in forth + back]
    )

    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json["accepted"] for answer in answers) == 8 * 20


def test_the_requests_of_a_run_may_come_all_at_once(tenant, database):
    answers = at_once(
        *[lambda: tenant.ingest.post("/executions", make_execution(tenant_id="t1"))] * 2,
        *[lambda: tenant.ingest.post("/events", [make_score(0.2)])] * 2,
        *[lambda: tenant.ingest.patch("/executions/exec-1", make_close())] * 2,
    )
    examine_all(database)

    assert {answer.status_code for answer in answers} == {200}
    content = tenant.read.get("/executions/exec-1").json
    assert (content["execution"]["status"], content["execution"]["tenant_id"]) == (
        "completed",
        "t1",
    )
    assert len(content["events"]) == 2
    assert [group["rule"] for group in content["failure_groups"]] == ["mean_below_floor"]


@pytest.mark.parametrize("attempt", range(5))
def test_of_two_ends_at_once_one_counts_and_the_other_is_told(tenant, attempt):
    answers = at_once(
        *[
            lambda status=status: tenant.ingest.patch("/executions/exec-1", make_close(status))
            for status in ("completed", "crashed", "halted")
        ]
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409]
    (winner,) = [answer.json["status"] for answer in answers if answer.status_code == 200]
    assert tenant.read.get("/executions/exec-1").json["execution"]["status"] == winner
