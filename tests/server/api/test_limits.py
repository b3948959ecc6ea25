"""Limits of short texts and numbers of an execution, and one id twice in a batch."""

import pytest

from tests.factories import make_close, make_event, make_execution

EITHER = ["release", "environment"]
TEXTS = ["crash_signature", "input_summary", "output_summary"]
AT_POST = ["tenant_id", "parent_execution_id", "sdk_language", "sdk_version"]


@pytest.mark.parametrize("name", EITHER + AT_POST)
def test_a_label_may_have_256_bytes_and_no_more(tenant, name):
    fits = tenant.ingest.post("/executions", make_execution("exec-1", **{name: "é" * 128}))
    over = tenant.ingest.post("/executions", make_execution("exec-2", **{name: "é" * 128 + "x"}))

    assert fits.status_code == 200
    assert tenant.read.get("/executions/exec-1").json["execution"][name] == "é" * 128
    assert over.status_code == 400
    assert over.json["error"] == f"{name}: longer than 256 bytes."


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_cut_and_its_execution_closes_all_the_same(tenant, name):
    close = make_close("crashed", **{name: "é" * 32_769})

    assert tenant.ingest.patch("/executions/exec-1", close).status_code == 200
    execution = tenant.read.get("/executions/exec-1").json["execution"]
    assert execution[name] == "é" * 32_768
    assert execution["closed_at"] is not None


@pytest.mark.parametrize("name", EITHER)
def test_a_patch_has_the_same_limits(tenant, name):
    answer = tenant.ingest.patch("/executions/exec-1", make_close(**{name: "x" * 257}))

    assert answer.status_code == 400


def test_a_negative_duration_is_not_known(tenant):
    tenant.ingest.post("/executions", make_execution("exec-1", duration_ms=-1))
    closed = tenant.ingest.patch("/executions/exec-1", make_close(duration_ms=-5))
    tenant.ingest.post(
        "/events", [make_event("exec-1", duration_ms=-1), make_event("exec-1", duration_ms=0)]
    )

    found = tenant.read.get("/executions/exec-1").json
    assert closed.status_code == 200
    assert found["execution"]["duration_ms"] is None
    assert {event["duration_ms"] for event in found["events"]} == {None, 0}


@pytest.mark.parametrize("spoiler", [{}, {"text": "\x00"}])
def test_of_one_event_id_twice_in_a_batch_the_first_counts(tenant, spoiler):
    first = make_event("exec-1", event_id="evt-1", payload={"n": 1, **spoiler})
    others = [make_event(f"exec-{n}", event_id="evt-1", payload={"n": n}) for n in range(2, 9)]

    answer = tenant.ingest.post("/events", [first, *others]).json

    assert (answer["accepted"], answer["duplicates"]) == (1, 7)
    assert tenant.read.get("/executions/exec-1").json["events"][0]["payload"]["n"] == 1
    assert len(tenant.read.get("/executions").json["executions"]) == 1
