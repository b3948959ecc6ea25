"""A small suite that runs as it is: no target, no judge, no network."""

import json
from pathlib import Path
from typing import Any

from evaluators.reports.files import refuse_existing

SUITE = "suite.yaml"
DATASET = "dataset.jsonl"

_YAML = """\
# Run it with: mesedi-eval run-suite suite.yaml
id: balcony-garden
revision: "1"
dataset: dataset.jsonl

# With a target the answers are asked for; without one they are those of the dataset.
# target_factory: my_assistant:make
# max_target_calls: 20

evaluation:
  id: balcony-grounding
  revision: "1"
  qualification: reviewed     # a draft cannot pass
  criteria:
    - id: traceability
      revision: "1"
      evaluator: grounding

policy:
  id: balcony-release
  revision: "1"
  metric_gates:
    - id: traceable
      metric: grounding.quantity_traceability
      operator: at_least
      threshold: 1
      min_denominator: 5
    - id: everything-judged
      metric: evaluation.coverage
      operator: at_least
      threshold: 1
    - id: watering-cited
      metric: grounding.citation_resolution
      operator: at_least
      threshold: 1
      tag: watering

# With the run of an earlier release, no answer may become worse:
# baseline: reports/<run-directory>
"""

_TALKS: tuple[tuple[str, str, list[str], str, str], ...] = (
    (
        "tomato-water",
        "watering",
        ["A tomato in a 10 litre pot needs 1 to 2 litres of water on a warm day."],
        "How much water does a tomato in a pot need?",
        "Give it 1 to 2 litres on a warm day [1].",
    ),
    (
        "basil-water",
        "watering",
        ["Water basil from below.", "Pour off what is left in the saucer after 30 minutes."],
        "May basil stand in water?",
        "Only for a while: pour off the rest after half an hour, that is 30 minutes [2].",
    ),
    (
        "frost-cover",
        "cold",
        ["Cover geraniums below 5 °C."],
        "When do geraniums need a cover?",
        "Below 5 °C [1], which is below 41 °F.",
    ),
    (
        "feed-dose",
        "feeding",
        ["Dissolve 3 g of the feed in 1 litre of water, every 2 weeks."],
        "How do I feed the herbs?",
        "Every 14 days, 3 g in 1 litre of water [1].",
    ),
    (
        "thanks",
        "feeding",
        [],
        "Thank you!",
        "You are welcome.",
    ),
)


def write(folder: Path, *, force: bool = False) -> list[Path]:
    """Write the example and return its paths. Raises RunError when one exists, unless `force`."""
    paths = [folder / SUITE, folder / DATASET]
    if not force:
        refuse_existing(paths)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(turn, ensure_ascii=False) for talk in _TALKS for turn in _turns(*talk)]
    paths[0].write_text(_YAML, encoding="utf-8")
    paths[1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def _turns(
    name: str, tag: str, passages: list[str], question: str, answer: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"session_id": name, "role": "user", "text": question}, {
        "session_id": name,
        "role": "assistant",
        "text": answer,
        "case_id": name,
        "tags": [tag],
        "metadata": {"context": {"passages": passages}},
    }
