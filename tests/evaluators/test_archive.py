import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from evaluators import archive, cli, evaluate_saved, evaluation_summary, rundir
from evaluators.capture import status
from evaluators.errors import CorruptRunError, EvaluatorsError, RunError
from evaluators.ledger import Budget
from evaluators.resuming import resume
from evaluators.settling import raise_budget, settle
from tests.evaluators.judge import FAITHFUL, Judge
from tests.evaluators.records import captured, pairs, spec, user
from tests.evaluators.test_comparison import MET, VIOLATED, compared, evaluated
from tests.evaluators.test_review import annotation, exported, imported, reviewed

ROOT = Path(cli.__file__).parents[1]


@pytest.fixture
def run(tmp_path):
    return evaluated(tmp_path, {"a": MET, "b": VIOLATED})


@pytest.fixture
def packed(tmp_path, run):
    archive.export(run, tmp_path / "run.zip")
    return tmp_path / "run.zip"


def members(path):
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def pack(path, contents, **options):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **options) as opened:
        for name, content in contents.items():
            opened.writestr(name, content)
    return path


def described(database, run_id, **changes):
    return json.dumps(
        {
            "schema_version": 1,
            "run_id": run_id,
            "database": "run.sqlite3",
            "sha256": sha256(database).hexdigest(),
            "size": len(database),
            "import_mode": "read_only",
            **changes,
        }
    )


def changed(tmp_path, packed, *statements):
    """An archive whose database was changed and whose description was made to fit."""
    contents = members(packed)
    database = tmp_path / "changed.sqlite3"
    database.write_bytes(contents["run.sqlite3"])
    connection = sqlite3.connect(database)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    run_id = json.loads(contents["archive.json"])["run_id"]
    content = database.read_bytes()
    return pack(
        tmp_path / "changed.zip",
        {"archive.json": described(content, run_id), "run.sqlite3": content},
    )


def test_an_archive_is_two_members_that_fit_together(packed, run):
    contents = members(packed)

    assert set(contents) == {"archive.json", "run.sqlite3"}
    assert json.loads(contents["archive.json"]) == json.loads(
        described(contents["run.sqlite3"], status(run)["run_id"])
    )


def test_an_imported_run_says_what_the_exported_one_says(tmp_path, run, packed):
    reviewed(run, tmp_path, {"a": "met"})
    archive.export(run, packed, force=True)

    archive.import_archive(packed, tmp_path / "kept")

    kept = tmp_path / "kept"
    assert evaluation_summary(kept, details=True) == evaluation_summary(run, details=True)
    assert status(kept) == status(run)
    assert compared(run, kept)["paired"] == 2
    assert exported(kept, tmp_path) == exported(run, tmp_path)
    assert {path.name for path in kept.iterdir()} == {
        "archive.json",
        "manifest.json",
        "run.json",
        "run.sqlite3",
    }
    assert (kept / "run.sqlite3").stat().st_mode & 0o777 == 0o400


def test_equal_runs_make_equal_archives(tmp_path, run, packed):
    archive.export(run, tmp_path / "again.zip")

    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_an_imported_run_can_be_archived_again(tmp_path, packed):
    archive.import_archive(packed, tmp_path / "kept")

    archive.export(tmp_path / "kept", tmp_path / "again.zip")

    assert archive.verify(tmp_path / "again.zip").run_id == archive.verify(packed).run_id


def write_review(run, tmp_path):
    (task, *_) = exported(run, tmp_path)
    imported(run, tmp_path, {**task, "annotation": annotation("r9")})


WRITES = {
    "evaluate": lambda run, _: evaluate_saved(run, spec(revision="r2"), new_evaluation=True),
    "budget": lambda run, _: evaluate_saved(run, spec(), budget=Budget(3)),
    "review-import": write_review,
    "evaluate-again": lambda run, _: evaluate_saved(run, spec()),
    "resume": lambda run, _: resume(run),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_imported_run_is_never_written_to(tmp_path, packed, name):
    run = tmp_path / "kept"
    archive.import_archive(packed, run)
    before = (run / "run.sqlite3").read_bytes()

    with pytest.raises(RunError, match="read-only archive"):
        WRITES[name](run, tmp_path)

    assert (run / "run.sqlite3").read_bytes() == before
    assert not (run / rundir.LOCK).exists()


@pytest.mark.parametrize("name", ["evaluate", "budget", "review-import"])
def test_a_database_taken_out_of_its_archive_stays_read_only(tmp_path, packed, name):
    run = tmp_path / "bare"
    run.mkdir()
    (run / "run.sqlite3").write_bytes(members(packed)["run.sqlite3"])

    with pytest.raises(RunError, match="read-only archive"):
        WRITES[name](run, tmp_path)

    assert (run / "run.sqlite3").read_bytes() == members(packed)["run.sqlite3"]


def test_an_import_replaces_nothing(tmp_path, packed):
    (tmp_path / "kept").mkdir()

    with pytest.raises(RunError, match="exists"):
        archive.import_archive(packed, tmp_path / "kept")


def test_an_export_replaces_nothing_unless_forced(tmp_path, run):
    (tmp_path / "mine").write_text("mine")

    with pytest.raises(RunError, match="--force"):
        archive.export(run, tmp_path / "mine")

    assert (tmp_path / "mine").read_text() == "mine"
    archive.export(run, tmp_path / "mine", force=True)
    assert archive.verify(tmp_path / "mine").size


def test_a_tampered_run_is_not_archived(tmp_path, run):
    connection = sqlite3.connect(run / "run.sqlite3")
    connection.execute("UPDATE dataset SET content = replace(content, '5 mg', '6 mg')")
    connection.commit()
    connection.close()

    with pytest.raises(CorruptRunError):
        archive.export(run, tmp_path / "run.zip")

    assert not (tmp_path / "run.zip").exists()
    assert not list(tmp_path.glob(".archive-*"))


def test_a_run_that_was_never_evaluated_is_archived(tmp_path):
    run = captured(tmp_path, [user()])

    archive.export(run, tmp_path / "run.zip")

    assert archive.verify(tmp_path / "run.zip").run_id == status(run)["run_id"]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE VIEW notes AS SELECT 1", "has a view, 'notes'"),
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END", "has a trigger, 't'"),
        ("CREATE VIRTUAL TABLE v USING fts5(x)", "has a virtual table, 'v'"),
        ("UPDATE dataset SET content = replace(content, '5 mg', '6 mg')", "the dataset"),
        ("UPDATE evaluation_results SET content = replace(content, 'violated', 'met')", "result"),
        ("DELETE FROM evaluation_inputs WHERE number = 1", "refer to nothing"),
        ('UPDATE manifest SET content = replace(content, \'"id":"\', \'"id":"0\')', "manifest"),
        ("PRAGMA user_version = 3", "version 3"),
    ],
)
def test_an_archive_of_a_changed_database_is_refused(tmp_path, packed, statement, words):
    made = changed(tmp_path, packed, statement)

    with pytest.raises(RunError, match=words):
        archive.import_archive(made, tmp_path / "kept")

    assert not (tmp_path / "kept").exists()
    assert not list(tmp_path.glob(".archive-*"))


@pytest.mark.parametrize(
    "statement",
    ["UPDATE judge_calls SET reply = '{}'", "UPDATE judge_calls SET actual_cost_micros = 0"],
)
def test_an_archive_of_changed_judge_calls_is_refused(tmp_path, statement):
    run = captured(tmp_path, pairs(2))
    evaluate_saved(run, spec(FAITHFUL), judge=Judge(cost=7), budget=Budget(9))
    archive.export(run, tmp_path / "run.zip")
    assert archive.verify(tmp_path / "run.zip").size

    with pytest.raises(CorruptRunError, match="judge call"):
        archive.verify(changed(tmp_path, tmp_path / "run.zip", statement))


def test_the_ledger_of_an_imported_run_is_closed(tmp_path, packed):
    archive.import_archive(packed, tmp_path / "kept")

    with pytest.raises(RunError, match="read-only archive"):
        settle(tmp_path / "kept", "call", None, "It was lost.")
    with pytest.raises(RunError, match="read-only archive"):
        raise_budget(tmp_path / "kept", "More to do.", max_calls=99)


def test_an_archive_made_by_hand_becomes_read_only_too(tmp_path, packed):
    made = changed(tmp_path, packed, "PRAGMA application_id = 0")

    archive.import_archive(made, tmp_path / "kept")
    (tmp_path / "kept" / "archive.json").unlink()

    with pytest.raises(RunError, match="read-only archive"):
        evaluate_saved(tmp_path / "kept", spec(revision="r2"), new_evaluation=True)


def damaged(content):
    page = 4096
    return content[: 3 * page] + b"\xff" * page + content[4 * page :]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: {**c, "extra": b""}, "exactly"),
        (lambda c: {"archive.json": c["archive.json"]}, "exactly"),
        (lambda c: {"archive.json": c["archive.json"], "../run.sqlite3": b""}, "exactly"),
        (lambda c: {"archive.json": c["archive.json"], "/tmp/run.sqlite3": b""}, "exactly"),
        (lambda _: {"a/archive.json": b"", "a/run.sqlite3": b""}, "exactly"),
        (lambda c: {**c, "run.sqlite3": c["run.sqlite3"] + b"\0"}, "not the one"),
        (lambda c: {**c, "run.sqlite3": c["run.sqlite3"][:-1]}, "not the one"),
        (lambda c: {**c, "run.sqlite3": b""}, "not the one"),
        (lambda c: {**c, "archive.json": b"{"}, "is not JSON"),
        (lambda c: {**c, "archive.json": b"[]"}, "is not a JSON object"),
        (lambda c: {**c, "archive.json": b"{}"}, "other fields"),
        (lambda c: {**c, "archive.json": b" " * 70_000}, "more than 65536 bytes"),
        (lambda c: with_database(c, b"no database" * 1000), "damaged"),
        (lambda c: with_database(c, damaged(c["run.sqlite3"])), "damaged|malformed"),
        (lambda c: with_description(c, run_id="another"), "another run"),
        (lambda c: with_description(c, schema_version=2), "does not know"),
        (lambda c: with_description(c, schema_version=True), "no int"),
        (lambda c: with_description(c, database="../x"), "does not know"),
        (lambda c: with_description(c, import_mode="write"), "does not know"),
        (lambda c: with_description(c, sha256="0" * 64), "not the one"),
        (lambda c: with_description(c, size=-1), "size"),
        (lambda c: with_description(c, size=2**40), "size"),
        (lambda c: with_description(c, note="hi"), "other fields"),
    ],
)
def test_an_archive_that_is_not_whole_is_refused(tmp_path, packed, change, words):
    made = pack(tmp_path / "made.zip", change(members(packed)))

    with pytest.raises(CorruptRunError, match=words):
        archive.verify(made)


def with_database(contents, database):
    run_id = json.loads(contents["archive.json"])["run_id"]
    return {"archive.json": described(database, run_id), "run.sqlite3": database}


def with_description(contents, **changes):
    description = {**json.loads(contents["archive.json"]), **changes}
    return {**contents, "archive.json": json.dumps(description)}


def test_what_unpacks_to_more_than_it_says_is_not_unpacked(tmp_path, packed):
    contents = with_description(members(packed), size=len(members(packed)["run.sqlite3"]))
    made = pack(tmp_path / "bomb.zip", {**contents, "run.sqlite3": b"\0" * 50_000_000})
    script = (
        "import resource, sys; from evaluators import cli; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000)); "
        "sys.exit(cli.run_command(['archive-verify', sys.argv[1]]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, made], capture_output=True, text=True, check=False, cwd=ROOT
    )

    # Written in full, it would be stopped as too large a file.
    assert done.returncode == 1
    assert "run.sqlite3 is not the one" in done.stderr
    assert made.stat().st_size < 100_000


def test_a_database_of_more_than_512_mib_is_neither_packed_nor_unpacked(tmp_path, run, packed):
    contents = members(packed)
    made = pack(tmp_path / "large.zip", contents)
    content = bytearray(made.read_bytes())
    place = content.rindex(b"PK\x01\x02")  # the list's entry of the database
    content[place + 24 : place + 28] = (2**29 + 1).to_bytes(4, "little")
    made.write_bytes(content)
    os.truncate(run / "run.sqlite3", 2**29 + 1)

    with pytest.raises(CorruptRunError, match="more than 536870912 bytes"):
        archive.verify(made)
    with pytest.raises(RunError, match="larger than 536870912 bytes"):
        archive.export(run, tmp_path / "new.zip")


def test_a_zip_of_many_members_is_refused_before_it_is_listed(tmp_path):
    made = pack(tmp_path / "many.zip", {f"{n}": b"" for n in range(2000)})
    # Whoever reads the list meets this first.
    made.write_bytes(made.read_bytes().replace(b"PK\x01\x02", b"none"))

    with pytest.raises(CorruptRunError, match="exactly"):
        archive.verify(made)


def test_twice_the_same_member_is_refused(tmp_path, packed):
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as made:
        made.writestr("run.sqlite3", b"")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("run.sqlite3", b"")

    with pytest.raises(CorruptRunError, match="exactly"):
        archive.verify(tmp_path / "twice.zip")


@pytest.mark.parametrize("content", [b"", b"PK", b"\0" * 100, b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_zip_is_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)

    with pytest.raises(CorruptRunError):
        archive.verify(tmp_path / "file")


def test_any_changed_byte_is_noticed_or_means_nothing(tmp_path, run, packed):
    rng = random.Random(7)
    whole = packed.read_bytes()
    said = evaluation_summary(run, details=True)
    accepted = 0
    for number in range(300):
        content = bytearray(whole)
        edge = number % 2  # half of them in the zip's own records at the ends
        place = rng.randrange(len(whole)) if edge else -rng.randrange(1, 200)
        content[place] ^= 1 << rng.randrange(8)
        (tmp_path / "made.zip").write_bytes(content)
        try:
            archive.import_archive(tmp_path / "made.zip", tmp_path / "kept")
        except EvaluatorsError:
            assert not (tmp_path / "kept").exists()
            continue
        accepted += 1
        assert evaluation_summary(tmp_path / "kept", details=True) == said
        shutil.rmtree(tmp_path / "kept")
    assert accepted < 150


def test_the_commands_export_verify_and_import(tmp_path, run, command):
    packed, kept = tmp_path / "run.zip", tmp_path / "made" / "kept"

    exported_code, out, _ = command("archive-export", run, "--out", packed)
    verified = command("archive-verify", packed, "--json")
    found = command("archive-import", packed, "--out", kept, "--json")

    assert (exported_code, out) == (0, f"{packed}\n")
    assert (verified[0], found[0]) == (0, 0)
    assert json.loads(found[1]) == {"run_directory": str(kept), **json.loads(verified[1])}
    assert command("evaluation-status", kept)[0] == 0
    assert command("report", kept)[0] == 0
    assert command("status", kept)[0] == 0
    assert command("archive-import", packed, "--out", kept)[0] == 1
    refused, _, err = command("resume", kept)
    assert (refused, "read-only archive" in err) == (1, True)
    assert not (kept / rundir.LOCK).exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("archive-export", "no-such-run", "--out", "x"),
        ("archive-export", ".", "--out", "x"),
        ("archive-export", "RUN", "--out", "no-such-folder/x.zip"),
        ("archive-export", "RUN", "--out", "RUN/run.sqlite3", "--force"),
        ("archive-verify", "no-such-file"),
        ("archive-verify", "RUN/run.sqlite3"),
        ("archive-import", "RUN/run.sqlite3", "--out", "kept"),
    ],
)
def test_what_cannot_be_archived_exits_1(tmp_path, run, command, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)

    code, out, err = command(*(each.replace("RUN", str(run)) for each in arguments))

    assert (code, out) == (1, "")
    assert err
    assert not (tmp_path / "kept").exists()
