"""The command `mesedi-eval`.

Exit codes: 0 pass, 2 violated, 3 inconclusive, 1 for everything that kept it from answering, the
option parser's own errors included.
"""

import gc
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import NoReturn

import click

from evaluators.errors import EvaluatorsError
from evaluators.version import PACKAGE_VERSION

EXIT_ERROR = 1
_GARBAGE_THRESHOLD = 50_000  # next to nothing here refers to itself; looking costs 5 % of a run

_HOMES = {
    "archiving": ("archive-export", "archive-import", "archive-verify"),
    "assessing": ("assess",),
    "capturing": ("capture", "export-transcripts", "resume", "status"),
    "comparing": ("check", "compare"),
    "evaluating": ("evaluate",),
    "reporting": ("evaluation-status", "report"),
    "reviewing": ("promote", "qualify", "review-export", "review-import"),
    "settling": ("budget", "settle"),
    "suites": ("init-suite", "run-suite"),
}
HOME = {name: module for module, names in _HOMES.items() for name in names}
"""The module of `evaluators.commands` that has a command."""


class _Commands(click.Group):
    """All commands; the module of one is imported when it is asked for: a capture starts in half the time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(HOME)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in HOME:
            return None
        home = import_module(f"evaluators.commands.{HOME[cmd_name]}")
        commands: tuple[click.Command, ...] = home.COMMANDS
        return next(command for command in commands if command.name == cmd_name)


@click.group(cls=_Commands)
@click.version_option(PACKAGE_VERSION, prog_name="mesedi-eval")
def cli() -> None:
    """Check captured answers against their evidence.

    Exit codes: 0 pass, 2 violated, 3 inconclusive, 1 usage or configuration error.
    """


def main() -> NoReturn:
    """Run the command and end the process with its exit code."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is UTF-8, whatever the locale says
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run the command and return its exit code, which is never the option parser's own 2."""
    try:
        code = cli.main(arguments, prog_name="mesedi-eval", standalone_mode=False)
    except click.ClickException as error:
        error.show()
    except click.Abort:
        click.echo("Interrupted.", err=True)
    except SystemExit as error:
        # Nothing of ours ends this way: code that was loaded wanted to leave, and must not pass for a result.
        click.echo(f"Error: code that was loaded ended the command ({error})", err=True)
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        sys.stderr.close()
    except (EvaluatorsError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
    else:
        return code if isinstance(code, int) else 0
    return EXIT_ERROR
