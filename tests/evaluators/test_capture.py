import json
import os
import stat

import pytest

from evaluators import rundir, transcripts
from evaluators.canonical import digest
from evaluators.capture import capture, status
from evaluators.errors import RunError
from evaluators.store.database import opened
from tests.evaluators.records import assistant, captured, pairs, user, write


def test_a_run_directory_holds_its_database_and_readable_copies(tmp_path):
    run = captured(tmp_path, [user(), assistant()])

    assert run.parent == tmp_path / "runs"
    assert run.name.endswith("_data")
    assert {path.name for path in run.iterdir()} == {
        "run.sqlite3",
        "coordinator.lock",
        "manifest.json",
        "run.json",
        "transcripts",
    }
    assert stat.S_IMODE((run / "run.sqlite3").stat().st_mode) == 0o600
    assert json.loads((run / "run.json").read_text())["status"] == "captured"


def test_the_dataset_is_frozen_with_the_digest_of_its_records(tmp_path):
    records = [user(), assistant()]

    run = captured(tmp_path, records)
    (tmp_path / "data.jsonl").write_text("changed")

    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["dataset_digest"] == digest(records)
    assert status(run)["committed_records"] == 2


def test_status_counts_turns_and_answers(tmp_path):
    run = captured(tmp_path, [user(), assistant(), user("And?")])

    found = status(run)

    assert found["status"] == "captured"
    assert (found["planned_records"], found["committed_records"]) == (3, 3)
    assert (found["observations"], found["planned_generations"], found["attempts"]) == (1, 0, {})
    assert found["liveness"] == "not_checked"


def test_two_captures_of_one_moment_get_directories_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(rundir, "now", lambda: "2026-12-01T00:00:00.000000Z")

    first, second = captured(tmp_path, [user()]), captured(tmp_path, [user()])

    assert first.name == "2026-12-01T00-00-00.000000_data"
    assert second.name == "2026-12-01T00-00-00.000000_data-2"


def test_the_persona_is_frozen_byte_by_byte(tmp_path):
    persona = tmp_path / "persona.bin"
    persona.write_bytes(b"\x00\xffcalm")

    run = captured(tmp_path, [user()], persona=persona)

    with opened(run) as connection:
        assert connection.execute("SELECT content FROM source_artifacts").fetchall() == [
            (b"\x00\xffcalm",)
        ]


def test_the_transcript_of_recorded_answers_is_the_dataset_again(tmp_path):
    records = [user(extra={"b": 1, "a": [None]}), assistant()]

    run = captured(tmp_path, records)

    lines = (run / "transcripts" / "recorded.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == records


def test_an_export_replaces_no_file_unless_told(tmp_path):
    run = captured(tmp_path, [user(), assistant()])
    out = tmp_path / "out.jsonl"
    out.write_text("mine")

    with pytest.raises(RunError, match="--force"):
        transcripts.export(run, out)
    assert out.read_text() == "mine"

    assert transcripts.export(run, out, force=True) == 2
    assert len(out.read_text().splitlines()) == 2


def test_an_export_never_replaces_the_database(tmp_path):
    run = captured(tmp_path, [user()])
    link = tmp_path / "link.jsonl"
    link.symlink_to(run / "run.sqlite3")

    for path in (run / "run.sqlite3", link):
        with pytest.raises(RunError, match="database"):
            transcripts.export(run, path, force=True)


def test_a_stream_that_was_not_captured_cannot_be_exported(tmp_path):
    run = captured(tmp_path, [user()])

    with pytest.raises(RunError, match="no stream 'compare'"):
        transcripts.export(run, tmp_path / "out.jsonl", stream="compare")


def test_what_a_killed_capture_left_unfinished_is_removed_by_a_later_one(tmp_path):
    old, fresh = (tmp_path / "runs" / f".capture-{name}" for name in ("old", "fresh"))
    for left in (old, fresh):
        left.mkdir(parents=True)
        (left / "run.sqlite3").touch()
    os.utime(old, (0, 0))

    captured(tmp_path, [user()])

    assert not old.exists()
    assert fresh.exists()


def test_an_unfinished_capture_that_is_still_at_work_is_left_alone(tmp_path):
    with rundir.unfinished(tmp_path / "runs") as at_work:
        os.utime(at_work, (0, 0))

        captured(tmp_path, [user()])

        assert at_work.exists()


def test_progress_counts_every_byte_and_every_turn(tmp_path):
    dataset = write(tmp_path / "data.jsonl", pairs(3))
    told = {}

    def tell(doing, steps, total):
        told[doing] = (told.get(doing, (0,))[0] + steps, total)

    capture(dataset, tmp_path / "runs", progress=tell)

    size = dataset.stat().st_size
    assert told == {"Reading": (size, size), "Capturing": (6, 6)}
