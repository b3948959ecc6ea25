"""Every execution that is stored can be reached by its id; what could not be is refused where it comes in."""

from urllib.parse import quote

import pytest

from tests.factories import make_close, make_event, make_execution

WITHOUT_ADDRESS = ["/", "/x", "x\ny", "x\n", "\rx", "x\x85y", "x\u2028y", "x/halt", "x/halt-stream"]
WITH_ADDRESS = [
    "a/b",
    "a//b",
    "x/",
    "x y",
    "é/ü",
    "a%2Fb",
    "halt",
    "halt-stream",
    "x/halt/y",
    "?#&",
    "x\xa0",
]


@pytest.mark.parametrize("execution_id", WITHOUT_ADDRESS)
def test_an_id_without_an_address_is_refused_everywhere(tenant, execution_id):
    posted = tenant.ingest.post("/executions", make_execution(execution_id))
    events = [make_event(execution_id), make_event("exec-1")]
    answer = tenant.ingest.post("/events", events).json

    assert posted.status_code == 400
    assert posted.json["error"].startswith("execution_id: ")
    assert (answer["accepted"], answer["rejected"]) == (1, 1)
    assert answer["errors"][0]["reason"].startswith("execution_id ")
    listed = tenant.read.get("/executions").json["executions"]
    assert [execution["execution_id"] for execution in listed] == ["exec-1"]


@pytest.mark.parametrize("execution_id", WITH_ADDRESS)
def test_every_other_id_is_read_closed_and_halted_at_its_address(tenant, execution_id):
    address = f"/executions/{quote(execution_id, safe='')}"
    assert tenant.ingest.post("/executions", make_execution(execution_id)).status_code == 200

    halted = tenant.admin.post(f"{address}/halt")
    stream = tenant.ingest.get(f"{address}/halt-stream")
    closed = tenant.ingest.patch(address, make_close())
    read = tenant.read.get(address).json["execution"]

    assert (halted.status_code, closed.status_code) == (200, 200)
    assert b"event: halt" in stream.data
    stream.close()
    assert (read["execution_id"], read["status"]) == (execution_id, "completed")
