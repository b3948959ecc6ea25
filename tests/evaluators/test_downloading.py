"""A capture of a server's group: what servers, networks and keys can do to it."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evaluators import downloading
from evaluators.downloading import Group, download
from evaluators.errors import DownloadError
from tests.evaluators.records import assistant, user

KEY = "mesedi_sk_secret"
RECORDS = [user(), assistant(case_id="exec/a")]
DATASET = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS) + b"\n"


@contextmanager
def serving(respond):
    """Serve GET by `respond(handler)` until the block ends; bytes stand for a whole dataset."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.server.asked.append((self.path, dict(self.headers)))
            if isinstance(respond, bytes):
                reply(self, respond)
            else:
                respond(self)

        def log_message(self, *_):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close, server.asked = True, False, []
    server.handle_error = lambda *_: None
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def begin(handler, status=200, kind="application/x-ndjson", **headers):
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def reply(handler, body, status=200, **options):
    begin(handler, status, Content_Length=str(len(body)), **options)
    handler.wfile.write(body)


@pytest.fixture
def captured(tmp_path, command, monkeypatch):
    """Captures a group of a server; returns exit code, output, errors, and what the folder holds."""
    monkeypatch.setenv("MESEDI_API_KEY", KEY)

    def run(server, *more):
        out = tmp_path / "runs"
        place = ("--from-group", "grp-1", "--server", getattr(server, "url", server))
        result = command("capture", *place, "--out", out, *more)
        return *result, sorted(out.iterdir()) if out.exists() else []

    return run


def refused(captured, respond) -> str:
    """The error of a capture that must leave nothing behind."""
    with serving(respond) as server:
        code, out, err, left = captured(server)
    assert (code, out, left) == (1, "", [])
    assert KEY not in err
    return err


def test_a_group_becomes_a_run_whose_manifest_says_where_it_came_from(captured):
    counts = {
        "Mesedi_Executions": "5",
        "Mesedi_Executions_Without_Answer": "3",
        "Mesedi_Executions_Beyond_Limit": "7",
    }

    def respond(handler):
        reply(handler, DATASET, **counts)

    with serving(respond) as server:
        code, out, err, left = captured(server, "--passing", 4, "--limit", 9)

    (run,) = left
    assert (code, out.strip()) == (0, str(run))
    assert run.name.endswith("_grp-1")
    assert "3 executions that have sent no answer" in err
    assert "7 executions that are older" in err
    path, headers = server.asked[0]
    assert path == "/failure-groups/grp-1/dataset?passing=4&limit=9"
    assert headers["Authorization"] == f"Bearer {KEY}"
    manifest = json.loads((run / "manifest.json").read_text())
    source = manifest["source"]
    assert manifest["dataset"] == source["url"] == f"{server.url}/failure-groups/grp-1"
    assert (source["group"], source["passing"], source["limit"]) == ("grp-1", 4, 9)
    assert source["executions_without_answer"] == 3
    assert source["downloaded_at"].endswith("Z")
    files = [path for path in run.rglob("*") if path.is_file()]
    assert all(KEY.encode() not in path.read_bytes() for path in files)


def test_a_group_without_answers_is_an_empty_capture(captured, command):
    with serving(b"\n") as server:
        code, _, err, (run,) = captured(server)

    assert (code, err) == (0, "")
    assert json.loads(command("status", run, "--json")[1])["planned_records"] == 0


@pytest.mark.parametrize("end", [0, 10, len(DATASET) // 2, len(DATASET) - 1])
def test_a_dataset_that_was_cut_off_is_refused_however_tidily(captured, end):
    assert "cut off" in refused(captured, DATASET[:end])


def test_a_connection_that_breaks_in_the_middle_is_refused(captured):
    def respond(handler):
        begin(handler, Content_Length=str(len(DATASET)))
        handler.wfile.write(DATASET[:40])
        handler.close_connection = True

    assert "cut off" in refused(captured, respond) or "IncompleteRead" in refused(captured, respond)


def test_a_chunk_that_never_comes_is_refused(captured):
    def respond(handler):
        begin(handler, Transfer_Encoding="chunked")
        handler.wfile.write(b"28\r\n" + DATASET[:40] + b"\r\n5")
        handler.close_connection = True

    assert "does not hand the group over" in refused(captured, respond)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "does not know the API key"),
        (403, "no scope read"),
        (404, "no such failure group"),
        (302, "points elsewhere"),
        (503, "answers 503: try again"),
        (400, "answers 400: try again"),
    ],
)
def test_what_a_server_refuses_is_said_in_words(captured, status, words):
    body = json.dumps({"ok": False, "error": "try again"}).encode()

    def respond(handler):
        reply(handler, body, status, kind="application/json", Location="http://elsewhere/")

    assert words in refused(captured, respond)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": "\x1b[2J"}', b"[" * 9000])
def test_an_error_that_is_none_of_ours_is_an_error_all_the_same(captured, body):
    def respond(handler):
        reply(handler, body, 500)

    err = refused(captured, respond)

    assert "answers 500" in err
    assert "\x1b" not in err


def test_a_server_that_is_none_of_ours_is_found_out(captured):
    def respond(handler):
        reply(handler, b"<html>hello</html>\n\n", kind="text/html")

    assert "is it the right one?" in refused(captured, respond)


def test_one_bad_record_leaves_nothing_behind(captured):
    assert "line 1: is not JSON" in refused(captured, b"{\n\n")


def test_nobody_there_is_an_error(captured):
    with serving(DATASET) as server:
        pass

    code, _, err, left = captured(server)

    assert (code, left) == (1, [])
    assert "does not hand the group over" in err


def test_a_silent_server_and_a_slow_one_are_given_up(tmp_path):
    stop = threading.Event()

    def silent(handler):
        stop.wait(10)

    def slow(handler):
        begin(handler)
        while not stop.wait(0.05):
            handler.wfile.write(b" ")

    started = time.monotonic()
    for respond, limits in ((silent, {"silence_s": 0.3}), (slow, {"timeout_s": 0.5})):
        with serving(respond) as server, pytest.raises(DownloadError, match="in time"):
            download(Group(server.url, "g"), KEY, tmp_path / respond.__name__, **limits)
    stop.set()

    assert time.monotonic() - started < 5
    assert downloading.SILENCE_S < downloading.TIMEOUT_S < float("inf")


@pytest.mark.parametrize(
    "server", ["ftp://x", "localhost:8000", "http://", "http://u:p@x", "http://x?y", "http://x:y"]
)
def test_what_is_no_server_is_refused(captured, server):
    code, _, err, left = captured(server)

    assert (code, left) == (1, [])
    assert "--server" in err


def test_a_server_may_live_below_a_path(captured):
    with serving(DATASET) as server:
        assert captured(f"{server.url}/mesedi/")[0] == 0

    assert server.asked[0][0] == "/mesedi/failure-groups/grp-1/dataset"


def test_the_key_comes_from_the_environment_or_a_file(captured, tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_text("mesedi_sk_other\n")
    with serving(DATASET) as server:
        assert captured(server, "--api-key-file", file)[0] == 0
        monkeypatch.setenv("MESEDI_API_KEY", "two\nlines")
        code, _, err, _ = captured(server)
        monkeypatch.delenv("MESEDI_API_KEY")
        missing, _, told, _ = captured(server)

    assert [headers["Authorization"] for _, headers in server.asked] == ["Bearer mesedi_sk_other"]
    assert (code, missing) == (1, 1)
    assert "two" not in err
    assert "MESEDI_API_KEY" in told


def test_a_dataset_is_a_file_or_a_group(command, tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_bytes(DATASET)

    calls = [
        ("capture",),
        ("capture", "--dataset", file, "--from-group", "g", "--server", "http://x"),
        ("capture", "--from-group", "g"),
        ("capture", "--dataset", file, "--passing", 3),
        ("capture", "--dataset", file, "--server", "http://x"),
    ]

    assert [command(*call)[0] for call in calls] == [1] * len(calls)
