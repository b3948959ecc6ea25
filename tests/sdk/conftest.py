import contextlib
import json
import os
from pathlib import Path

import mesedi
import pytest
from mesedi import _client, _guard

from tests.sdk.ingest import Ingest

# Needs an environment of 900 MB: only `make test-ragas` asks for it.
collect_ignore = [] if os.environ.get("MESEDI_TEST_RAGAS") else ["test_live_ragas.py"]

KEY = "mesedi_sk_test_0123456789abcdefghij"
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(autouse=True)
def _fresh_sdk(monkeypatch):
    """Every test finds the SDK as after its import, and leaves no sender behind."""
    for name in ("API_KEY", "BASE_URL", "RELEASE", "ENVIRONMENT"):
        monkeypatch.delenv(f"MESEDI_{name}", raising=False)
    _guard._said.clear()
    yield
    for client in [*_client._retired, _client._current]:
        if client is not None:
            client.close(timeout=0.2)
    _client._retired.clear()
    _client._finished_events.clear()
    _client._finished_executions.clear()
    _client._unsent.clear()
    monkeypatch.setattr(_client, "_current", None)
    monkeypatch.undo()
    _client._current = None
    _client._unconfigured = False


@pytest.fixture
def server():
    ingest = Ingest()
    with contextlib.closing(_Stopping(ingest)):
        yield ingest


class _Stopping:
    def __init__(self, ingest):
        self.close = ingest.stop


@pytest.fixture
def client(server):
    """The SDK, configured for `server`, quick to send and to try again."""
    return configure(server.url)


def configure(url, **settings):
    quick = {"flush_interval_ms": 20, "max_backoff": 0.1, "timeout": 5.0}
    return mesedi.configure(KEY, url, **{**quick, **settings})


@pytest.fixture
def fixture_json():
    return lambda name: json.loads((FIXTURES / name).read_text("utf-8"))
