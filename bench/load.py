"""The load generator: a process of its own that posts batches over kept-alive connections.

    python -m bench.load PORT KEY BATCH CONNECTIONS SECONDS

prints one JSON object: events, requests, seconds, latencies in milliseconds, its own CPU seconds.
"""

import http.client
import json
import sys
import threading
import time
from uuid import uuid4

EVENT = (
    b'{"event_id":"evt-%s-%d","execution_id":"exec-%s-%d","event_type":"eval_score","sequence":%d,'
    b'"timestamp":"2026-11-30T22:43:38.014028Z","payload":{"evaluator_id":"ragas/faithfulness",'
    b'"metric_type":"faithfulness","score":0.%02d,"passed":true,"higher_is_better":true,'
    b'"threshold":0.7,"reason":"two of five claims are not supported by the retrieved passages"}}'
)
EVENTS_AN_EXECUTION = 5


class Connection:
    """One client: a kept-alive connection and the events that it sends."""

    def __init__(self, port: int, key: str, batch: int) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.batch = batch
        self.name = uuid4().hex[:12].encode()
        self.sent = 0
        self.latencies_ms: list[float] = []

    def post(self) -> None:
        numbers = range(self.sent, self.sent + self.batch)
        body = b"[%s]" % b",".join(self._event(number) for number in numbers)
        start = time.perf_counter()
        self.http.request("POST", "/events", body, self.headers)
        answer = json.loads(self.http.getresponse().read())
        self.latencies_ms.append((time.perf_counter() - start) * 1000)
        assert answer["accepted"] == self.batch, answer
        self.sent += self.batch

    def _event(self, number: int) -> bytes:
        execution = number // EVENTS_AN_EXECUTION
        return EVENT % (self.name, number, self.name, execution, number, number % 100)


def run(port: int, key: str, batch: int, connections: int, seconds: float) -> dict:
    clients = [Connection(port, key, batch) for _ in range(connections)]
    end_at = time.monotonic() + seconds
    started = time.perf_counter()

    def work(client: Connection) -> None:
        while time.monotonic() < end_at:
            client.post()

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies = sorted(ms for client in clients for ms in client.latencies_ms)
    return {
        "events": sum(client.sent for client in clients),
        "requests": len(latencies),
        "seconds": time.perf_counter() - started,
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[int(len(latencies) * 0.99)],
        "generator_cpu_s": time.process_time(),
    }


if __name__ == "__main__":
    port, key, batch, connections, seconds = sys.argv[1:]
    print(json.dumps(run(int(port), key, int(batch), int(connections), float(seconds))))
