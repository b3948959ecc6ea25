"""Datasets for tests: short ways to write turns, files and runs."""

import json
from pathlib import Path

from evaluators import Criterion, EvaluationSpec
from evaluators.capture import capture

GROUNDING = Criterion(id="traceability", revision="v1", evaluator="grounding")
DOSE = {"passages": ["Take 5 mg for 3 days."]}


def user(text="How much?", session="s", **more):
    return {"session_id": session, "role": "user", "text": text, **more}


def assistant(text="Take 5 mg [1].", context=DOSE, session="s", **more):
    return {
        "session_id": session,
        "role": "assistant",
        "text": text,
        **({} if context is None else {"metadata": {"context": context}}),
        **more,
    }


def pairs(count, text="Take 5 mg [1]."):
    return [
        turn
        for number in range(count)
        for turn in (
            user(session=f"s{number:05}"),
            assistant(text, session=f"s{number:05}"),
        )
    ]


def write(path: Path, records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def captured(tmp_path: Path, records, **options) -> Path:
    return capture(write(tmp_path / "data.jsonl", records), tmp_path / "runs", **options)


def spec(*criteria, **options):
    defaults = {"id": "checks", "revision": "r1", "qualification": "reviewed"}
    return EvaluationSpec(**{**defaults, **options}, criteria=criteria or (GROUNDING,))
