"""Result files from a shell, for jobs that have a file and no code.

    python -m mesedi send ragas|promptfoo|hhem FILE     send it
    python -m mesedi show ragas|promptfoo|hhem FILE     print the events, send nothing

The exit code is 0 when all scores are stored (or shown), 1 when not, 2 when the call is wrong.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mesedi import _client
from mesedi._hhem import emit_hhem
from mesedi._pieces import is_event
from mesedi._promptfoo import emit_promptfoo
from mesedi._ragas import emit_ragas
from mesedi._result_files import UnreadableError, read_result
from mesedi._spelling import Speller
from mesedi.errors import ConfigurationError

_DIGITS = 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; answers the exit code."""
    options = _parser().parse_args(arguments)
    try:
        content = sys.stdin.buffer.read() if options.file == "-" else _bytes_of(options.file)
        result = read_result(content, options.file)
        options.run_id = options.run_id or _run_id(result, content)
        return int(options.act(options, result))
    except (OSError, UnreadableError, ConfigurationError) as error:
        print(f"mesedi: {error}", file=sys.stderr)  # noqa: T201 - a command line speaks so
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mesedi", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True, metavar="send|show")
    for name, act, what in (
        ("send", _send, "send a result file; MESEDI_API_KEY and MESEDI_BASE_URL say where to"),
        ("show", _show, "print the events that would be sent, one JSON object a line"),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.set_defaults(act=act)
        _add_options(command)
    return parser


def _add_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("tool", choices=sorted(_EMITTERS))
    add("file", metavar="FILE", help="JSON, JSON Lines or CSV; - reads standard input")
    add("--metrics", default="", help="ragas: columns that are metrics of your own: a,b")
    add("--metric", help="ragas, promptfoo: the name of a single result that does not know it")
    add(
        "--threshold",
        action="append",
        default=[],
        metavar="METRIC=T",
        help="ragas: gives a verdict; may be repeated. hhem: T alone (default 0.5)",
    )
    add("--run-id", help="name of this run; default: follows from the file's content")
    add("--answers", action=argparse.BooleanOptionalAction, help="send the judged texts too")
    add("--timeout", type=float, default=30.0, help="send: seconds to wait for the server")


def _bytes_of(file: str) -> bytes:
    return Path(file).read_bytes()


def _run_id(result: Any, content: bytes) -> str:
    """Name a run by its own id, else by what the file holds: a new file of that name is news."""
    given = result.get("evalId") if isinstance(result, dict) else None
    return given or hashlib.sha256(content).hexdigest()[:_DIGITS]


# What each tool is told


def _ragas(options: argparse.Namespace, result: Any) -> int | None:
    return emit_ragas(
        result,
        metric=options.metric,
        metrics=[name.strip() for name in options.metrics.split(",") if name.strip()],
        thresholds=_thresholds(options.threshold),
        answers=options.answers is not False,
        run_id=options.run_id,
    )


def _promptfoo(options: argparse.Namespace, result: Any) -> int | None:
    return emit_promptfoo(
        result, metric=options.metric, answers=bool(options.answers), run_id=options.run_id
    )


def _hhem(options: argparse.Namespace, result: Any) -> int | None:
    threshold = _number(options.threshold[-1]) if options.threshold else 0.5
    answers = options.answers is not False
    return emit_hhem(result, threshold=threshold, answers=answers, run_id=options.run_id)


_EMITTERS: dict[str, Callable[[argparse.Namespace, Any], int | None]] = {
    "hhem": _hhem,
    "promptfoo": _promptfoo,
    "ragas": _ragas,
}


def _thresholds(given: Sequence[str]) -> dict[str, float]:
    pairs = [one.rpartition("=") for one in given]
    return {metric: _number(threshold) for metric, _, threshold in pairs}


def _number(text: str) -> float:
    try:
        return float(text.rpartition("=")[2])
    except ValueError:
        raise UnreadableError(f"--threshold {text}: not a number") from None


# What is done with it


def _send(options: argparse.Namespace, result: Any) -> int:
    _client.configure()
    found = _EMITTERS[options.tool](options, result) or 0
    left = _client.flush(options.timeout)
    stats = _client.stats()
    told = (
        f"{_several(found, 'score')} found, {_several(stats.sent, 'event')} stored,"
        f" {left} left, {stats.lost} lost"
    )
    reasons = [*stats.dropped.items(), *stats.refused.items()]
    print(told, *(f"{reason}: {count}" for reason, count in reasons), sep="; ")  # noqa: T201
    return 1 if left or stats.lost or not found else 0


def _several(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _show(options: argparse.Namespace, result: Any) -> int:
    client, pieces = _client.capture()
    found = _EMITTERS[options.tool](options, result) or 0
    speller = Speller(client.settings, client.ids)
    for piece in pieces:
        if is_event(piece):
            print(speller.event(piece).text or "")  # noqa: T201
    return 0 if found else 1
