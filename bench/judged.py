"""Bookkeeping of judged evaluations: our CPU time beside a peer's, with a judge that answers at once.

    python -m bench.judged                       # 1,000 answers, both tools; 20,000, ours alone
    python -m bench.judged --answers 500 2000 --no-peer

The peer is `alignmenter` 0.3.5 in an environment of its own, as in `bench.evaluators`. Each answer
has 20 passages of 1,000 characters; the judge runs inside the process and answers from memory, so
what is measured is what a tool does around a call.
"""

import argparse
import json
import os
import platform
import random
import sys
import tempfile
from pathlib import Path

from bench.evaluators import WORDS, Cost, peer_environment, run

PASSAGES = 20
PASSAGE_CHARACTERS = 1000
PEER_ANSWERS = 1000

_SPEC = """id: bench
revision: r1
criteria:
  - id: practical
    revision: r1
    evaluator: faithfulness
"""
_JUDGE = '''"""A judge that answers at once, for either tool."""

import json

VERDICT = {
    "correctness": 8, "answers_question": True, "abstained": False,
    "abstention_appropriate": None, "dangerous": False, "danger_reason": None,
    "reasoning": "The passage says so.", "no_claims_reason": None,
}


def verdict(prompt):
    payload = json.loads(prompt)
    evidence = [{"source_id": "passage:1", "quote": payload["supporting_sources"]["passage:1"][:40]}]
    claim = {"text": payload["answer"]["text"], "status": "supported", "evidence": evidence}
    return json.dumps({**VERDICT, "claims": [claim]})


class Judge:
    def __init__(self, contract, reply):
        self.contract, self.reply = contract, reply

    def evaluate(self, request):
        return self.reply(text=verdict(request.prompt), finish_reason="stop")


def ours():
    from evaluators.judges import JudgeContract, JudgeReply
    return Judge(JudgeContract("instant", "0" * 64), JudgeReply)


def peers():
    from alignmenter.schemas.evaluation import JudgeContract, JudgeReply
    contract = JudgeContract(
        model="instant", configuration_digest="0" * 64, max_dispatches_per_request=1
    )
    return Judge(contract, JudgeReply)
'''


def write_dataset(path: Path, answers: int) -> None:
    """Write question and answer pairs with their passages."""
    chance = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(answers):
            passages = [
                " ".join(chance.choices(WORDS, k=250))[:PASSAGE_CHARACTERS] for _ in range(PASSAGES)
            ]
            session = f"session-{number:06d}"
            context = {"passages": passages}
            for turn in (
                {"role": "user", "text": f"What about batch {number}?"},
                {
                    "role": "assistant",
                    "text": f"Batch {number} is kept dry.",
                    "metadata": {"context": context},
                },
            ):
                file.write(json.dumps({"session_id": session, **turn}) + "\n")


def measure(tool: list[str], name: str, dataset: Path, folder: Path, *options: str) -> Cost:
    """Capture a dataset, evaluate it with the instant judge, and print what the latter took."""
    out = folder / f"{name}-{dataset.stem}"
    run([*tool, "capture", "--dataset", str(dataset), "--out", str(out)])
    directory = next(path for path in out.iterdir() if path.is_dir())
    spec = str(folder / "spec.yaml")
    factory = "bench_judge:peers" if name == "alignmenter" else "bench_judge:ours"
    cost = run(
        [*tool, "evaluate", str(directory), "--spec", spec,
         "--judge-factory", factory, "--max-judge-calls", "1000000", *options],
        expected=(0, 2, 3),
    )  # fmt: skip
    size = (directory / "run.sqlite3").stat().st_size / dataset.stat().st_size
    print(
        f"{name:12} {dataset.stem:>7} {' '.join(options):15} CPU {cost.cpu_s:7.2f} s"
        f"  wall {cost.wall_s:7.2f} s  peak {cost.peak_mib:6.0f} MiB"
        f"  database {size:4.1f} x dataset",
        flush=True,
    )
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, nargs="+", default=[1_000, 20_000])
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="bench-judged-") as name:
        folder = Path(name)
        (folder / "spec.yaml").write_text(_SPEC)
        (folder / "bench_judge.py").write_text(_JUDGE)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        ours = [sys.executable, "-m", "evaluators"]
        for answers in options.answers:
            dataset = folder / f"{answers}.jsonl"
            write_dataset(dataset, answers)
            measure(ours, "mesedi-eval", dataset, folder)
            if answers <= PEER_ANSWERS and not options.no_peer:
                measure(peer_environment(folder), "alignmenter", dataset, folder)


if __name__ == "__main__":
    main()
