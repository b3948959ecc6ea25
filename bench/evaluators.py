"""Capture and grounding of many answers: our CPU time, memory and disk, beside a peer's.

    python -m bench.evaluators                    # 1,000 and 10,000 answers, both tools
    python -m bench.evaluators --answers 50000    # what is asked for
    python -m bench.evaluators --no-peer          # ours alone

The peer is `alignmenter` 0.3.5, installed into an environment of its own in a temporary folder.
Every run is a process of its own; CPU time and peak memory are those of the process.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from evaluators import evidence, grounding

PEER = "alignmenter==0.3.5"
PASSAGES = 5
PASSAGE_CHARACTERS = 300
_TIMEOUT_S = 1800

_SPEC = """id: bench
revision: r1
criteria:
  - id: traceability
    revision: v1
    evaluator: grounding
"""
_UNITS = ["mg", "g", "kg", "mL", "L", "minutes", "hours", "days", "cm", "km", "°C", "%"]
WORDS = [
    "the",
    "pump",
    "should",
    "be",
    "rinsed",
    "before",
    "use",
    "and",
    "kept",
    "dry",
    "between",
    "runs",
    "while",
    "the",
    "filter",
    "rests",
    "in",
    "a",
    "clean",
    "tray",
    "away",
    "from",
    "light",
    "because",
    "residue",
    "changes",
    "how",
    "the",
    "next",
    "batch",
    "behaves",
    "over",
    "time",
]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command took."""

    cpu_s: float
    wall_s: float
    peak_mib: float
    output: str


def write_dataset(path: Path, answers: int) -> None:
    """Write question and answer pairs: two or three values and a citation in each answer."""
    chance = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(answers):
            passages = [_passage(chance) for _ in range(PASSAGES)]
            values = [value for _, value in passages]
            session = f"session-{number:06d}"
            question = f"How much and how long for batch {number}?"
            answer = (
                f"Use {chance.choice(values)} [{chance.randint(1, PASSAGES)}] and then wait "
                f"{chance.choice(values)}; stop after {_last(chance, values)}."
            )
            context = {
                "passages": [{"id": f"d{i}", "text": t} for i, (t, _) in enumerate(passages)]
            }
            for turn in (
                {"role": "user", "text": question},
                {"role": "assistant", "text": answer, "metadata": {"context": context}},
            ):
                file.write(json.dumps({"session_id": session, **turn}) + "\n")


def _last(chance: random.Random, values: list[str]) -> str:
    # One answer in ten has a value that no passage holds.
    return chance.choice(values) if chance.random() < 0.9 else "777 minutes"


def _passage(chance: random.Random) -> tuple[str, str]:
    value = f"{chance.randint(1, 500)} {chance.choice(_UNITS)}"
    words: list[str] = []
    while sum(map(len, words)) + len(words) < PASSAGE_CHARACTERS - len(value) - 12:
        words.append(chance.choice(WORDS))
    words.insert(chance.randrange(len(words)), value)
    return " ".join(words).ljust(PASSAGE_CHARACTERS, ".")[:PASSAGE_CHARACTERS], value


def run(command: list[str], expected: tuple[int, ...] = (0,)) -> Cost:
    """Run one command to its end and measure it."""
    with tempfile.TemporaryFile("w+") as output:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begin
        output.seek(0)
        text = output.read()
    if child.returncode not in expected:
        raise SystemExit(f"{command} ended with {child.returncode}:\n{text}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, text)


def measure(tool: list[str], name: str, dataset: Path, folder: Path) -> None:
    """Capture and evaluate a dataset with one tool and print what it took."""
    spec = folder / "spec.yaml"
    spec.write_text(_SPEC)
    out = folder / f"{name}-{dataset.stem}"
    captured = run([*tool, "capture", "--dataset", str(dataset), "--out", str(out)])
    directory = next(path for path in out.iterdir() if path.is_dir())
    evaluated = run([*tool, "evaluate", str(directory), "--spec", str(spec)], expected=(0, 2, 3))
    size = (directory / "run.sqlite3").stat().st_size / dataset.stat().st_size
    print(
        f"{name:12} {dataset.stem:>9}  CPU {captured.cpu_s:7.2f} + {evaluated.cpu_s:7.2f} s"
        f"  wall {captured.wall_s + evaluated.wall_s:7.2f} s"
        f"  peak {max(captured.peak_mib, evaluated.peak_mib):7.0f} MiB"
        f"  database {size:4.1f} x dataset",
        flush=True,
    )


def measure_texts() -> None:
    """Print what single texts cost, the best of five (sources seen before are remembered)."""
    passages = {"passages": [f"Source {n}: take {n} mg for {n} days." for n in range(20)]}
    bundle = evidence.read(passages, "How much?", "turn:0")
    if isinstance(bundle, evidence.MissingEvidence):
        raise TypeError(bundle.reason)
    texts = {
        "a short answer, 20 passages": "Take 5 mg for 5 days [6].",
        "20 kB of 1,1,1…": "1," * 10_000,
        "20 kB of digits": "1" * 20_000,
        "20 kB of 5 mg to": "5 mg to " * 2_500,
    }
    for name, text in texts.items():
        print(f"{name:28} {_best_ms(text, bundle):7.2f} ms")


def _best_ms(text: str, bundle: evidence.Bundle) -> float:
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        grounding.assess(text, bundle)
        best = min(best, time.perf_counter() - begin)
    return best * 1000


def peer_environment(folder: Path) -> list[str]:
    """Install the peer into an environment of its own; return its command."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "peer")], check=True)
    binaries = folder / "peer" / "bin"
    subprocess.run(
        [str(binaries / "pip"), "install", "--quiet", PEER], check=True, timeout=_TIMEOUT_S
    )
    return [str(binaries / "alignmenter")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}")
    measure_texts()
    with tempfile.TemporaryDirectory(prefix="bench-evaluators-") as name:
        folder = Path(name)
        tools = {"mesedi-eval": [sys.executable, "-m", "evaluators"]}
        if not options.no_peer:
            tools["alignmenter"] = peer_environment(folder)
        for answers in options.answers:
            dataset = folder / f"{answers}.jsonl"
            write_dataset(dataset, answers)
            for tool, command in tools.items():
                measure(command, tool, dataset, folder)


if __name__ == "__main__":
    main()
