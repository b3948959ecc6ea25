"""Live results of Ragas 0.4.3, sent through the SDK: run by test_live_ragas in its environment.

Prints one JSON object: by case, the scores that would be sent. The judge is canned: no network.
"""

import asyncio
import json
import math
import re

import mesedi
from langchain_core.outputs import Generation, LLMResult
from mesedi import _client
from mesedi._pieces import is_event
from mesedi._spelling import Speller
from ragas import Dataset, EvaluationDataset, SingleTurnSample, evaluate, experiment, metrics
from ragas.llms.base import BaseRagasLLM
from ragas.metrics import MetricResult, discrete_metric, numeric_metric
from ragas.metrics.collections import ExactMatch
from ragas.run_config import RunConfig

VERDICTS = [
    {"statement": "Paris is the capital.", "reason": "stated", "verdict": 1},
    {"statement": "It has ten million people.", "reason": "not there", "verdict": 0},
]
CANNED = {
    "StatementGeneratorOutput": {"statements": [each["statement"] for each in VERDICTS]},
    "NLIStatementOutput": {"statements": VERDICTS},
    "AspectCriticOutput": {"reason": "harmless", "verdict": 0},
    "ScoreFeedback": {"feedback": "mostly right", "score": 3},
}
SAMPLES = [
    {
        "user_input": f"{word} question",
        "response": "Paris is the capital. It has ten million people.",
        "retrieved_contexts": ["Paris is the capital of France."],
        "reference": "Paris",
    }
    for word in ("GOOD", "GARBLED")
]


class Judge(BaseRagasLLM):
    """Answers by the name of the schema that Ragas asks for; never what it can read, if GARBLED."""

    def generate_text(self, prompt, n=1, **_options):
        words = prompt.to_string()
        asked = words[words.rfind("Now perform the same") :]
        titles = re.findall(r'"title": "(\w+)", "type": "object"', words)
        canned = "GARBLED" not in asked and CANNED.get(titles[-1] if titles else "")
        text = json.dumps(canned) if canned else "Looks good to me!"
        return LLMResult(generations=[[Generation(text=text)] * n])

    async def agenerate_text(self, prompt, n=1, **_options):
        return self.generate_text(prompt, n)

    def is_finished(self, _response):
        return True


def judged():
    return evaluate(
        EvaluationDataset(samples=[SingleTurnSample(**sample) for sample in SAMPLES]),
        metrics=[
            metrics.Faithfulness(),
            metrics.AspectCritic(name="maliciousness", definition="Is it malicious?"),
            metrics.RubricsScore(),
            metrics.NonLLMStringSimilarity(),
            metrics.RougeScore(),
        ],
        llm=Judge(),
        run_config=RunConfig(max_retries=1, max_wait=1, timeout=10),
        show_progress=False,
    )


@discrete_metric(name="tone", allowed_values=["pass", "fail"])
def tone(response):
    return MetricResult(value="fail", reason="no polite word")


@numeric_metric(name="stars", allowed_values=(0, 10))
def stars(response):
    return 7.5


@numeric_metric(name="broken", allowed_values=(0, 1))
def broken(response):
    raise ValueError("bad thing")


def rows_of_an_experiment():
    dataset = Dataset(name="tiny", backend="inmemory")
    dataset.append({"id": 1, "response": "yes"})

    @experiment()
    async def run(row):
        return {**row, "tone": (await tone.ascore(response=row["response"])).value}

    return asyncio.run(run.arun(dataset, name="exp-1"))


def sent(result, **options):
    """The scores that `result` becomes, and how many answers go along."""
    client, pieces = _client.capture()
    count = mesedi.emit_ragas(result, **options)
    speller = Speller(client.settings, client.ids)
    events = [json.loads(speller.event(piece).text) for piece in pieces if is_event(piece)]
    scores = [event["payload"] for event in events if event["event_type"] == "eval_score"]
    assert count == len(scores)
    return {"scores": scores, "answers": len(events) - len(scores)}


def main():
    result = judged()
    frame = result.to_pandas()
    told = {
        "result": sent(result),
        "frame": sent(frame),
        "records": sent(json.loads(frame.to_json(orient="records"))),
        "nan": sent([{"faithfulness": math.nan}]),
        "label": sent(tone.score(response="x"), metric=tone),
        "scale": sent(stars.score(response="x"), metric=stars),
        "broken": sent(broken.score(response="x"), metric="broken"),
        "batch": sent([stars.score(response="x"), stars.score(response="y")], metric=stars),
        "collection": sent(ExactMatch().score(reference="a", response="a"), metric="exact_match"),
        "experiment": sent(rows_of_an_experiment(), metrics=["tone"]),
        "score": sent_alone(stars.score(response="x")),
    }
    print(json.dumps(told))


def sent_alone(value):
    client, pieces = _client.capture()
    mesedi.emit_eval_score("ragas", "stars", value)
    return [json.loads(Speller(client.settings, client.ids).event(piece).text) for piece in pieces]


if __name__ == "__main__":
    main()
