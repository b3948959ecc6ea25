"""The examples, run as a reader would run them."""

import json
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
    settings = {"MESEDI_API_KEY": KEY, "MESEDI_BASE_URL": base_url}
    return run(example, str(FIXTURES / file), **settings)


def run(example, *arguments, **settings):
    python_path = str(Path(mesedi.__file__).parents[1])
    return subprocess.run(
        [sys.executable, str(EXAMPLES / example), *arguments],
        env={**os.environ, "PYTHONPATH": python_path, **settings},
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


def test_lines_end_where_json_lines_end(server, tmp_path):
    row = {"user_input": "How\u2028much?", "response": "5 mg", "faithfulness": 1.0}
    lines = [json.dumps(row, ensure_ascii=False), "", json.dumps(row | {"faithfulness": 0.0})]
    (tmp_path / "rows.jsonl").write_text("\r\n".join([*lines, ""]), "utf-8")

    done = send("send_ragas.py", tmp_path / "rows.jsonl", server.url)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 scores found")


@pytest.mark.parametrize("example", ["send_ragas.py", "send_promptfoo.py"])
@pytest.mark.parametrize(
    ("arguments", "words"), [([], "required: FILE"), (["none.json"], "none.json does not exist")]
)
def test_an_example_without_its_file_says_how_it_is_used(example, arguments, words):
    done = run(example, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"usage: {example}")
    assert words in done.stderr


def test_an_example_fails_when_nothing_could_be_sent():
    done = send(
        "send_promptfoo.py",
        "promptfoo/promptfoo_0.123.1_core.json",
        f"ftp://127.0.0.1:{free_port()}",
    )

    assert done.returncode == 1
    assert "base_url must look like" in done.stderr
