"""What a score costs its caller: our SDK beside the published `mesedi` 0.7.0, in one run.

    python -m bench.sdk [--seconds 5]

The published SDK has the import name of ours, so it gets an environment of its own under build/;
where it cannot be installed its column stays empty. The server is a sink in another process.
"""

import argparse
import contextlib
import gzip
import json
import os
import socket
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / "build" / "published-sdk"
REQUIREMENT = "mesedi==0.7.0"
KEY = "mesedi_sk_bench_0123456789abcdefghijkl"
BURST = 20_000
TO_A_DEAD_PORT = 100_000
INSTALL_S = 300
RUN_S = 300

PRELUDE = """
    import json, sys, time
    import mesedi
    mesedi.configure(api_key={key!r}, base_url={url!r})
    clock = time.perf_counter_ns

    def emit():
        began = clock()
        mesedi.emit_eval_score("judge", "faithfulness", 0.42, False, 0.7, reason="unsupported")
        return clock() - began
"""

PACED = """
    @mesedi.wrap
    def pipeline():
        due = time.perf_counter()
        for place in range(1000 * {seconds}):
            due += 0.001
            time.sleep(max(0.0, due - time.perf_counter()))
            took.append(emit())

    took = []
    pipeline()
    print(json.dumps(took[200:]))
    mesedi.flush(10)
"""

IN_A_BURST = """
    @mesedi.wrap
    def pipeline():
        for place in range({count}):
            took.append(emit())

    took = []
    pipeline()
    print(json.dumps(took))
    mesedi.flush(60)
"""

MEMORY = """
    def resident():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    @mesedi.wrap
    def pipeline():
        for place in range({count}):
            mesedi.emit_eval_score("judge", "faithfulness", 0.42, False, 0.7, reason="unsupported")

    before = resident()
    pipeline()
    print(json.dumps(resident() - before))
    sys.stdout.flush()
    import os
    os._exit(0)
"""

IDLE = """
    print("0")
"""

LEAVING = """
    @mesedi.wrap
    def pipeline():
        for place in range({count}):
            emit()

    pipeline()
    print("0", flush=True)
"""


class Sink:
    """Takes every request and counts the events."""

    def __init__(self) -> None:
        self.events = 0
        self._lock = threading.Lock()

    def count(self, body: bytes) -> int:
        events = json.loads(body)
        taken = len(events) if isinstance(events, list) else 0
        with self._lock:
            self.events += taken
        return taken


def serve_sink() -> None:
    """Run the sink until standard input closes; prints its port, then the number of events."""
    sink = Sink()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(sink))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    print(sink.events, flush=True)


def _handler(sink: Sink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken = sink.count(_plain(body, self.headers["Content-Encoding"]))
            answer = json.dumps({"ok": True, "accepted": taken, "rejected": 0}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_PATCH = do_POST  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_args: object) -> None:
            pass

    return Handler


def _plain(body: bytes, encoding: str | None) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "zstd":
        from backports import zstd  # noqa: PLC0415 - where the standard library has none

        return zstd.decompress(body)
    return body


@contextlib.contextmanager
def sink() -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.sdk", "--sink"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process


def stored(process: "subprocess.Popen[str]") -> int:
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    return int(process.stdout.readline())


@contextlib.contextmanager
def black_hole() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        yield f"http://127.0.0.1:{hole.getsockname()[1]}"


def dead_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class Sdk:
    """One column: a Python that finds one of the two SDKs under the name `mesedi`."""

    def __init__(self, python: str, path: str = "") -> None:
        self._python = python
        self._environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path}

    def run(self, url: str, script: str, **values: object) -> tuple[object, float]:
        """Run a script; answers what it printed, and the seconds it took."""
        text = textwrap.dedent(PRELUDE).format(key=KEY, url=url)
        text += textwrap.dedent(script).format(**values)
        began = time.perf_counter()
        done = subprocess.run(
            [self._python, "-c", text],
            env=self._environment,
            cwd=ROOT / "bench",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=RUN_S,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[0]), time.perf_counter() - began


def published() -> Sdk | None:
    """Make the published SDK's environment once; None where it cannot be installed."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", REQUIREMENT]
        done = subprocess.run(
            install, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
        if done.returncode:
            print(f"{REQUIREMENT} cannot be installed here: its column stays empty.")
            return None
        (ENVIRONMENT / ".ready").touch()
    return Sdk(str(python))


def measure(sdk: Sdk, seconds: int) -> dict[str, str]:
    column = {}
    with sink() as (url, process):
        took, _ = sdk.run(url, PACED, seconds=seconds)
        column["paced 1,000/s: median, µs"], column["paced: 99th percentile, µs"] = _times(took)
        process.kill()
    with sink() as (url, process):
        took, _ = sdk.run(url, IN_A_BURST, count=BURST)
        column["burst of 20,000: median, µs"], column["burst: 99th percentile, µs"] = _times(took)
        column["burst: events stored"] = f"{stored(process):,}"
    grown, _ = sdk.run(dead_port(), MEMORY, count=TO_A_DEAD_PORT)
    column["memory after 100,000 to a dead port, MB"] = f"+{grown / 1024:.1f}"
    _, bare = sdk.run(dead_port(), IDLE)
    with black_hole() as hole:
        for name, url in (("dead port", dead_port()), ("black hole", hole)):
            _, whole = sdk.run(url, LEAVING, count=1000)
            column[f"exit, {name}, s"] = f"{whole - bare:.2f}"
    return column


def _times(took: object) -> tuple[str, str]:
    assert isinstance(took, list)
    ordered = sorted(nanoseconds / 1000 for nanoseconds in took)
    return f"{statistics.median(ordered):.1f}", f"{ordered[int(len(ordered) * 0.99)]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5, help="of the paced run")
    parser.add_argument("--sink", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sink:
        serve_sink()
        return
    other = published()
    ours = measure(Sdk(sys.executable, str(ROOT / "sdk")), options.seconds)
    theirs = measure(other, options.seconds) if other else {}
    print(f"{'':42} {'ours':>10} {'mesedi 0.7.0':>14}")
    for name, value in ours.items():
        print(f"{name:42} {value:>10} {theirs.get(name, '-'):>14}")


if __name__ == "__main__":
    main()
