"""Bodies that come slowly, or not at all, hold up nobody else."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from mesedi_server import gateway
from mesedi_server.api.bodies import MAX_BYTES
from tests.factories import make_event
from tests.server.live import ANSWER_S, LiveServer, start, web_process

STALLED = 16
AT_ONCE_S = 1.0
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server(settings) -> Iterator[LiveServer]:
    with web_process(settings) as running:
        yield running


@contextmanager
def upload(server: LiveServer, key: str, announced: int, begin: bytes = b"") -> Iterator:
    """Send the head of a request and the beginning of its body."""
    head = (
        f"POST /events HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {announced}\r\n\r\n"
    )
    with socket.create_connection((server.host, server.port), timeout=ANSWER_S) as connection:
        connection.sendall(head.encode() + begin)
        yield connection


def answer_to(connection: socket.socket, body: bytes) -> bytes:
    """Send on and read the answer; empty where the connection was closed before all was sent."""
    try:
        connection.sendall(body)
        return connection.recv(4096)
    except ConnectionError:
        return b""


def timed(server: LiveServer, *request):
    begun = time.monotonic()
    answer = server.send(*request)
    return answer, time.monotonic() - begun


@pytest.mark.parametrize("begin", [b"", b"["])
def test_stalled_uploads_do_not_hold_up_other_requests(server, tenant, begin):
    with ExitStack() as stack:
        for _ in range(STALLED):
            stack.enter_context(upload(server, tenant.ingest.key, 1000, begin))
        time.sleep(0.2)
        posted = timed(server, "POST", "/events", [make_event()], tenant.ingest.key)
        read = timed(server, "GET", "/executions", None, tenant.read.key)

    assert posted[0].json["accepted"] == 1
    assert read[0].status == 200
    assert max(posted[1], read[1]) < AT_ONCE_S


def test_an_upload_that_stalls_is_put_off_and_its_connection_closed(server, tenant):
    with upload(server, tenant.ingest.key, 1000, b"[") as connection:
        begun = time.monotonic()
        received = b"".join(iter(lambda: connection.recv(4096), b""))

    assert received.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in received.lower()
    assert gateway.GRACE_S - 1 < time.monotonic() - begun < gateway.GRACE_S + 5


def test_an_upload_may_take_longer_than_the_grace_if_it_keeps_its_pace(server, tenant):
    body = json.dumps([make_event(payload={"text": "x" * (2 * MIB - 1000)})]).encode()
    parts = 24
    size = len(body) // parts + 1
    with upload(server, tenant.ingest.key, len(body)) as connection:
        for at in range(0, len(body), size):
            connection.sendall(body[at : at + size])
            time.sleep((gateway.GRACE_S + 2) / parts)
        received = connection.recv(4096)

    assert b'"accepted":1' in received


def test_large_bodies_at_once_are_bounded_and_small_ones_still_taken(server, tenant):
    part = b"[" + b" " * (MAX_BYTES - 1000)
    most = gateway.MAX_HELD_BYTES // MAX_BYTES
    with ExitStack() as stack:
        for _ in range(most):
            stack.enter_context(upload(server, tenant.ingest.key, MAX_BYTES, part))
        refused = stack.enter_context(upload(server, tenant.ingest.key, MAX_BYTES))
        answer = answer_to(refused, part[: 4 * MIB])
        small = server.send("POST", "/events", [make_event()], tenant.ingest.key)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 503 ")
    assert small.json["accepted"] == 1
    large = [make_event(payload={"text": "x" * MIB})]
    assert server.send("POST", "/events", large, tenant.ingest.key).json["accepted"] == 1


def test_a_body_that_ends_early_is_not_taken(server, tenant):
    event = make_event()
    with upload(server, tenant.ingest.key, 10_000, json.dumps([event]).encode()) as connection:
        connection.shutdown(socket.SHUT_WR)
        connection.recv(4096)

    again = server.send("POST", "/events", [event], tenant.ingest.key)
    assert again.json["duplicates"] == 0


def test_one_connection_carries_many_requests(server, tenant):
    connection = server.connect()
    for number in range(3):
        content = iter([json.dumps([make_event()]).encode()]) if number == 1 else [make_event()]
        response = start(connection, "POST", "/events", content, tenant.ingest.key)
        assert json.loads(response.read())["accepted"] == 1
    connection.close()
