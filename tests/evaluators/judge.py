"""A judge for tests: it answers by a function, and remembers what it was asked."""

import json
import threading

from evaluators import Criterion
from evaluators.judges import JudgeContract, JudgeReply

FAITHFUL = Criterion(id="faithful", revision="v1", evaluator="faithfulness")
KIND = Criterion(id="kind", revision="v1", rubric="The answer is kind.")


def verdict(payload, **changes):
    """A valid faithfulness verdict: the whole answer is one claim, supported by passage 1."""
    passage = payload["supporting_sources"]["passage:1"]
    claim = {
        "text": payload["answer"]["text"],
        "status": "supported",
        "evidence": [{"source_id": "passage:1", "quote": passage}],
    }
    whole = {
        "claims": [claim],
        "correctness": 8,
        "answers_question": True,
        "abstained": False,
        "abstention_appropriate": None,
        "dangerous": False,
        "danger_reason": None,
        "reasoning": "The passage says so.",
        "no_claims_reason": None,
    }
    return json.dumps({**whole, **changes})


def rubric_verdict(payload, outcome="met"):
    quote = {"source_id": "answer", "quote": payload["answer"]["text"]}
    return json.dumps({"outcome": outcome, "rationale": "It is.", "evidence": [quote]})


def fitting(payload):
    """The verdict that the request's criterion wants."""
    return (verdict if "supporting_sources" in payload else rubric_verdict)(payload)


class Judge:
    """Answers with `answer(payload)`: text, a reply, or an exception to raise."""

    def __init__(self, answer=fitting, *, cost=None, bound=None, model="judge-1"):
        self.contract = JudgeContract(model, "0" * 64, max_cost_micros_per_call=bound)
        self.answer = answer
        self.cost = cost
        self.asked = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def evaluate(self, request):
        with self._lock:
            self.asked.append(request)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            answer = self.answer(json.loads(request.prompt))
        finally:
            with self._lock:
                self._now -= 1
        if isinstance(answer, BaseException):
            raise answer
        return (
            JudgeReply(answer, actual_cost_micros=self.cost) if isinstance(answer, str) else answer
        )
