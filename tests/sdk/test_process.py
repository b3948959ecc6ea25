"""What happens at the edges of a process: import, fork, exit."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import mesedi
import pytest

from tests.sdk.conftest import KEY, configure
from tests.sdk.ingest import free_port

SDK = Path(mesedi.__file__).parents[1]


def run(script, base_url="", **variables):
    """Run a script in an interpreter of its own, with only the SDK on its path."""
    environment = {
        "PYTHONPATH": str(SDK),
        "PATH": os.environ["PATH"],
        "MESEDI_API_KEY": KEY,
        "MESEDI_BASE_URL": base_url,
        "PYTHONWARNINGS": "error",
        **variables,
    }
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done, time.monotonic() - began


THOUSAND = """
    import mesedi, sys
    with mesedi.execution():
        for n in range(1000):
            mesedi.emit_eval_score("judge", f"m{n}", 0.5)
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit(3)", 3), ("raise ValueError('mine')", 1)],
)
def test_the_events_of_the_last_moment_arrive_and_the_exit_code_stays(server, ending, code):
    done, _ = run(textwrap.dedent(THOUSAND) + ending, server.url)

    assert done.returncode == code
    assert len(server.scores) == 1000
    assert [run["PATCH"]["status"] for run in server.executions.values()] == ["completed"]


def left(base_url, **variables):
    """Emit a thousand scores and end; answers the process and how long its exit took."""
    # The clock is the machine's: what starting the interpreter took stays out of it.
    script = textwrap.dedent(THOUSAND) + "import time; print(time.monotonic())"
    done, _ = run(script, base_url, **variables)
    return done, time.monotonic() - float(done.stdout)


def test_an_exit_without_a_server_is_quick_and_says_what_is_lost():
    done, took = left(f"http://127.0.0.1:{free_port()}")

    assert done.returncode == 0
    assert took < 2
    assert "1000 events could not be delivered before the exit" in done.stderr
    assert KEY not in done.stderr


@pytest.mark.parametrize(
    ("with_spool", "told"),
    [
        (False, "1000 events could not be delivered before the exit"),
        (True, "1000 events wait in the spool folder"),
    ],
)
def test_an_exit_into_a_black_hole_takes_no_more_than_two_seconds(tmp_path, with_spool, told):
    variables = {"MESEDI_SPOOL": str(tmp_path)} if with_spool else {}
    with socket.create_server(("127.0.0.1", 0)) as hole:
        # Connections are made by the kernel; nobody ever reads or answers.
        done, took = left(f"http://127.0.0.1:{hole.getsockname()[1]}", **variables)

    assert done.returncode == 0
    assert took < 2.1  # of which 0.1 for this process to notice
    assert told in done.stderr


def test_the_first_event_at_exit_is_delivered_too(server):
    done, _ = run(
        """
        import atexit
        import mesedi
        atexit.register(mesedi.emit_eval_score, "judge", "last words", 0.5)
        """,
        server.url,
    )

    assert done.returncode == 0
    assert [score["metric_type"] for score in server.scores] == ["last words"]


def ended_by(signal_number, script, url):
    """Run a script that prints when it is ready, and send it a signal then."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"PYTHONPATH": str(SDK), "MESEDI_API_KEY": KEY, "MESEDI_BASE_URL": url},
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        process.send_signal(signal_number)
        return process.wait(10)


WAITING = """
    import signal, sys, threading
    import mesedi
    {handler}
    mesedi.configure(flush_interval_ms=60_000)
    mesedi.emit_eval_score("judge", "flushed", 0.5, execution_id="exec-known")
    {before}
    mesedi.emit_eval_score("judge", "last", 0.5, execution_id="exec-known")
    print("ready", flush=True)
    threading.Event().wait(60)
"""


def test_a_signal_with_a_handler_that_exits_loses_nothing(server):
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"

    code = ended_by(signal.SIGTERM, WAITING.format(handler=handler, before=""), server.url)

    assert code == 7
    assert [score["metric_type"] for score in server.scores] == ["flushed", "last"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_without_a_handler_ends_at_once_and_keeps_what_was_flushed(server, number):
    script = WAITING.format(handler="", before="assert mesedi.flush(5) == 0")

    code = ended_by(number, script, server.url)

    assert code == -number
    assert [score["metric_type"] for score in server.scores] == ["flushed"]


def test_a_hard_exit_keeps_what_was_flushed(server):
    done, _ = run(
        """
        import os
        import mesedi
        mesedi.emit_eval_score("judge", "flushed", 0.5)
        assert mesedi.flush(5) == 0
        mesedi.emit_eval_score("judge", "last", 0.5)
        os._exit(3)
        """,
        server.url,
    )

    assert done.returncode == 3
    assert [score["metric_type"] for score in server.scores] == ["flushed"]


def test_events_of_objects_that_die_with_the_interpreter_do_no_harm(server):
    done, _ = run(
        """
        import mesedi

        class Dying:
            def __init__(self):
                self.emit = mesedi.emit_eval_score
            def __del__(self):
                self.emit("judge", "from the grave", 0.5)

        mesedi.emit_eval_score("judge", "alive", 0.5)
        dying = Dying()
        """,
        server.url,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert [score["metric_type"] for score in server.scores] == ["alive"]


def test_importing_loads_no_third_party_and_starts_nothing():
    done, _ = run(
        """
        import sys, threading
        before = set(sys.modules)
        import mesedi
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(loaded - set(sys.stdlib_module_names)), threading.active_count())
        """
    )

    assert done.stderr == ""
    assert done.stdout == "['mesedi'] 1\n"


def test_a_forked_child_sends_its_own_events_and_only_those(server):
    done, _ = run(
        """
        import os
        import mesedi

        mesedi.configure(flush_interval_ms=60_000)
        with mesedi.execution("exec-parent"):
            mesedi.emit_eval_score("judge", "parent before", 0.5)
            child = os.fork()
            if child == 0:
                mesedi.emit_eval_score("judge", "child", 0.5)
                left = mesedi.flush(5)
                os._exit(left + mesedi.stats().sent)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            mesedi.emit_eval_score("judge", "parent after", 0.5)
        print(code)
        """,
        server.url,
    )

    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    metrics = [score["metric_type"] for score in server.scores]
    assert metrics == ["child", "parent before", "parent after"]
    assert not server.duplicates
    assert server.executions["exec-parent"]["calls"] == ["POST", "PATCH"]


def test_a_fork_in_the_middle_of_a_request_disturbs_neither(server):
    done, _ = run(
        """
        import os
        import mesedi

        children = []
        for round in range(10):
            for n in range(50):
                mesedi.emit_eval_score("judge", "parent", 0.5, execution_id="exec-known")
            child = os.fork()
            if child == 0:
                for n in range(20):
                    mesedi.emit_eval_score("judge", "child", 0.5, execution_id="exec-known")
                os._exit(mesedi.flush(10))
            children.append(child)
        print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
        print(mesedi.flush(10))
        """,
        server.url,
    )

    assert done.stdout == f"{[0] * 10}\n0\n", done.stderr
    metrics = [score["metric_type"] for score in server.scores]
    assert (metrics.count("parent"), metrics.count("child")) == (500, 200)


def test_a_pool_of_processes_delivers_from_every_worker(server):
    done, _ = run(
        """
        import multiprocessing
        import mesedi

        def work(n):
            with mesedi.execution():
                mesedi.emit_eval_score("judge", f"m{n}", 0.5)
            return mesedi.flush(5)

        if __name__ == "__main__":
            mesedi.emit_eval_score("judge", "parent", 0.5)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(sum(pool.map(work, range(20))))
        """,
        server.url,
    )

    assert done.stdout == "0\n", done.stderr
    assert len({score["metric_type"] for score in server.scores}) == 21


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_multiprocessing_delivers_its_last_events_without_a_flush(
    server, tmp_path, method
):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing
            import mesedi

            def work():
                mesedi.configure(flush_interval_ms=60_000)
                mesedi.emit_eval_score("judge", "child", 0.5)

            if __name__ == "__main__":
                mesedi.emit_eval_score("judge", "parent", 0.5)
                child = multiprocessing.get_context({method!r}).Process(target=work)
                child.start()
                child.join()
            """
        )
    )

    done, _ = run(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", server.url)

    assert done.returncode == 0, done.stderr
    assert sorted(score["metric_type"] for score in server.scores) == ["child", "parent"]
    assert not server.duplicates


def test_a_server_with_another_path_is_reached(server):
    server_path = []
    server.rule = lambda request: server_path.append(request.path)
    configure(server.url + "/behind/a/proxy/")

    mesedi.emit_event("custom", execution_id="exec-known")
    mesedi.flush(0.5)

    assert server_path[0] == "/behind/a/proxy/events"


def test_the_public_names_are_these():
    """A promise to everybody who imports them: taking one away is a breaking change."""
    assert set(mesedi.__all__) == {
        "Budget",
        "Client",
        "ConfigurationError",
        "Counts",
        "Execution",
        "HumanInterventionHandle",
        "MesediError",
        "MesediHalt",
        "Stats",
        "__version__",
        "carry",
        "checkpoint",
        "configure",
        "current_execution",
        "emit_eval_score",
        "emit_event",
        "emit_hhem",
        "emit_promptfoo",
        "emit_ragas",
        "execution",
        "flush",
        "pause_for_human",
        "record_answer",
        "request_human_intervention",
        "resume_for_agent",
        "stats",
        "validator_result",
        "wrap",
    }
    assert all(hasattr(mesedi, name) for name in mesedi.__all__)
