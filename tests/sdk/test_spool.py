"""The spool folder: what could not be sent waits there for the next process."""

import json
import os
import stat
import subprocess
import sys
import textwrap

import mesedi
import pytest
from mesedi._spool import Leftovers, Spool

from tests.sdk.conftest import KEY, configure
from tests.sdk.ingest import Ingest, Reply, eventually, free_port
from tests.sdk.test_process import SDK, run


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "spool"


def emit_run(count, execution_id="exec-run"):
    with mesedi.execution(execution_id):
        for place in range(count):
            mesedi.emit_eval_score("judge", f"m{place}", 0.5)


def leave(folder, count, url=None, **settings):
    """Emit into nowhere and end, as a process does whose server is away."""
    url = url or f"http://127.0.0.1:{free_port()}"
    client = configure(url, spool=folder, **settings)
    emit_run(count)
    assert client.close(timeout=0.2) == 0
    return url


def files(folder):
    return sorted(folder.iterdir())


def test_what_could_not_be_sent_is_sent_by_the_next_start(folder):
    url = leave(folder, 300)
    assert mesedi.stats().spooled == 300
    assert mesedi.stats().lost == 0
    assert len(files(folder)) == 1

    server = Ingest(int(url.rpartition(":")[2]))
    try:
        configure(url, spool=folder)
        server.wait_for(lambda: "PATCH" in server.executions.get("exec-run", {}))
        eventually(lambda: not files(folder))
    finally:
        server.stop()

    assert [score["metric_type"] for score in server.scores] == [f"m{n}" for n in range(300)]
    assert server.executions["exec-run"]["calls"] == ["POST", "PATCH"]
    assert not server.duplicates


def test_a_score_outside_any_execution_is_saved_with_its_own(folder, server):
    client = configure(server.url, spool=folder)
    server.rule = lambda _request: Reply(503)
    mesedi.emit_eval_score("judge", "alone", 0.5)
    assert client.close(timeout=0.2) == 0

    server.rule = lambda _request: None
    configure(server.url, spool=folder)

    server.wait_for(lambda: server.scores)
    eventually(lambda: not files(folder))
    ((name, calls),) = server.executions.items()
    assert calls["calls"] == ["POST", "PATCH"]
    assert server.events[0]["execution_id"] == name


def test_the_file_is_private_and_holds_no_key(folder):
    leave(folder, 3)

    (file,) = files(folder)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert KEY not in file.read_text("utf-8")
    assert KEY not in file.name


def test_what_is_saved_has_gone_through_the_hook_and_once(folder, server):
    def redact(event):
        event["payload"]["reason"] += "!"
        return event

    client = configure(server.url, spool=folder, before_send=redact)
    server.rule = lambda _request: Reply(503)
    mesedi.emit_eval_score("judge", "tone", 0.5, reason="x", execution_id="exec-known")
    client.close(timeout=0.2)
    server.rule = lambda _request: None
    configure(server.url, spool=folder, before_send=redact)

    server.wait_for(lambda: server.scores)
    assert server.scores[0]["reason"] == "x!"


def test_another_key_or_another_server_does_not_get_it(folder, server):
    leave(folder, 3)

    configure(server.url, spool=folder)
    emit_run(1, "exec-mine")
    assert mesedi.flush(5) == 0

    assert list(server.executions) == ["exec-mine"]
    assert len(files(folder)) == 1


def test_the_folder_does_not_grow_beyond_its_bound_and_the_rest_is_counted(folder):
    client = configure(f"http://127.0.0.1:{free_port()}", spool=folder, max_spool_bytes=10_000)
    emit_run(200)

    lost = client.close(timeout=0.2)

    assert 0 < lost < 200
    assert sum(file.stat().st_size for file in files(folder)) <= 10_000
    stats = mesedi.stats()
    assert stats.spooled == 200 - lost
    assert stats.dropped == {"exit": lost}


def test_a_folder_that_cannot_be_used_is_said_at_once(tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")

    with pytest.raises(mesedi.ConfigurationError, match="spool"):
        configure("http://127.0.0.1:1", spool=file / "spool")


def test_a_folder_that_breaks_later_loses_the_events_but_never_raises(folder, caplog):
    client = configure(f"http://127.0.0.1:{free_port()}", spool=folder)
    emit_run(5)
    folder.rmdir()

    assert client.close(timeout=0.2) == 5
    assert "spool folder cannot be written to" in caplog.text


def test_a_torn_file_gives_what_can_be_read(folder):
    url = leave(folder, 20)
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])

    server = Ingest(int(url.rpartition(":")[2]))
    try:
        configure(url, spool=folder)
        eventually(lambda: not files(folder))
    finally:
        server.stop()

    assert 5 < len(server.scores) < 20


def test_new_events_do_not_wait_for_old_ones_and_keep_their_room(folder, server):
    client = configure(server.url, spool=folder)
    server.rule = lambda _request: Reply(503)
    emit_run(500, "exec-old")
    client.close(timeout=0.2)

    def sick(request):
        return Reply(503) if "exec-old" in str(request.body) else None

    server.rule = sick
    configure(server.url, spool=folder, max_queue=50)
    emit_run(40, "exec-new")

    server.wait_for(lambda: "PATCH" in server.executions.get("exec-new", {}))
    assert mesedi.stats().dropped == {}


def test_a_file_that_one_process_sends_is_left_alone_by_the_others(folder):
    leave(folder, 10)
    url = f"http://127.0.0.1:{free_port()}"
    spool = Spool(folder, url, KEY, 10**6)
    files(folder)[0].rename(folder / f"{spool._destination}-1-1-a.jsonl")

    first, second = Leftovers(spool), Leftovers(spool)
    taken = first.take(100)

    assert len(taken) == 12
    assert second.take(100) == []
    assert not second.remain
    first.settled(12)
    assert first.take(100) == []
    assert not files(folder)


SENDER = """
    import mesedi
    mesedi.configure(flush_interval_ms=10)
    for n in range(3):
        mesedi.emit_eval_score("judge", "alive", 0.5, execution_id="exec-alive")
"""


def test_several_processes_on_one_folder_send_everything_once(folder):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {"MESEDI_SPOOL": str(folder)}
    for place in range(4):
        script = f"""
            import mesedi
            with mesedi.execution("exec-{place}"):
                for n in range(500):
                    mesedi.emit_eval_score("judge", f"m{{n}}", 0.5)
        """
        done, _ = run(script, url, **environment)
        assert done.returncode == 0
        assert "500 events wait in the spool folder" in done.stderr
    assert len(files(folder)) == 4

    server = Ingest(port)
    try:
        senders = [start(SENDER, url, folder) for _ in range(3)]
        assert [sender.wait(20) for sender in senders] == [0, 0, 0]
        if files(folder):  # three quick processes need not have had the time for all
            assert start(SENDER, url, folder).wait(20) == 0
    finally:
        server.stop()

    assert not files(folder)
    old = [event for event in server.events if event["execution_id"] != "exec-alive"]
    assert len(old) == 2000
    assert not server.duplicates


def start(script, url, folder):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SDK),
        "MESEDI_API_KEY": KEY,
        "MESEDI_BASE_URL": url,
        "MESEDI_SPOOL": str(folder),
    }
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], env=environment)


def test_a_process_killed_while_it_sends_leaves_its_file_to_the_next(folder):
    url = leave(folder, 50)
    server = Ingest(int(url.rpartition(":")[2]))
    try:
        server.rule = lambda _request: Reply(503)
        victim = start("import mesedi, time\nmesedi.configure()\ntime.sleep(60)", url, folder)
        server.wait_for(lambda: server.requests)
        victim.kill()
        victim.wait()
        server.rule = lambda _request: None

        configure(url, spool=folder)
        server.wait_for(lambda: "PATCH" in server.executions.get("exec-run", {}))
        eventually(lambda: not files(folder))
    finally:
        server.stop()

    assert len(server.scores) == 50


def test_lines_say_where_each_goes(folder):
    leave(folder, 1)

    (file,) = files(folder)
    lines = [line.split("\t") for line in file.read_text("utf-8").splitlines()]
    assert [json.loads(where) for where, _ in lines] == [
        ["POST", "/executions", "exec-run"],
        ["POST", "/events", "exec-run"],
        ["PATCH", "/executions/exec-run", "exec-run"],
    ]
    assert json.loads(lines[1][1])["payload"]["metric_type"] == "m0"
