import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from evaluators import cli, commands, rundir
from tests.evaluators.records import assistant, captured, pairs, user, write

ROOT = Path(cli.__file__).parents[1]
SPEC = """
id: checks
revision: r1
qualification: {qualification}
criteria:
  - id: traceability
    revision: v1
    evaluator: grounding
"""


@pytest.fixture
def spec_file(tmp_path):
    def write_spec(qualification="reviewed"):
        path = tmp_path / f"{qualification}.yaml"
        path.write_text(SPEC.format(qualification=qualification))
        return path

    return write_spec


@pytest.mark.parametrize(
    ("answer", "qualification", "code", "decision"),
    [
        ("5 mg", "reviewed", 0, "pass"),
        ("9 mg", "reviewed", 2, "fail"),
        ("about 5 mg", "reviewed", 3, "inconclusive"),
        ("5 mg", "draft", 3, "inconclusive"),
        ("9 mg [7]", "draft", 2, "fail"),
    ],
)
def test_the_exit_code_says_what_was_decided(
    tmp_path, command, spec_file, answer, qualification, code, decision
):
    run = captured(tmp_path, [user(), assistant(answer)])

    found, out, err = command("evaluate", run, "--spec", spec_file(qualification))

    assert (found, err) == (code, "")
    assert f"Decision: {decision} (spec checks r1, {qualification})" in out
    assert "Judge calls reserved: 0/unconfigured" in out


@pytest.mark.parametrize("stored_before", [0, 1, 2, 3])
def test_what_evaluate_counts_while_it_works_is_what_is_stored(
    tmp_path, command, spec_file, stored_before
):
    answers = [assistant(text, tags=["a", text], persona_id="p") for text in ("5 mg", "9 mg", "7")]
    run = captured(tmp_path, [turn for each in answers for turn in (user(), each)])
    command("evaluate", run, "--spec", spec_file())
    with closing(sqlite3.connect(rundir.database(run))) as connection, connection:
        connection.execute("DELETE FROM evaluation_results WHERE number >= ?", (stored_before,))

    _, counted, _ = command("evaluate", run, "--spec", spec_file(), "--json")
    _, stored, _ = command("evaluation-status", run, "--json")

    assert json.loads(counted) == json.loads(stored)
    assert json.loads(counted)["counts"] == {"met": 1, "violated": 1, "not_applicable": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("no-such-command",),
        ("capture",),
        ("capture", "--dataset", "no-such-file"),
        ("evaluate", ".", "--spec", "no-such-file"),
        ("evaluate", ".", "--unknown"),
        ("status", "."),
        ("evaluation-status", "."),
        ("report", "."),
        ("resume", ".", "--check"),
        ("export-transcripts", ".", "--out", "x", "--stream", "third"),
    ],
)
def test_every_error_of_usage_or_configuration_exits_1(tmp_path, command, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)

    code, out, err = command(*arguments)

    assert (code, out) == (1, "")
    assert err


def test_help_is_no_error(command):
    code, out, _ = command("evaluate", "--help")

    assert code == 0
    assert "--new-evaluation" in out


def test_capture_prints_the_run_directory_and_nothing_else(tmp_path, command):
    dataset = write(tmp_path / "data.jsonl", [user(), assistant()])

    code, out, err = command("capture", "--dataset", dataset, "--out", tmp_path / "runs")

    assert (code, err) == (0, "")
    assert (Path(out.rstrip("\n")) / "run.sqlite3").is_file()


def test_a_bad_dataset_exits_1_and_names_the_line(tmp_path, command):
    dataset = tmp_path / "data.jsonl"
    dataset.write_text("{}\n")

    code, _, err = command("capture", "--dataset", dataset, "--out", tmp_path / "runs")

    assert code == 1
    assert f"{dataset}: line 1: session_id must be a string" in err


def test_a_call_limit_without_a_target_is_a_usage_error(tmp_path, command):
    dataset = write(tmp_path / "data.jsonl", [user()])

    code, _, err = command("capture", "--dataset", dataset, "--max-target-calls", 3)

    assert code == 1
    assert "needs a --target" in err


def test_a_cost_limit_without_a_call_limit_is_a_usage_error(tmp_path, command, spec_file):
    run = captured(tmp_path, [user(), assistant()])

    code, _, err = command("evaluate", run, "--spec", spec_file(), "--max-judge-cost-micros", 5)

    assert code == 1
    assert "needs --max-judge-calls" in err


def test_a_deterministic_spec_loads_no_factory(tmp_path, command, spec_file):
    run = captured(tmp_path, [user(), assistant()])

    code, out, _ = command(
        "evaluate",
        run,
        "--spec",
        spec_file(),
        "--judge-factory",
        "no_such_module:judge",
        "--evaluator-factory",
        "no_such_module:evaluator",
        "--max-judge-calls",
        20,
    )

    assert code == 0
    assert "Judge calls reserved: 0/20" in out


def test_a_second_spec_needs_to_be_asked_for(tmp_path, command, spec_file):
    run = captured(tmp_path, [user(), assistant()])
    command("evaluate", run, "--spec", spec_file("draft"))

    refused, _, err = command("evaluate", run, "--spec", spec_file())
    accepted, _, _ = command("evaluate", run, "--spec", spec_file(), "--new-evaluation")

    assert (refused, accepted) == (1, 0)
    assert "--new-evaluation" in err


def test_evaluation_status_of_a_violation_exits_0(tmp_path, command, spec_file):
    run = captured(tmp_path, [user(), assistant("9 mg")])
    command("evaluate", run, "--spec", spec_file())

    code, out, _ = command("evaluation-status", run)

    assert code == 0
    assert "Decision: fail" in out


def test_every_command_prints_json_when_asked(tmp_path, command, spec_file):
    dataset = write(tmp_path / "data.jsonl", [user(), assistant("9 mg")])
    made = json.loads(command("capture", "--dataset", dataset, "--out", tmp_path, "--json")[1])
    run = made["run_directory"]

    outputs = {
        "evaluate": command("evaluate", run, "--spec", spec_file(), "--json"),
        "evaluation-status": command("evaluation-status", run, "--json"),
        "status": command("status", run, "--json"),
        "resume": command("resume", run, "--check", "--json"),
        "export": command("export-transcripts", run, "--out", tmp_path / "out", "--json"),
        "report": command("report", run, "--json"),
    }

    parsed = {name: json.loads(out) for name, (_, out, _) in outputs.items()}
    assert parsed["evaluate"] == parsed["evaluation-status"]
    assert parsed["evaluate"]["decision"] == "fail"
    assert parsed["status"]["run_id"] == made["run_id"]
    assert parsed["resume"]["turns"] == {"primary": 0}
    assert parsed["export"]["records"] == 2
    assert [Path(path).name for path in parsed["report"]["files"]] == [
        "report.html",
        "junit.xml",
        "summary.md",
    ]


def test_details_are_one_json_object_with_every_input_and_result(tmp_path, command, spec_file):
    run = captured(tmp_path, pairs(3))
    command("evaluate", run, "--spec", spec_file())

    details = json.loads(command("evaluation-status", run, "--details")[1])

    assert len(details["inputs"]) == len(details["results"]) == 3
    assert details["manifest"]["run_id"] == details["run_id"]
    assert details["calls"] == []


def test_a_run_at_work_elsewhere_exits_1_at_once(tmp_path, command, spec_file):
    run = captured(tmp_path, [user(), assistant()])

    with rundir.locked(run):
        code, _, err = command("evaluate", run, "--spec", spec_file())

    assert code == 1
    assert "another process works on" in err


def test_a_target_beside_the_dataset_answers(tmp_path, command):
    (tmp_path / "target_of_the_cli_test.py").write_text(
        "from evaluators.targets import RecoveryContract\n"
        "class Bot:\n"
        "    contract = RecoveryContract('0' * 64, 'stateless', 'idempotent')\n"
        "    def chat(self, messages, *, request_id):\n"
        "        return messages[-1]['content'].upper()\n"
        "def make():\n"
        "    return 'shouting', Bot()\n"
    )
    dataset = write(tmp_path / "data.jsonl", [user("how much?"), assistant("old")])
    target = ("--target", "target_of_the_cli_test:make")

    code, out, _ = command("capture", "--dataset", dataset, "--out", tmp_path / "runs", *target)

    assert code == 0
    transcript = Path(out.strip()) / "transcripts" / "shouting.jsonl"
    assert json.loads(transcript.read_text().splitlines()[1])["text"] == "HOW MUCH?"


def mesedi_eval(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    return subprocess.Popen(
        [sys.executable, "-m", "evaluators", *map(str, arguments)], env=environment, **options
    )


def test_progress_is_shown_on_a_terminal_only(tmp_path):
    dataset = write(tmp_path / "data.jsonl", pairs(3))
    arguments = ("capture", "--dataset", dataset, "--out", tmp_path / "runs")
    ours, theirs = pty.openpty()

    on_terminal = mesedi_eval(*arguments, stdout=subprocess.DEVNULL, stderr=theirs)
    assert on_terminal.wait(timeout=60) == 0
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    quiet = mesedi_eval(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, errors = quiet.communicate(timeout=60)

    assert "Capturing" in shown
    assert errors == b""


def test_a_reader_that_goes_away_is_no_traceback(tmp_path, spec_file, command):
    run = captured(tmp_path, pairs(500))
    command("evaluate", run, "--spec", spec_file())

    process = mesedi_eval(
        "evaluation-status", run, "--details", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=60) == 1
    assert b"Traceback" not in errors


def test_json_is_utf8_in_every_locale(tmp_path, spec_file, command, monkeypatch):
    run = captured(tmp_path, [user("Wie viel? \u2028 50 µg"), assistant("50 µg")])
    command("evaluate", run, "--spec", spec_file())
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")

    process = mesedi_eval("evaluation-status", run, "--details", stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=60)

    assert json.loads(out.decode())["inputs"][0]["data"]["question"] == "Wie viel? \u2028 50 µg"


TALKER = """
from evaluators.custom import Evaluator
from evaluators.targets import RecoveryContract

print("loaded")


class Target:
    contract = RecoveryContract("0" * 64, "stateless")

    def chat(self, messages, *, request_id):
        print("asked")
        return "5 mg"


def target():
    print("made")
    return "bot", Target()


def check(**given):
    print("checked")
    return {"outcome": "not_applicable", "rationale": "r", "evidence": [], "metrics": {}}


def evaluator():
    return Evaluator(id="talker", revision="v1", function=check)
"""
TALK = """
id: talk
revision: r1
criteria:
  - {id: talk, revision: v1, evaluator: talker, allow_not_applicable: true}
"""


def test_a_pipe_gets_the_result_and_nothing_else_whatever_loaded_code_prints(tmp_path):
    dataset = write(tmp_path / "data.jsonl", pairs(1))
    (tmp_path / "talker.py").write_text(TALKER)
    (tmp_path / "talk.yaml").write_text(TALK)

    def piped(*arguments):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with mesedi_eval(*arguments, "--json", **pipes) as process:
            reader = [sys.executable, "-m", "json.tool"]
            done = subprocess.run(
                reader, stdin=process.stdout, capture_output=True, text=True, check=True
            )
            return json.loads(done.stdout), process.stderr.read()

    target = ("--target", "talker:target", "--out", tmp_path / "runs")
    captured, said = piped("capture", "--dataset", dataset, *target)
    run = captured["run_directory"]
    evaluator = ("--spec", tmp_path / "talk.yaml", "--evaluator-factory", "talker:evaluator")
    evaluated, remarked = piped("evaluate", run, *evaluator)
    reported, nothing = piped("report", run)

    assert said == "loaded\nmade\nasked\n"
    assert (remarked, nothing) == ("loaded\nchecked\n", "")
    assert evaluated["counts"] == {"not_applicable": 1}
    assert len(reported["files"]) == 3


def test_the_command_loads_nothing_of_the_server():
    script = (
        "import sys; from evaluators.cli import run_command; run_command(['--help']); "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "print(sorted(loaded & {'flask', 'celery', 'sqlalchemy', 'mesedi_server', 'msgspec', "
        "'marshmallow', 'psycopg', 'detectors'}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_every_module_of_commands_is_loaded_for_its_own():
    found = {}
    for path in Path(commands.__path__[0]).glob("*.py"):
        module = import_module(f"evaluators.commands.{path.stem}")
        found |= {each.name: path.stem for each in getattr(module, "COMMANDS", ())}

    assert found == cli.HOME


def test_the_pure_part_loads_the_standard_library_alone():
    script = (
        "import sys; before = set(sys.modules); import evaluators.grounding, evaluators.metrics; "
        "loaded = set(sys.modules) - before; "
        "print(sorted({n.partition('.')[0] for n in loaded} - set(sys.stdlib_module_names)), "
        "'sqlite3' in loaded)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout == "['evaluators'] False\n"


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_assess_answers_each_line_and_names_a_malformed_one(tmp_path, way):
    lines = [
        {"question": "How much?", "answer": "5 mg [1]", "passages": ["Take 5 mg."]},
        {"question": "How much?"},
        {"question": "How much?", "answer": "9 mg", "context": None},
    ]
    path = write(tmp_path / "answers.jsonl", lines)
    arguments = ["assess", path] if way == "file" else ["assess"]

    with path.open("rb") as given:
        process = mesedi_eval(
            *arguments, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, errors = process.communicate(timeout=60)

    outcomes = [json.loads(line)["outcome"] for line in out.splitlines()]
    assert outcomes == ["met", "missing_evidence"]
    assert errors == b"line 2 has no answer\n"
    assert process.returncode == 1
