import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from evaluators import evaluate_saved, evaluation_summary, rundir, transcripts
from evaluators.capture import status
from evaluators.errors import CorruptRunError, LockedRunError, RunError
from evaluators.resuming import captured_from, resume
from tests.evaluators.records import assistant, captured, spec, user

RECORDS = [user(), assistant(), user("And?"), assistant("Take 9 mg.")]


HOLDER = """
import sys
from pathlib import Path
from evaluators import rundir
with rundir.locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def change(run, *statements):
    connection = sqlite3.connect(run / "run.sqlite3")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE manifest SET content = replace(content, '\"dataset\"', '\"Dataset\"')",
        "UPDATE dataset SET content = replace(content, '9 mg', '5 mg')",
        "DELETE FROM dataset WHERE position = 0",
        "UPDATE inputs SET case_id = 'other' WHERE ordinal = 1",
        "UPDATE inputs SET tags = '[\"vip\"]'",
        "UPDATE observations SET captured_at = '2020-01-01T00:00:00Z'",
        "DELETE FROM observations WHERE ordinal = 1",
        "DELETE FROM records WHERE ordinal = 1",
        "UPDATE source_artifacts SET content = x'00'",
    ],
)
@pytest.mark.parametrize(
    "read",
    [
        status,
        resume,
        evaluation_summary,
        lambda run: evaluate_saved(run, spec(), new_evaluation=True),
        lambda run: transcripts.export(run, run / "out.jsonl"),
    ],
    ids=["status", "resume", "evaluation-status", "evaluate", "export"],
)
def test_a_capture_that_was_tampered_with_is_refused(tmp_path, statement, read):
    persona = tmp_path / "persona"
    persona.write_text("calm")
    run = captured(tmp_path, RECORDS, persona=persona)
    evaluate_saved(run, spec())
    change(run, statement)

    with pytest.raises(CorruptRunError):
        read(run)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE evaluation_manifests SET content = replace(content, 'reviewed', 'draft')",
        "UPDATE evaluation_inputs SET question_ordinal = NULL",
        "UPDATE evaluation_inputs SET observation_digest = NULL WHERE number = 1",
        "UPDATE evaluation_results SET content = replace(content, 'violated', 'met')",
        """
        UPDATE evaluation_results SET (content, digest) =
            (SELECT content, digest FROM evaluation_results WHERE number = 0)
        """,
    ],
)
def test_an_evaluation_that_was_tampered_with_is_refused(tmp_path, statement):
    run = captured(tmp_path, RECORDS)
    evaluate_saved(run, spec())
    change(run, statement)

    with pytest.raises(CorruptRunError):
        evaluation_summary(run)


def test_a_recorded_answer_that_changed_with_its_dataset_digest_is_still_noticed(tmp_path):
    run = captured(tmp_path, RECORDS)
    change(run, "UPDATE inputs SET position = 3 WHERE ordinal = 1")

    with pytest.raises(CorruptRunError):
        status(run)


def test_a_run_of_version_1_is_read_but_not_written(tmp_path):
    run = captured(tmp_path, RECORDS)
    change(run, "PRAGMA user_version = 1")

    assert status(run)["status"] == "captured"
    with pytest.raises(RunError, match="version 1: it can be read, not written"):
        evaluate_saved(run, spec())


def test_a_run_of_an_unknown_version_is_refused(tmp_path):
    run = captured(tmp_path, RECORDS)
    change(run, "PRAGMA user_version = 3")

    with pytest.raises(RunError, match="version 3, which this program does not know"):
        status(run)


def test_evaluation_tables_of_an_unknown_version_are_refused(tmp_path):
    run = captured(tmp_path, RECORDS)
    evaluate_saved(run, spec())
    change(run, "UPDATE evaluation_schema SET version = 2")

    with pytest.raises(RunError, match="evaluation tables of version 2"):
        evaluation_summary(run)


@pytest.mark.parametrize("content", [b"", b"no database at all" * 1000])
def test_a_file_that_is_no_database_is_refused(tmp_path, content):
    (tmp_path / "run.sqlite3").write_bytes(content)

    with pytest.raises(RunError):
        status(tmp_path)


def test_a_folder_without_a_database_is_no_run(tmp_path):
    with pytest.raises(RunError, match="not a run directory"):
        evaluate_saved(tmp_path, spec())


def test_a_second_process_is_refused_at_once(tmp_path):
    run = captured(tmp_path, RECORDS)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(rundir.__file__).parents[1],
    )
    try:
        assert holder.stdout.readline() == b"held\n"

        for work in (lambda: evaluate_saved(run, spec()), lambda: resume(run)):
            with pytest.raises(LockedRunError, match="another process"):
                work()
        assert status(run)["status"] == "captured"
    finally:
        holder.communicate()

    assert evaluate_saved(run, spec())


def tear(run):
    """Kill a process in the middle of a transaction that has reached the file."""
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(run / "run.sqlite3", isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE dataset SET content = 'torn' || zeroblob(100000)")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (run / "run.sqlite3-journal").exists()


@pytest.mark.parametrize(
    "go_on",
    [status, resume, lambda run: evaluate_saved(run, spec()), captured_from],
    ids=["status", "resume", "evaluate", "path"],
)
def test_a_transaction_torn_by_a_kill_is_undone_by_whoever_comes_next(tmp_path, go_on):
    run = captured(tmp_path, RECORDS)
    tear(run)

    go_on(run)

    assert not (run / "run.sqlite3-journal").exists()
    assert status(run)["status"] == "captured"


def test_a_torn_transaction_is_not_touched_while_another_process_holds_the_run(tmp_path):
    run = captured(tmp_path, RECORDS)
    tear(run)

    with rundir.locked(run), pytest.raises(LockedRunError):
        status(run)

    assert status(run)["status"] == "captured"


def test_reading_creates_nothing(tmp_path):
    run = captured(tmp_path, RECORDS)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}

    status(run)
    with pytest.raises(RunError, match="no evaluation"):
        evaluation_summary(run)

    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
