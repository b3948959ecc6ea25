"""A real HTTP server that keeps the wire contract, and misbehaves when a test tells it to."""

import gzip
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    method: str
    path: str
    headers: dict
    body: object
    wire_bytes: int
    at: float
    connection: object


@dataclass
class Reply:
    """An answer instead of the right one; `store` says whether the request counts all the same."""

    status: int
    content: bytes = b'{"ok":false,"error":"told to"}'
    headers: dict = field(default_factory=dict)
    store: bool = False


class Reset:
    """Close the connection without an answer; `store` as in `Reply`."""

    def __init__(self, *, store=False):
        self.store = store


class Silence:
    """Never answer."""


Rule = Callable[[Request], "Reply | Reset | Silence | None"]


class Ingest:
    """What the tests ask: `requests` in order, what is stored, and who misbehaves how."""

    def __init__(self, port=0):
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self.requests: list[Request] = []
        self.stored: dict[str, dict] = {}
        self.order: list[str] = []
        self.duplicates: Counter = Counter()
        self.executions: dict[str, dict] = {}
        self.latency_s = 0.0
        self.rule: Rule = lambda _request: None
        self.refuse: Callable[[dict], str | None] = lambda _event: None
        self.halts: dict[str, str] = {}
        self.listeners: list[str] = []
        self.halt_status = 200
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True
        )
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self):
        return self._http.server_address[1]

    def stop(self):
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        self._http.shutdown()
        self._http.server_close()

    def wait_for(self, fact, timeout=10.0):
        """Wait until `fact()` holds; checked after each request."""
        with self._changed:
            assert self._changed.wait_for(fact, timeout), "it did not come to pass"

    @property
    def events(self):
        return [self.stored[event_id] for event_id in self.order]

    def of_type(self, event_type):
        return [event for event in self.events if event["event_type"] == event_type]

    @property
    def scores(self):
        return [event["payload"] for event in self.of_type("eval_score")]

    def halt(self, execution_id, reason):
        with self._changed:
            self.halts[execution_id] = reason
            self._changed.notify_all()

    def stream(self, execution_id, write):
        """Stream an execution's halt as wire.md 1.7 has it."""
        with self._changed:
            self.listeners.append(execution_id)
            self._changed.notify_all()
        write(b": subscribed execution=x\n\n")
        with self._changed:
            self._changed.wait_for(
                lambda: execution_id in self.halts or self._stopping.is_set(), timeout=20
            )
            reason = self.halts.get(execution_id)
            self.listeners.remove(execution_id)
        if reason is not None:
            write(f"event: halt\ndata: {json.dumps({'reason': reason})}\n\n".encode())

    def answer(self, request: Request):
        time.sleep(self.latency_s)
        with self._changed:
            self.requests.append(request)
            behaviour = self.rule(request)
            if behaviour is None or getattr(behaviour, "store", False):
                answer = self._take(request)
            self._changed.notify_all()
        if isinstance(behaviour, Silence):
            self._stopping.wait(30)
        return answer if behaviour is None else behaviour

    def _take(self, request):
        if request.path == "/events":
            return self._take_events(request.body)
        execution_id = request.body.get("execution_id") or request.path.rpartition("/")[2]
        known = self.executions.setdefault(execution_id, {"calls": []})
        known["calls"].append(request.method)
        known[request.method] = request.body
        return Reply(200, json.dumps({"ok": True, "execution_id": execution_id}).encode())

    def _take_events(self, events):
        errors, duplicates = [], 0
        for index, event in enumerate(events):
            if reason := self.refuse(event):
                event_id = event["event_id"]
                errors.append({"index": index, "event_id": event_id, "reason": reason})
            elif event["event_id"] in self.stored:
                self.duplicates[event["event_id"]] += 1
                duplicates += 1
            else:
                self.stored[event["event_id"]] = event
                self.order.append(event["event_id"])
        answer = {
            "ok": True,
            "accepted": len(events) - len(errors),
            "rejected": len(errors),
            "duplicates": duplicates,
            "errors": errors,
        }
        return Reply(200, json.dumps(answer).encode())


def _handler(ingest):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            plain = gzip.decompress(raw) if self.headers["Content-Encoding"] == "gzip" else raw
            request = Request(
                self.command,
                self.path,
                dict(self.headers),
                json.loads(plain, parse_constant=_no_bare_nan),
                len(raw),
                time.monotonic(),
                self.connection,
            )
            self._send(ingest.answer(request))

        def do_GET(self):
            self.close_connection = True
            self.send_response(ingest.halt_status)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            if ingest.halt_status == 200:
                ingest.stream(self.path.split("/")[2], self.wfile.write)

        do_PATCH = do_POST  # noqa: N815 - the name that http.server looks for

        def _send(self, behaviour):
            if isinstance(behaviour, Reply):
                self.send_response(behaviour.status)
                for name, value in behaviour.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(behaviour.content)))
                self.end_headers()
                self.wfile.write(behaviour.content)
                return
            self.close_connection = True
            if isinstance(behaviour, Reset):
                linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, 0 s: reset instead of close
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

        def log_message(self, *args):
            pass

    return Handler


def _no_bare_nan(token):
    raise ValueError(f"bare {token}")


def free_port():
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(fact, timeout=10.0):
    """Poll for what no request announces."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while not fact():
        assert time.monotonic() < deadline, "it did not come to pass"
        pause.wait(0.01)
