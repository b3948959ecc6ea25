"""Send the results of `promptfoo eval -o FILE` (.json or .jsonl) to a Mesedi server.

MESEDI_API_KEY=mesedi_sk_… python examples/send_promptfoo.py FILE
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import mesedi


def main() -> int:
    """Send the file named on the command line; answer the exit code."""
    path = _file()
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        result = [json.loads(line) for line in text.split("\n") if line.strip()]
    else:
        result = json.loads(text)
    run_id = result.get("evalId") if isinstance(result, dict) else None
    run_id = run_id or hashlib.sha256(text.encode()).hexdigest()
    mesedi.configure()
    # With a run's id, sending its results again changes nothing.
    count = mesedi.emit_promptfoo(result, answers=True, run_id=run_id)
    left = mesedi.flush(timeout=30)
    stats = mesedi.stats()
    print(f"{count} scores found, {stats.sent} events stored, {left} left, {stats.lost} lost")
    return 1 if left or stats.lost else 0


def _file() -> Path:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, metavar="FILE")
    path: Path = parser.parse_args().file
    if not path.exists():
        parser.error(f"{path} does not exist")
    return path


if __name__ == "__main__":
    sys.exit(main())
