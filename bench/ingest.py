"""Measure ingest and detection in one run: generator, server, database and broker on the same cores.

    python -m bench.ingest [--seconds 8] [--web-workers 1]

Stored events per second (committed before the answer), latency, CPU of each part per event, and the time from the
close of an execution to its group's being visible in the API while 200 executions a second close.
"""

import argparse
import http.client
import json
import os
import platform
import subprocess
import sys
import threading
import time

from bench.system import System, running

CLOSES_A_SECOND = 200
PROBE_EVERY = 20
"""Every so manyth execution fails in a group of its own, whose appearance is timed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--web-workers", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}")
    with running(arguments.web_workers) as system:
        measure_ingest(system, 100, 4, 2.0)  # warm-up, not shown
        print(
            "\nbatch  connections  events/s  requests/s  p50 ms  p99 ms"
            "  CPU µs/event: web  worker  database  generator"
        )
        for batch, connections in ((100, 4), (100, 8), (1, 8), (1, 32)):
            print(
                _row(
                    batch,
                    connections,
                    measure_ingest(system, batch, connections, arguments.seconds),
                )
            )
        print(f"\nclose to visible group, {CLOSES_A_SECOND} executions a second closing:")
        print(_visibility(measure_visibility(system, arguments.seconds * 2)))


def measure_ingest(system: System, batch: int, connections: int, seconds: float) -> dict:
    before = system.cpu_s()
    command = [sys.executable, "-m", "bench.load", str(system.port), system.key]
    done = subprocess.run(
        [*command, str(batch), str(connections), str(seconds)], capture_output=True, check=True
    )
    after = system.cpu_s()
    result = json.loads(done.stdout)
    result["cpu_us"] = {
        part: (after[part] - before[part]) / result["events"] * 1e6 for part in after
    }
    result["cpu_us"]["generator"] = result["generator_cpu_s"] / result["events"] * 1e6
    return result


def _row(batch: int, connections: int, result: dict) -> str:
    cpu = result["cpu_us"]
    return (
        f"{batch:5}  {connections:11}  {result['events'] / result['seconds']:8.0f}"
        f"  {result['requests'] / result['seconds']:10.0f}  {result['p50_ms']:6.1f}  {result['p99_ms']:6.1f}"
        f"  {cpu['web']:17.0f}  {cpu['worker']:6.0f}  {cpu['database']:8.0f}  {cpu['generator']:9.0f}"
    )


class Closer:
    """Opens, scores and closes executions at a steady pace, and watches for the probes' groups."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.headers = {
            "Authorization": f"Bearer {system.key}",
            "Content-Type": "application/json",
        }
        self.closed_at: dict[str, float] = {}
        self.seen_at: dict[str, float] = {}
        self.is_done = threading.Event()

    def close(self, threads: int, seconds: float) -> int:
        """Close executions from some threads; return how many."""
        counts = [0] * threads

        def work(index: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", self.system.port, timeout=60)
            start = time.monotonic()
            while (now := time.monotonic()) < start + seconds:
                due_at = start + counts[index] * threads / CLOSES_A_SECOND
                if due_at > now:
                    time.sleep(due_at - now)
                self._execution(connection, f"{index}-{counts[index]}", counts[index])
                counts[index] += 1

        workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return sum(counts)

    def watch(self) -> None:
        """Note when each probe's group is first in the list."""
        while not self.is_done.is_set():
            groups = self.system.get("/failure-groups?q=probe-&limit=200")["failure_groups"]
            now = time.monotonic()
            for group in groups:
                self.seen_at.setdefault(group["evaluator_id"], now)
            time.sleep(0.02)

    def _execution(self, connection: http.client.HTTPConnection, name: str, number: int) -> None:
        probe = f"probe-{name}" if number % PROBE_EVERY == 0 else "ragas"
        execution = f"close-{name}"
        events = [
            {
                "event_id": f"{execution}-{position}",
                "execution_id": execution,
                "event_type": "eval_score",
                "sequence": position,
                "payload": {
                    "evaluator_id": probe,
                    "metric_type": metric,
                    "score": 0.3,
                    "reason": "a claim without support",
                },
            }
            for position, metric in enumerate(
                ("faithfulness", "answer_relevancy", "context_recall")
            )
        ]
        if probe != "ragas":
            del events[1:]
        self._send(connection, "POST", "/executions", {"execution_id": execution})
        self._send(connection, "POST", "/events", events)
        self._send(connection, "PATCH", f"/executions/{execution}", {"status": "completed"})
        if probe != "ragas":
            self.closed_at[probe] = time.monotonic()

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: object
    ) -> None:
        connection.request(method, path, json.dumps(body), self.headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status


def measure_visibility(system: System, seconds: float) -> dict:
    closer = Closer(system)
    watcher = threading.Thread(target=closer.watch)
    watcher.start()
    started = time.monotonic()
    closed = closer.close(12, seconds)
    rate = closed / (time.monotonic() - started)
    give_up_at = time.monotonic() + 20
    while len(closer.seen_at) < len(closer.closed_at) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    closer.is_done.set()
    watcher.join()
    waits = sorted(closer.seen_at.get(p, give_up_at) - at for p, at in closer.closed_at.items())
    return {"rate": rate, "waits": waits}


def _visibility(result: dict) -> str:
    waits = result["waits"]
    return (
        f"  {result['rate']:.0f} executions/s, {len(waits)} timed:"
        f" p50 {waits[len(waits) // 2]:.2f} s, p99 {waits[int(len(waits) * 0.99)]:.2f} s, worst {waits[-1]:.2f} s"
    )


if __name__ == "__main__":
    main()
