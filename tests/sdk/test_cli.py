"""`python -m mesedi`: result files from a shell."""

import io
import json
import subprocess
import sys

import pytest
from mesedi._cli import main
from mesedi._result_files import UnreadableError, read_result

from tests.sdk.conftest import FIXTURES, KEY
from tests.sdk.ingest import free_port
from tests.sdk.test_process import SDK

JUDGED = str(FIXTURES / "ragas" / "ragas_0.4.3_judged.json")
CORE = str(FIXTURES / "promptfoo" / "promptfoo_0.123.1_core.json")
WIRE = {"event_id", "execution_id", "event_type", "sequence", "timestamp", "payload"}


@pytest.fixture
def shown(capsys):
    def show(*arguments):
        code = main(["show", *map(str, arguments)])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return show


@pytest.fixture
def at(server, monkeypatch):
    monkeypatch.setenv("MESEDI_API_KEY", KEY)
    monkeypatch.setenv("MESEDI_BASE_URL", server.url)
    return server


@pytest.mark.parametrize(
    ("tool", "file", "scores"),
    [("ragas", JUDGED, 48), ("promptfoo", CORE, 60), ("promptfoo", CORE + "l", 60)],
)
def test_show_prints_the_events_that_send_would_send(shown, at, capsys, tool, file, scores):
    code, events = shown(tool, file)
    assert main(["send", tool, file]) == code == 0

    def told(event):
        return {**event, "timestamp": None}

    assert [told(event) for event in events] == [told(event) for event in at.events]
    assert {frozenset(event) for event in events} == {frozenset(WIRE)}
    assert len(at.scores) == scores
    assert capsys.readouterr().out.startswith(f"{scores} scores found")


def test_show_needs_no_key_and_sends_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "mesedi", "show", "ragas", JUDGED],
        env={"PYTHONPATH": str(SDK)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 54


def test_a_file_sent_twice_is_stored_once_and_a_changed_one_anew(at, tmp_path):
    file = tmp_path / "results.json"
    rows = [{"faithfulness": 0.5, "response": "a"}, {"faithfulness": 0.7, "response": "a"}]

    for score in (0.5, 0.5, 0.9):
        rows[0]["faithfulness"] = score
        file.write_text(json.dumps(rows))
        assert main(["send", "ragas", str(file)]) == 0

    assert [score["score"] for score in at.scores] == [0.5, 0.7, 0.9, 0.7]


def test_send_fails_when_the_scores_did_not_arrive(monkeypatch, capsys):
    monkeypatch.setenv("MESEDI_API_KEY", KEY)
    monkeypatch.setenv("MESEDI_BASE_URL", f"http://127.0.0.1:{free_port()}")

    assert main(["send", "ragas", JUDGED, "--timeout", "0.3"]) == 1

    assert "66 left" in capsys.readouterr().out


def test_send_without_a_key_says_so(capsys):
    assert main(["send", "ragas", JUDGED]) == 2

    assert "MESEDI_API_KEY" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "name", "content", "options", "scores"),
    [
        ("ragas", "r.json", '[{"faithfulness": 0.5}]', [], [("faithfulness", 0.5)]),
        ("ragas", "r.jsonl", '{"bleu_score": 0}\n\n{"bleu_score": 1}\n', [], [("bleu_score", 0), ("bleu_score", 1)]),
        ("ragas", "r.csv", "faithfulness,id\n0.5,7\n,8\n", [], [("faithfulness", 0.5), ("faithfulness", None)]),
        ("ragas", "r.csv", "mine,tone,id\n0.5,pass,7\n", ["--metrics", "mine, tone"], [("mine", 0.5), ("tone", 1)]),
        ("ragas", "r", '{"faithfulness": NaN}', [], [("faithfulness", None)]),
        ("ragas", "r.json", '{"result": 0.5, "reason": "r"}', ["--metric", "tone"], [("tone", 0.5)]),
        ("promptfoo", "r.json", '{"pass": false, "score": 0.5}', ["--metric", "tone"], [("tone", 0.5)]),
        ("hhem", "r.json", "[0.5, 0.7]", [], [("factual_consistency", 0.5), ("factual_consistency", 0.7)]),
        ("hhem", "r.csv", "generation_score_hallucination_score\n0.88\n", [], [("factual_consistency", 0.88)]),
        ("hhem", "r.json", "\ufeff0.25", [], [("factual_consistency", 0.25)]),
    ],
)  # fmt: skip
def test_files_of_every_format_are_read(shown, tmp_path, tool, name, content, options, scores):
    file = tmp_path / name
    file.write_text(content, "utf-8")

    code, events = shown(tool, file, *options)

    assert code == 0
    assert [(e["payload"]["metric_type"], e["payload"]["score"]) for e in events] == scores


def test_a_table_s_contexts_are_read_as_pandas_writes_them(shown, tmp_path):
    file = tmp_path / "r.csv"
    file.write_text(
        "user_input,response,retrieved_contexts,faithfulness\n"
        "q,a,\"['it''s, here', 'there']\",0.5\nq,a,one context,0.5\n"
    )

    _, events = shown("ragas", file)

    answers = [event["payload"] for event in events if event["event_type"] == "answer"]
    assert [answer["context"]["excerpts"] for answer in answers] == [
        ["its, here", "there"],
        ["one context"],
    ]


def test_thresholds_give_verdicts(shown, tmp_path):
    file = tmp_path / "r.json"
    file.write_text('[{"faithfulness": 0.5, "bleu_score": 0.5}]')

    _, events = shown("ragas", file, "--threshold", "faithfulness=0.6")
    assert [event["payload"].get("passed") for event in events] == [False, None]

    file.write_text("0.6")
    _, events = shown("hhem", file, "--threshold", "0.7")
    assert [event["payload"]["passed"] for event in events] == [False]


def test_judged_texts_go_along_where_it_is_usual_or_asked_for(shown):
    def has_answers(*arguments):
        return any(event["event_type"] == "answer" for event in shown(*arguments)[1])

    assert has_answers("ragas", JUDGED)
    assert not has_answers("ragas", JUDGED, "--no-answers")
    assert not has_answers("promptfoo", CORE)
    assert has_answers("promptfoo", CORE, "--answers")


def test_a_file_may_come_through_a_pipe(shown, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b'{"faithfulness": 0.5}'))
    monkeypatch.setattr(sys, "stdin", stdin)

    code, events = shown("ragas", "-")

    assert code == 0
    assert len(events) == 1


def test_a_file_without_scores_is_no_success(shown, tmp_path, caplog):
    file = tmp_path / "r.json"
    file.write_text('[{"id": 1}]')

    assert shown("ragas", file) == (1, [])
    assert "found no scores" in caplog.text


@pytest.mark.parametrize("content", [b"not json", b"\xff\xfe", b"", b"[" * 100_000])
def test_what_cannot_be_read_is_said_without_a_traceback(tmp_path, capsys, content):
    file = tmp_path / "r.json"
    file.write_bytes(content)

    assert main(["show", "ragas", str(file)]) == 2
    assert main(["show", "ragas", str(tmp_path / "missing.json")]) == 2

    assert capsys.readouterr().err.startswith("mesedi: ")


def test_the_suffix_settles_what_cannot_be_told_apart():
    assert read_result(b'{"a": 1}\n{"a": 2}', "x.jsonl") == [{"a": 1}, {"a": 2}]
    assert read_result('{"a": "\u2028"}\r\n'.encode(), "x.jsonl") == [{"a": "\u2028"}]
    assert read_result(b'{"a": 1}\n{"a": 2}', "x.json") == [{"a": 1}, {"a": 2}]
    assert read_result(b"a\n1", "x.csv") == [{"a": "1"}]
    with pytest.raises(UnreadableError, match=r"x\.json"):
        read_result(b"a\n1", "x.json")
