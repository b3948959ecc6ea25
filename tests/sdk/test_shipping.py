"""The road to the server: batches, order, trouble, and what is counted as what."""

import asyncio
import ctypes
import json
import threading
import time

import mesedi
import pytest

from tests.sdk.conftest import KEY, configure
from tests.sdk.ingest import Ingest, Reply, Reset, Silence, eventually, free_port


def emit(count, **fields):
    for place in range(count):
        mesedi.emit_eval_score("judge", f"m{place}", 0.5, **fields)


def batches(server):
    return [request.body for request in server.requests if request.path == "/events"]


class Times:
    """A rule that misbehaves the first `count` times that `picks` a request."""

    def __init__(self, count, behaviour, picks=lambda _request: True):
        self.left = count
        self._behaviour = behaviour
        self._picks = picks

    def __call__(self, request):
        if self.left > 0 and self._picks(request):
            self.left -= 1
            return self._behaviour
        return None


def is_events(request):
    return request.path == "/events"


def test_a_batch_holds_no_more_than_its_size(server):
    configure(server.url, batch_size=40)

    with mesedi.execution():
        emit(100)

    assert mesedi.flush(5) == 0
    assert max(len(batch) for batch in batches(server)) == 40
    assert [score["metric_type"] for score in server.scores] == [f"m{n}" for n in range(100)]


def test_a_batch_holds_no_more_than_its_bytes(server):
    configure(server.url, batch_bytes=20_000)

    with mesedi.execution():
        emit(20, reason="x" * 4_000)

    assert mesedi.flush(5) == 0
    assert {len(batch) for batch in batches(server)} <= {1, 2, 3, 4, 5}
    assert len(server.scores) == 20


def test_events_of_many_executions_share_a_batch(server):
    configure(server.url, flush_interval_ms=10_000)

    for _ in range(30):
        with mesedi.execution():
            emit(1)

    assert mesedi.flush(5) == 0
    assert len(batches(server)) == 1
    for run in server.executions.values():
        assert run["calls"] == ["POST", "PATCH"]


def test_a_full_batch_does_not_wait_for_the_interval(server):
    configure(server.url, flush_interval_ms=60_000, batch_size=10)

    emit(10, execution_id="exec-known")

    server.wait_for(lambda: len(server.scores) == 10)


def test_the_interval_sends_what_is_no_full_batch(server):
    configure(server.url, flush_interval_ms=50)

    emit(1, execution_id="exec-known")

    server.wait_for(lambda: len(server.scores) == 1)


def test_requests_say_who_they_are_and_are_compressed_when_it_pays(client, server):
    with mesedi.execution():
        emit(50, reason="the same words again and again")

    mesedi.flush(5)
    start, events = server.requests[0], server.requests[1]
    assert start.headers["Authorization"] == f"Bearer {KEY}"
    assert start.headers["X-Mesedi-Schema-Version"] == "1"
    assert start.headers["Content-Type"] == "application/json"
    assert "Content-Encoding" not in start.headers
    assert events.headers["Content-Encoding"] in ("gzip", "zstd")
    assert events.wire_bytes < 2_000


def test_a_server_that_takes_no_compression_gets_none(client, server):
    def picky(request):
        return Reply(415) if "Content-Encoding" in request.headers else None

    server.rule = picky
    with mesedi.execution():
        emit(50)

    assert mesedi.flush(5) == 0
    assert len(server.scores) == 50


def test_one_connection_is_kept(client, server):
    for _ in range(5):
        with mesedi.execution():
            emit(1)
        mesedi.flush(5)

    assert len({request.connection for request in server.requests}) == 1


def test_start_goes_before_the_events_and_the_end_goes_last_through_any_trouble(client, server):
    server.rule = Times(6, Reply(503), picks=lambda _request: len(server.requests) % 2 == 0)

    for _ in range(5):
        with mesedi.execution():
            emit(3)

    assert mesedi.flush(10) == 0
    taken = {}
    for request in server.requests:
        for item in request.body if request.path == "/events" else [request.body]:
            run = item.get("execution_id") or request.path.rpartition("/")[2]
            taken.setdefault(run, []).append(request.method + request.path[:7])
    for calls in taken.values():
        firsts = list(dict.fromkeys(calls))
        assert firsts == ["POST/execut", "POST/events", "PATCH/execut"]
    assert len(server.scores) == 15


@pytest.mark.parametrize(
    "behaviour",
    [
        Reply(408),
        Reply(429),
        Reply(429, headers={"Retry-After": "0"}),
        Reply(500),
        Reply(503, headers={"Retry-After": "0"}),
        Reply(200, b"<html>Welcome to the hotel</html>"),
        Reply(200, b'{"ok": false}'),
        Reset(),
        Reset(store=True),
        Reply(502, store=True),
    ],
)
def test_what_may_pass_is_tried_again_and_counted_once(client, server, behaviour):
    server.rule = Times(4, behaviour)

    with mesedi.execution():
        emit(10)

    assert mesedi.flush(10) == 0
    stats = mesedi.stats()
    assert len(server.scores) == stats.sent == 10
    assert stats.executions.sent == 2
    assert stats.complete


def test_retry_after_is_kept(server):
    configure(server.url, max_backoff=0.01)
    server.rule = Times(1, Reply(429, headers={"Retry-After": "1"}))

    emit(1, execution_id="exec-known")

    server.wait_for(lambda: server.scores)
    first, second = (request.at for request in server.requests)
    assert second - first >= 0.95


def test_a_server_that_never_answers_is_given_up_on_and_tried_again(server):
    configure(server.url, timeout=0.2)
    server.rule = Times(1, Silence())

    emit(3, execution_id="exec-known")

    assert mesedi.flush(10) == 0
    assert len(server.scores) == 3


def test_nothing_is_lost_while_the_server_is_away(server):
    port = free_port()
    configure(f"http://127.0.0.1:{port}")
    with mesedi.execution():
        emit(250)
        assert mesedi.flush(0.3) > 0
        emit(250)

    late = Ingest(port)
    try:
        assert mesedi.flush(10) == 0
        assert len(late.scores) == 500
        assert not late.duplicates
        assert mesedi.stats().complete
    finally:
        late.stop()


def test_flush_tells_what_is_left_when_the_server_takes_nothing(client, server):
    server.rule = lambda _request: Reply(500)

    with mesedi.execution():
        emit(7)

    assert mesedi.flush(0.5) == 9  # seven events, a start and an end
    stats = mesedi.stats()
    assert (stats.sent, stats.pending, stats.executions.pending) == (0, 7, 2)


def test_one_execution_in_trouble_does_not_hold_up_the_others(client, server):
    def poisoned(request):
        if request.path == "/events":
            sick = any(event["execution_id"] == "exec-sick" for event in request.body)
        else:
            sick = False
        return Reply(500) if sick else None

    server.rule = poisoned
    with mesedi.execution("exec-sick"):
        emit(5)
    for place in range(20):
        with mesedi.execution(f"exec-{place}"):
            emit(5)

    server.wait_for(lambda: sum("PATCH" in run for run in server.executions.values()) == 20)
    assert len(server.scores) == 100
    assert mesedi.stats().pending == 5
    server.rule = lambda _request: None
    assert mesedi.flush(5) == 0
    assert len(server.scores) == 105


def test_a_start_that_fails_again_and_again_holds_up_nobody_else(client, server):
    server.rule = lambda request: (
        Reply(500) if request.method == "POST" and "sick" in str(request.body) else None
    )

    with mesedi.execution("exec-sick"):
        emit(1)
    with mesedi.execution("exec-well"):
        emit(1)

    server.wait_for(lambda: "PATCH" in server.executions.get("exec-well", {}))
    assert {event["execution_id"] for event in server.events} == {"exec-well"}


def test_413_splits_the_batch_and_drops_only_what_alone_is_too_big(client, server):
    html = b"<html><h1>413 Request Entity Too Large</h1></html>"
    limit = 3_000

    def small_door(request):
        size = len(str(request.body))
        return Reply(413, html, {"Content-Type": "text/html"}) if size > limit else None

    server.rule = small_door
    with mesedi.execution():
        emit(30)
        mesedi.emit_eval_score("judge", "huge", 0.5, reason="x" * 5_000)
        emit(30)

    assert mesedi.flush(10) == 0
    assert len(server.scores) == 60
    assert mesedi.stats().dropped == {"too large": 1}


def test_400_isolates_the_event_that_the_server_cannot_read(client, server):
    server.rule = lambda request: (
        Reply(400) if is_events(request) and "m13'" in str(request.body) else None
    )

    with mesedi.execution():
        emit(40)

    assert mesedi.flush(10) == 0
    assert len(server.scores) == 39
    assert mesedi.stats().refused == {"HTTP 400": 1}


def test_refusals_of_single_events_are_counted_by_their_reason(client, server):
    server.refuse = lambda event: (
        "score is a string" if event["payload"]["metric_type"] in ("m1", "m3") else None
    )

    with mesedi.execution():
        emit(5)

    assert mesedi.flush(5) == 0
    stats = mesedi.stats()
    assert stats.sent == len(server.scores) == 3
    assert stats.refused == {"score is a string": 2}
    assert stats.lost == 2
    assert not stats.complete


def test_refusals_without_a_list_are_not_counted_as_sent(client, server):
    server.rule = lambda request: (
        Reply(200, b'{"ok":true,"accepted":3,"rejected":2}') if is_events(request) else None
    )

    with mesedi.execution():
        emit(5)

    assert mesedi.flush(5) == 0
    assert (mesedi.stats().sent, mesedi.stats().refused) == (3, {"no reason given": 2})


def test_an_end_that_comes_second_is_refused_once(client, server):
    server.rule = lambda request: Reply(409) if request.method == "PATCH" else None

    with mesedi.execution():
        emit(1)

    assert mesedi.flush(5) == 0
    assert mesedi.stats().executions.refused == {"HTTP 409": 1}


@pytest.mark.parametrize("status", [301, 401, 403, 404])
def test_a_wrong_key_or_address_is_said_once_and_loudly_and_events_are_kept(
    client, server, caplog, status
):
    server.rule = lambda _request: Reply(status, headers={"Location": "/"})
    emit(3, execution_id="exec-known")
    server.wait_for(lambda: len(server.requests) >= 3)

    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "check api_key and base_url" in errors[0].getMessage()
    assert KEY not in caplog.text
    assert mesedi.stats().pending == 3
    server.rule = lambda _request: None
    assert mesedi.flush(5) == 0
    assert mesedi.stats().sent == 3


def test_logs_hold_no_payloads(client, server, caplog):
    caplog.set_level("DEBUG")
    server.rule = Times(5, Reply(500))
    server.refuse = lambda _event: "no"

    mesedi.emit_eval_score("judge", "metric", 0.5, reason="a secret")
    mesedi.emit_event("custom", {"a secret": "a secret"}, nonsense="a secret")
    mesedi.flush(5)

    assert caplog.records
    assert "a secret" not in caplog.text


def test_a_full_queue_drops_counts_and_says_so(caplog):
    configure(f"http://127.0.0.1:{free_port()}", max_queue=100)

    emit(150, execution_id="exec-known")

    stats = mesedi.stats()
    assert stats.dropped == {"queue full": 50}
    assert stats.pending == 100
    assert sum("queue is full" in record.message for record in caplog.records) == 1


def test_the_queue_is_bounded_in_bytes_too():
    configure(f"http://127.0.0.1:{free_port()}", max_queue_bytes=100_000)

    for _ in range(20):
        mesedi.record_answer("q", "x" * 10_000, execution_id="exec-known")

    assert 0 < mesedi.stats().pending < 10
    assert mesedi.stats().dropped["queue full"] > 10


def test_room_in_the_queue_comes_back(server):
    configure(server.url, max_queue=50, max_queue_bytes=60_000)

    for _ in range(10):
        emit(20, reason="x" * 1_000)
        assert mesedi.flush(5) == 0

    assert len(server.scores) == 200
    assert mesedi.stats().complete


def test_a_burst_is_not_lost(client, server):
    with mesedi.execution():
        emit(20_000)

    assert mesedi.flush(30) == 0
    assert len(server.scores) == mesedi.stats().sent == 20_000


def test_many_threads_share_one_client_and_no_id_comes_twice(client, server):
    def work():
        emit(500, execution_id="exec-shared")

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert mesedi.flush(30) == 0
    assert len(server.stored) == 8_000
    assert not server.duplicates


def test_emitting_does_not_hold_up_an_event_loop(client, server):
    server.rule = lambda _request: Silence()
    gaps = []

    async def heartbeat(stop):
        while not stop.is_set():
            before = time.perf_counter()
            await asyncio.sleep(0)
            gaps.append(time.perf_counter() - before)

    async def main():
        stop = asyncio.Event()
        beating = asyncio.ensure_future(heartbeat(stop))
        for _ in range(50):
            emit(20)
            await asyncio.sleep(0)
        stop.set()
        await beating

    asyncio.run(main())

    assert mesedi.stats().sent == 0
    assert sorted(gaps)[int(len(gaps) * 0.9)] < 0.1


def test_flush_waits_only_for_what_came_before(client, server):
    stop = threading.Event()

    def chatter():
        while not stop.wait(0.001):
            emit(1, execution_id="exec-other")

    other = threading.Thread(target=chatter)
    other.start()
    try:
        for _ in range(5):
            emit(1, execution_id="exec-mine")
            assert mesedi.flush(5) == 0
    finally:
        stop.set()
        other.join()

    mine = [event for event in server.events if event["execution_id"] == "exec-mine"]
    assert len(mine) == 5


# The exception is the one that kills the thread; pytest would report it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
# It can come between opening a connection and knowing of it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_killed_sender_is_replaced_and_nothing_is_lost(client, server):
    gate = threading.Event()

    def wait_once(request):
        gate.wait(5)

    emit(1, execution_id="exec-known")
    mesedi.flush(5)
    server.rule = wait_once
    emit(500, execution_id="exec-known")
    victim = next(t for t in threading.enumerate() if t.name == "mesedi-sender")
    asynchronous = ctypes.pythonapi.PyThreadState_SetAsyncExc
    asynchronous(ctypes.c_ulong(victim.ident), ctypes.py_object(SystemExit))
    gate.set()
    eventually(lambda: not victim.is_alive())
    server.rule = lambda _request: None
    emit(1, execution_id="exec-known")

    assert mesedi.flush(5) == 0
    assert len(server.stored) == 502


def test_an_event_id_of_the_caller_s_is_kept(client, server):
    mesedi.emit_eval_score("judge", "metric", 0.5, event_id="evt-mine", execution_id="exec-known")
    mesedi.emit_eval_score("judge", "metric", 0.5, event_id="evt-mine", execution_id="exec-known")

    assert mesedi.flush(5) == 0
    assert list(server.stored) == ["evt-mine"]
    assert server.duplicates == {"evt-mine": 1}


def test_ids_have_128_bits_and_differ(client, server):
    emit(200)

    mesedi.flush(10)
    ids = {event_id.partition("-")[2] for event_id in server.stored}
    assert len(ids) == 200
    assert {len(event_id) for event_id in ids} == {32}


def test_what_was_queued_before_a_second_configure_goes_to_the_first_server(server):
    second = Ingest()
    try:
        configure(server.url, flush_interval_ms=60_000)
        emit(3, execution_id="exec-known")
        configure(second.url)
        emit(2, execution_id="exec-known")

        assert mesedi.flush(5) == 0
        assert (len(server.scores), len(second.scores)) == (3, 2)
        assert mesedi.stats().sent == 5
    finally:
        second.stop()


def test_a_flush_without_patience_tells_the_truth(client, server):
    assert mesedi.flush(0) == 0
    server.rule = lambda _request: Reply(500)

    emit(3, execution_id="exec-known")

    assert mesedi.flush(0) == 3


def test_flush_does_not_wait_for_a_sender_that_has_ended(client, server):
    emit(1, execution_id="exec-known")
    mesedi.flush(5)
    sender = next(t for t in threading.enumerate() if t.name == "mesedi-sender")

    configure(server.url)
    sender.join(5)

    assert not sender.is_alive()
    assert client.flush(5) == 0
    assert mesedi.flush(5) == 0


def test_a_closed_client_counts_what_comes_later(client, server):
    emit(2, execution_id="exec-known")

    assert client.close(5) == 0
    emit(1, execution_id="exec-known")

    assert len(server.scores) == 2
    assert mesedi.stats().dropped == {"after exit": 1}


def test_an_idle_sender_sleeps(client, server):
    emit(1)
    mesedi.flush(5)
    sender = next(t for t in threading.enumerate() if t.name == "mesedi-sender")
    before = len(server.requests)

    used = time.clock_gettime(time.pthread_getcpuclockid(sender.ident))
    threading.Event().wait(0.3)

    assert time.clock_gettime(time.pthread_getcpuclockid(sender.ident)) - used < 0.005
    assert len(server.requests) == before


def test_executions_at_a_distant_server_share_the_waiting(client, server):
    server.latency_s = 0.1
    begun = time.monotonic()
    for _ in range(40):
        with mesedi.execution():
            emit(1)

    assert client.flush(20) == 0
    # One after the other, 40 starts and 40 ends alone would take eight seconds.
    assert time.monotonic() - begun < 4.0
    assert len({request.connection for request in server.requests}) <= 8
    for execution in server.executions.values():
        assert execution["calls"] == ["POST", "PATCH"]


def test_a_server_that_is_down_is_asked_by_one_connection_at_a_time(server):
    server.rule = lambda _request: Reply(503)
    configure(server.url, max_backoff=0.1)
    for _ in range(50):
        with mesedi.execution():
            pass
    eventually(lambda: len(server.requests) >= 12)

    assert len({request.connection for request in server.requests[8:]}) == 1


def test_what_the_server_did_not_count_is_not_counted_as_sent(client, server):
    counted_none = b'{"ok":true,"accepted":0,"rejected":0}'
    server.rule = lambda request: Reply(200, counted_none) if is_events(request) else None
    emit(3, execution_id="exec-1")

    assert mesedi.flush(5) == 0
    assert mesedi.stats().sent == 0
    assert mesedi.stats().refused == {"no reason given": 3}


def test_duplicates_and_answers_without_counts_are_sent(client, server):
    def known(request):
        answer = {"ok": True, "accepted": 0, "duplicates": len(request.body)}
        return Reply(200, json.dumps(answer).encode())

    for rule in (known, lambda _request: Reply(200, b'{"ok":true}')):
        server.rule = rule
        emit(3, execution_id="exec-1")
        assert mesedi.flush(5) == 0

    assert mesedi.stats().sent == 6


def test_alternating_trouble_does_not_flood_the_log(client, server, caplog):
    server.rule = lambda _request: Reply(503) if len(server.requests) % 2 else None
    for _ in range(6):
        emit(1, execution_id="exec-1")
        assert mesedi.flush(10) == 0

    assert len(server.requests) >= 12
    assert len([r for r in caplog.records if "tried again" in r.message]) == 1
