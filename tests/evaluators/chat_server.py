"""A real local server that speaks the OpenAI chat protocol, well or badly."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERDICT = '{"outcome": "met"}'


def answer(text=VERDICT, finish_reason="stop", usage=None, **message):
    """The body of a whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}}
    usage = usage or {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return json.dumps(
        {
            "object": "chat.completion",
            "choices": [choice | {"finish_reason": finish_reason}],
            "usage": usage,
        }
    ).encode()


class ChatServer(ThreadingHTTPServer):
    """Answers every request by `respond(handler)` and keeps what it was asked."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, respond):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond
        self.asked = []
        self.stopping = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request, client_address):
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), self.asked))
        self.server.respond(self)

    def reply(self, status, body, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def serving(respond):
    """Serve until the block ends; bytes stand for a whole answer with status 200."""
    if isinstance(respond, bytes):
        body = respond

        def respond(handler):
            handler.reply(200, body)

    server = ChatServer(respond)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
