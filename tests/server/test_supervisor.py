"""The supervisor and the tether, with real processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mesedi_server import tether

PATIENCE_S = 20.0

# Says that it runs, and what told it to end.
OBEDIENT = r"""
import os, signal

# Blocked and waited for: a handler may run just before the pause, which then lasts for ever.
ENDS = {{signal.SIGINT, signal.SIGTERM}}
signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
# In one piece: others write to the same pipe.
os.write(1, f"{name} runs {{os.getpid()}}\n".encode())
number = signal.sigwait(ENDS)
os.write(1, f"{name} was told {{signal.Signals(number).name}}\n".encode())
"""
STUBBORN = r"""
import os, signal, subprocess, sys

signal.signal(signal.SIGTERM, signal.SIG_IGN)
helper = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
os.write(1, f"stubborn runs {os.getpid()} {helper.pid}\n".encode())
while True:
    signal.pause()
"""
MORTAL = "import os; os._exit(3)"


class Running:
    """A supervisor in a process of its own, as a shell starts it: in a group of its own."""

    def __init__(self, programs: dict[str, str], options: str = "", ignored: int = 0) -> None:
        script = f"""
            import signal, sys
            from mesedi_server.supervisor import Patience, Program, Supervisor

            if {ignored}:
                signal.signal({ignored}, signal.SIG_IGN)
            programs = {programs!r}
            supervisor = Supervisor(
                [Program(name, [sys.executable, "-c", code]) for name, code in programs.items()],
                {options}
            )
            sys.exit(supervisor.run())
        """
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        self.lines: list[str] = []

    def wait_for(self, text: str) -> list[str]:
        """Read on to the line that has the text; returns its words. A watchdog bounds this."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if text in line:
                return line.split()
        raise AssertionError(f"no {text!r} in {self.lines}")

    def end(self) -> int:
        """Return the exit code once everything is said."""
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        self.lines += output.splitlines()
        return self.process.returncode


@pytest.fixture
def supervise() -> Iterator[Callable[..., Running]]:
    started = []

    def start(*words: object, **options: object) -> Running:
        started.append(Running(*words, **options))
        return started[-1]

    watchdog = signal.signal(
        signal.SIGALRM, lambda *_: pytest.fail(f"nothing happens: {[r.lines for r in started]}")
    )
    signal.alarm(int(PATIENCE_S))
    yield start
    signal.alarm(0)
    signal.signal(signal.SIGALRM, watchdog)
    for running in started:
        running.process.kill()
        running.process.communicate()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A process that nobody waited for yet has ended all the same.
    return state != "Z"


def ends(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_ends_all_programs_in_order(supervise, number):
    running = supervise({name: OBEDIENT.format(name=name) for name in ("web", "worker")})
    running.wait_for("runs")
    running.wait_for("runs")

    running.process.send_signal(number)

    assert running.end() == 0
    assert sorted(running.lines[2:]) == ["web was told SIGTERM", "worker was told SIGTERM"]


def test_a_signal_that_was_ignored_before_stays_so(supervise):
    programs = {"web": OBEDIENT.format(name="web")}
    running = supervise(programs, ignored=int(signal.SIGHUP))
    running.wait_for("web runs")

    running.process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        running.process.wait(0.2)
    running.process.terminate()

    assert running.end() == 0


def test_ctrl_c_in_a_terminal_reaches_the_supervisor_alone(supervise):
    running = supervise({"web": OBEDIENT.format(name="web")})
    running.wait_for("web runs")

    os.killpg(running.process.pid, signal.SIGINT)

    assert running.end() == 0
    assert running.lines[1:] == ["web was told SIGTERM"]


def test_a_program_that_ends_is_started_again(supervise):
    running = supervise({"web": OBEDIENT.format(name="web")}, "patience=Patience(first_delay_s=0)")
    first = int(running.wait_for("web runs")[-1])

    os.kill(first, signal.SIGKILL)
    running.wait_for("web was ended by signal 9; starting it again in 0 s.")
    second = int(running.wait_for("web runs")[-1])

    assert second != first


def test_what_a_killed_program_started_ends_with_it(supervise):
    running = supervise({"stubborn": STUBBORN})
    *_, stubborn, helper = running.wait_for("stubborn runs")

    os.kill(int(stubborn), signal.SIGKILL)

    running.wait_for("starting it again")
    assert ends(int(helper))


def test_a_program_that_never_runs_well_stops_everything(supervise):
    programs = {"mortal": MORTAL, "web": OBEDIENT.format(name="web")}
    running = supervise(programs, "patience=Patience(first_delay_s=0.01, attempts=3)")

    code = running.end()

    said = [line for line in running.lines if line.startswith("mortal ended")]
    assert code == 1
    assert said == [
        "mortal ended with code 3; starting it again in 0.01 s.",
        "mortal ended with code 3; starting it again in 0.02 s.",
        "mortal ended with code 3, 3 times in a row; giving up.",
    ]
    assert running.lines[-1] == "web was told SIGTERM"


def test_a_program_that_ran_well_before_is_given_all_attempts_again(supervise):
    running = supervise(
        {"mortal": MORTAL},
        "patience=Patience(first_delay_s=0, steady_s=0, attempts=2)",
    )

    for _ in range(4):
        running.wait_for("starting it again in 0 s.")

    assert running.process.poll() is None


def test_an_objection_stops_everything(supervise):
    programs = {"web": OBEDIENT.format(name="web")}
    running = supervise(programs, "check=lambda: 'the database is gone'")

    code = running.end()

    assert code == 1
    assert "the database is gone" in running.lines


def test_a_program_that_does_not_stop_is_killed_with_what_it_started(supervise):
    running = supervise({"stubborn": STUBBORN}, "patience=Patience(stop_s=0.2)")
    *_, stubborn, helper = running.wait_for("stubborn runs")

    running.process.terminate()

    assert running.end() == 0
    assert running.lines[-1] == "stubborn did not stop in time and is killed."
    assert ends(int(stubborn))
    assert ends(int(helper))


def test_a_second_ctrl_c_kills_at_once(supervise):
    programs = {"stubborn": STUBBORN, "web": OBEDIENT.format(name="web")}
    running = supervise(programs, "patience=Patience(stop_s=600)")
    running.wait_for("runs")
    running.wait_for("runs")

    running.process.send_signal(signal.SIGINT)
    running.wait_for("web was told SIGTERM")
    running.process.send_signal(signal.SIGINT)

    assert running.end() == 0


def test_programs_end_when_the_supervisor_is_killed(supervise):
    running = supervise({"web": OBEDIENT.format(name="web")})
    web = int(running.wait_for("web runs")[-1])

    running.process.kill()

    running.wait_for("web was told SIGTERM")
    assert ends(web)


def test_a_program_that_does_not_stop_is_killed_after_the_supervisor_was(supervise):
    running = supervise({"stubborn": STUBBORN}, "patience=Patience(stop_s=0.2)")
    *_, stubborn, helper = running.wait_for("stubborn runs")

    running.process.kill()

    assert ends(int(stubborn))
    assert ends(int(helper))


START = "tether.start(argv, farewell=farewell)"
START_GUARDED = "tether.start(argv, farewell=farewell, guarded=True)"
GUARD_UNTOLD = """
if os.fork() == 0:
    # As where the kernel says nothing about the parent's death.
    sys.platform = "elsewhere"
    tether.Guard(os.getppid(), farewell, 10.0).run("", argv)
"""


@pytest.mark.parametrize("farewell", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("start", [START, START_GUARDED, GUARD_UNTOLD])
def test_a_tethered_program_hears_of_its_parents_death(tmp_path, start, farewell):
    output = tmp_path / "output"
    setting = f"""
        import os, signal, sys
        from mesedi_server import tether

        farewell = signal.Signals({int(farewell)})
        argv = [sys.executable, "-c", {OBEDIENT.format(name="it")!r}]
    """
    script = f"{textwrap.dedent(setting)}\n{start}\nsignal.pause()"
    with (
        output.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", script], stdout=file) as parent,
    ):
        try:
            wait_for_text(output, "it runs")
        finally:
            parent.kill()

    wait_for_text(output, f"it was told {farewell.name}")
    assert ends(int(output.read_text().split()[2]))


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize(("ending", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)])
def test_a_tethered_program_ends_as_it_would_alone(guarded, ending, code):
    argv = [sys.executable, "-c", f"import os, sys; {ending}"]

    process = tether.start(argv, guarded=guarded)

    assert process.wait(PATIENCE_S) == code


@pytest.mark.parametrize("guarded", [True, False])
def test_a_tethered_program_that_does_not_exist_says_so(tmp_path, guarded):
    output = tmp_path / "output"

    with output.open("wb") as file:
        process = tether.start(["/no/such/program"], output=file, guarded=guarded)

    assert process.wait(PATIENCE_S) == 1
    assert output.read_text() == "/no/such/program cannot be started: No such file or directory\n"


def wait_for_text(file: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while text not in file.read_text():
        assert time.monotonic() < deadline, file.read_text()
        time.sleep(0.01)
