"""Send the scores of a Ragas run, saved as JSON records or JSON Lines, to a Mesedi server.

    MESEDI_API_KEY=mesedi_sk_… python examples/send_ragas.py FILE

In the pipeline itself no file is needed: `mesedi.emit_ragas(evaluate(...))`.
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
    lines = text.split("\n") if path.suffix == ".jsonl" else [text]
    run_id = hashlib.sha256(text.encode()).hexdigest()  # sending this file again changes nothing
    mesedi.configure()
    results = [json.loads(line) for line in lines if line.strip()]
    count = sum(mesedi.emit_ragas(result, run_id=run_id) or 0 for result in results)
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
