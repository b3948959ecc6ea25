"""What only a real HTTP server shows: streams, chunks, large bodies."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import mesedi
import pytest
from backports import zstd

from mesedi_server.api.bodies import MAX_BYTES
from tests.factories import make_close, make_event, make_execution
from tests.server.live import ANSWER_S, LiveServer, start, web_process

SLOTS = 2
AT_ONCE_S = 3.0
PATIENCE_S = 10.0

_numbers = count(1)


@pytest.fixture(scope="module")
def server(settings) -> Iterator[LiveServer]:
    with web_process(settings, MESEDI_HALT_STREAMS=str(SLOTS), MESEDI_WEB_THREADS="4") as running:
        yield running


class Stream:
    """An open halt stream."""

    def __init__(self, server: LiveServer, tenant, execution_id: str) -> None:
        self.begun_at = time.monotonic()
        self._connection = server.connect(PATIENCE_S)
        self.response = start(
            self._connection,
            "GET",
            f"/executions/{execution_id}/halt-stream",
            key=tenant.ingest.key,
            Accept="text/event-stream",
        )

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.begun_at

    def line(self) -> bytes:
        return self.response.readline()

    def rest(self) -> bytes:
        """Read to the end, which the server makes."""
        return self.response.read()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def listen(server, tenant):
    """Opens streams, and has their executions closed at the end, so that no slot is left taken."""
    opened = []

    def open_stream(execution_id: str) -> Stream:
        opened.append((Stream(server, tenant, execution_id), execution_id))
        return opened[-1][0]

    yield open_stream
    for stream, execution_id in opened:
        patch(server, tenant, execution_id)
        if stream.response.status == 200:
            stream.rest()
        stream.close()


@pytest.fixture
def execution_id() -> str:
    return f"exec-{next(_numbers)}"


def patch(server, tenant, execution_id: str):
    return server.send(
        "PATCH", f"/executions/{execution_id}", make_close("halted"), tenant.ingest.key
    )


def halt(server, tenant, execution_id: str, content=None):
    return server.send("POST", f"/executions/{execution_id}/halt", content, tenant.admin.key)


def test_the_stream_of_an_execution_not_known_yet_speaks_at_once(listen, execution_id):
    stream = listen(execution_id)

    assert stream.response.status == 200
    assert stream.response.getheader("Content-Type").startswith("text/event-stream")
    assert stream.response.getheader("X-Accel-Buffering") == "no"
    assert stream.line() == f": subscribed execution={execution_id}\n".encode()
    assert stream.line() == b"\n"
    assert stream.age_s < AT_ONCE_S


def test_a_halt_reaches_a_stream_that_was_open_before(server, tenant, listen, execution_id):
    stream = listen(execution_id)
    stream.line()
    tenant.ingest.post("/executions", make_execution(execution_id))

    answer = halt(server, tenant, execution_id, {"reason": "operator stop"})

    assert answer.json == {"ok": True, "notified": 1}
    assert stream.rest() == b'\nevent: halt\ndata: {"reason":"operator stop"}\n\n'


def test_a_halt_reaches_a_stream_that_opens_after_it(server, tenant, listen, execution_id):
    tenant.ingest.post("/executions", make_execution(execution_id))
    answer = halt(server, tenant, execution_id, {"reason": "too dear"})

    stream = listen(execution_id)

    assert answer.json == {"ok": True, "notified": 0}
    assert stream.rest().endswith(b'event: halt\ndata: {"reason":"too dear"}\n\n')
    assert stream.age_s < AT_ONCE_S


@pytest.mark.parametrize("body", [None, b"", b"not json", {"reason": None}, {"reason": " \x00 "}])
def test_a_halt_needs_no_reason(server, tenant, listen, execution_id, body):
    tenant.ingest.post("/executions", make_execution(execution_id))
    stream = listen(execution_id)

    halt(server, tenant, execution_id, body)

    data = stream.rest().splitlines()[-2]
    assert json.loads(data.removeprefix(b"data: "))["reason"]


def test_a_reason_cannot_break_the_frame(server, tenant, listen, execution_id):
    tenant.ingest.post("/executions", make_execution(execution_id))
    stream = listen(execution_id)

    halt(server, tenant, execution_id, {"reason": "a\n\nevent: other\r\ndata: b \N{SNOWMAN}"})

    lines = stream.rest().splitlines()
    assert [line for line in lines if line.startswith(b"event:")] == [b"event: halt"]
    assert json.loads(lines[-2].removeprefix(b"data: "))["reason"].startswith("a\n\nevent: other")


def test_the_first_reason_stays(server, tenant, listen, execution_id):
    tenant.ingest.post("/executions", make_execution(execution_id))
    first = listen(execution_id)

    answers = [halt(server, tenant, execution_id, {"reason": reason}) for reason in ("one", "two")]

    assert [answer.status for answer in answers] == [200, 200]
    assert b'"one"' in first.rest()
    assert b'"one"' in listen(execution_id).rest()


def test_a_halt_reaches_the_stream_of_an_execution_that_nothing_has_named_yet(
    server, tenant, listen, execution_id
):
    stream = listen(execution_id)
    stream.line()

    answer = halt(server, tenant, execution_id, {"reason": "too dear"})

    assert answer.json == {"ok": True, "notified": 1}
    assert stream.rest().endswith(b'event: halt\ndata: {"reason":"too dear"}\n\n')


def test_a_halt_of_an_execution_not_known_yet_is_kept_and_its_post_still_counts(
    server, tenant, listen, execution_id
):
    halt(server, tenant, execution_id, {"reason": "too dear"})

    tenant.ingest.post("/executions", make_execution(execution_id, release="v7"))

    execution = tenant.read.get(f"/executions/{execution_id}").json["execution"]
    assert (execution["release"], execution["status"]) == ("v7", "started")
    assert b"too dear" in listen(execution_id).rest()


def step_until(patience_s: float) -> None:
    give_up_at = time.monotonic() + patience_s
    while time.monotonic() < give_up_at:
        mesedi.checkpoint("step")
        time.sleep(0.02)


def test_the_sdk_halts_at_a_halt_that_came_before_its_first_report(server, tenant, execution_id):
    mesedi.configure(tenant.ingest.key, server.url, flush_interval_ms=60_000)
    run = mesedi.execution(execution_id, budget=mesedi.Budget(max_steps=1_000_000))
    with pytest.raises(mesedi.MesediHalt, match="too dear"), run:  # noqa: PT012 - it is the run that ends
        assert halt(server, tenant, execution_id, {"reason": "too dear"}).status == 200
        step_until(PATIENCE_S)
    assert mesedi.flush(PATIENCE_S) == 0


def test_the_server_ends_a_stream_when_its_execution_closes(server, tenant, listen, execution_id):
    tenant.ingest.post("/executions", make_execution(execution_id, status="halted"))
    stream = listen(execution_id)
    stream.line()
    is_open_after_post = stream.line() == b"\n"

    closed_at = time.monotonic()
    patch(server, tenant, execution_id)

    assert is_open_after_post
    assert stream.rest() == b""
    assert time.monotonic() - closed_at < AT_ONCE_S


def test_the_stream_of_a_closed_execution_ends_at_once(server, tenant, listen, execution_id):
    patch(server, tenant, execution_id)

    stream = listen(execution_id)

    assert stream.rest() == f": subscribed execution={execution_id}\n\n".encode()
    assert stream.age_s < AT_ONCE_S


def test_when_all_slots_are_taken_a_stream_is_503_and_other_calls_go_on(server, tenant, listen):
    held = [f"exec-slot-{next(_numbers)}" for _ in range(SLOTS)]
    streams = [listen(execution_id) for execution_id in held]

    refused = server.send("GET", "/executions/exec-late/halt-stream", key=tenant.ingest.key)
    stored = server.send("POST", "/events", [make_event()], tenant.ingest.key)

    assert [stream.response.status for stream in streams] == [200] * SLOTS
    assert refused.status == 503
    assert refused.headers["retry-after"]
    assert stored.json["accepted"] == 1


def test_a_slot_is_free_again_when_its_stream_has_ended(server, tenant, listen):
    for _ in range(SLOTS + 1):
        execution_id = f"exec-slot-{next(_numbers)}"
        stream = listen(execution_id)
        assert stream.response.status == 200
        patch(server, tenant, execution_id)
        stream.rest()


def test_a_request_for_the_head_of_a_stream_takes_no_slot(server, tenant, execution_id):
    for _ in range(SLOTS + 1):
        answer = server.send(
            "HEAD", f"/executions/{execution_id}/halt-stream", key=tenant.ingest.key
        )
        assert answer.status == 200


def test_a_body_in_chunks_is_taken(server, tenant):
    body = json.dumps([make_event(), make_event()]).encode()
    chunks = [body[:7], body[7:100], body[100:]]

    answer = server.send("POST", "/events", iter(chunks), tenant.ingest.key)

    assert (answer.status, answer.json["accepted"]) == (200, 2)


def test_a_compressed_body_in_chunks_is_taken(server, tenant):
    body = zstd.compress(json.dumps([make_event() for _ in range(30)]).encode())

    answer = server.send(
        "POST", "/events", iter([body[:50], body[50:]]), tenant.ingest.key, Content_Encoding="zstd"
    )

    assert answer.json["accepted"] == 30


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_of_30_mb_is_answered_in_time(server, tenant, is_chunked):
    large = make_event(payload="x" * 30_000_000)
    body = json.dumps([make_event(), large, make_event()]).encode()
    pieces = (body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000))

    begun_at = time.monotonic()
    answer = server.send("POST", "/events", pieces if is_chunked else body, tenant.ingest.key)

    assert (answer.json["accepted"], answer.json["rejected"]) == (2, 1)
    assert time.monotonic() - begun_at < PATIENCE_S


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_over_the_limit_is_413_and_the_sender_can_read_it(server, tenant, is_chunked):
    body = b"[]" + b" " * (MAX_BYTES + 10_000_000)
    pieces = (body[at : at + 1_000_000] for at in range(0, len(body), 1_000_000))

    answer = server.send("POST", "/events", pieces if is_chunked else body, tenant.ingest.key)

    assert answer.status == 413
    assert answer.json["ok"] is False


def test_a_bomb_costs_the_server_little(server, tenant):
    packer = zstd.ZstdCompressor()
    parts = [packer.compress(bytes(10_000_000)) for _ in range(100)]
    bomb = b"".join([*parts, packer.flush()])
    lists = zstd.compress(b"[" + b"[]," * 10_000_000 + b"[]]")

    begun_at = time.monotonic()
    answers = [
        server.send("POST", "/events", body, tenant.ingest.key, Content_Encoding="zstd")
        for body in (bomb, lists)
    ]

    assert [answer.status for answer in answers] == [413, 413]
    assert time.monotonic() - begun_at < PATIENCE_S
    assert peak_memory_mb(server) < 400


def test_a_connection_goes_on_after_a_refusal(server, tenant):
    refused_then_taken = [b"not json", json.dumps([make_event()]).encode()]

    with closing(server.connect(ANSWER_S)) as connection:
        statuses = []
        for body in refused_then_taken:
            response = start(connection, "POST", "/events", body, tenant.ingest.key)
            statuses.append(response.status)
            response.read()

    assert statuses == [400, 200]


def peak_memory_mb(server: LiveServer) -> float:
    """The most memory that a process of the server ever held."""
    folder = Path(f"/proc/{server.process.pid}/task/{server.process.pid}")
    if not folder.is_dir():
        pytest.skip("only Linux tells the memory of another process")
    status = [
        Path(f"/proc/{pid}/status").read_text() for pid in (folder / "children").read_text().split()
    ]
    peaks_kb = re.findall(r"^VmHWM:\s+(\d+) kB", "\n".join(status), re.MULTILINE)
    return max(map(int, peaks_kb)) / 1024
