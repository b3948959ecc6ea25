"""The examples, run as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import mesedi
import pytest

from tests.sdk.conftest import FIXTURES, KEY
from tests.sdk.ingest import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"


def send(example, file, base_url):
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(mesedi.__file__).parents[1]),
        "MESEDI_API_KEY": KEY,
        "MESEDI_BASE_URL": base_url,
    }
    return subprocess.run(
        [sys.executable, str(EXAMPLES / example), str(FIXTURES / file)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    ("example", "file", "executions", "scores"),
    [
        ("send_ragas.py", "ragas/ragas_0.4.3_judged.json", 6, 48),
        ("send_promptfoo.py", "promptfoo/promptfoo_0.123.1_core.json", 17, 60),
        ("send_promptfoo.py", "promptfoo/promptfoo_0.123.1_core.jsonl", 17, 60),
    ],
)
def test_an_example_sends_a_result_file_and_again_changes_nothing(
    server, example, file, executions, scores
):
    first = send(example, file, server.url)
    second = send(example, file, server.url)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert first.stdout.startswith(f"{scores} scores found")
    assert first.stdout.endswith("0 left, 0 lost\n")
    assert len(server.executions) == executions
    assert len(server.scores) == scores


def test_an_example_fails_when_nothing_could_be_sent():
    done = send(
        "send_promptfoo.py",
        "promptfoo/promptfoo_0.123.1_core.json",
        f"ftp://127.0.0.1:{free_port()}",
    )

    assert done.returncode == 1
    assert "base_url must look like" in done.stderr
