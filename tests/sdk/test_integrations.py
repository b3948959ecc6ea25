"""The helpers with the reference's names: code written for it runs."""

import math

import mesedi
import pytest
from mesedi.integrations import promptfoo, ragas, vectara


@pytest.mark.parametrize(
    ("report", "payload"),
    [
        (
            lambda: ragas.report_faithfulness(0.42, reason="two claims unsupported"),
            ("ragas/faithfulness", "faithfulness", 0.42, False, 0.7, "two claims unsupported"),
        ),
        (
            lambda: ragas.report_answer_relevance(0.7),
            ("ragas/answer_relevance", "answer_relevance", 0.7, True, 0.7, None),
        ),
        (
            lambda: ragas.report_context_precision(score=0.3, threshold=0.2),
            ("ragas/context_precision", "context_precision", 0.3, True, 0.2, None),
        ),
        (
            lambda: promptfoo.report_factuality(0.9, False),
            ("promptfoo/factuality", "factuality", 0.9, False, 0.5, None),
        ),
        (
            lambda: promptfoo.report_llm_rubric("tone", 0.2, passed=True, reason="r"),
            ("promptfoo/llm-rubric/tone", "tone", 0.2, True, 0.5, "r"),
        ),
        (
            lambda: vectara.report_hhem(0.5),
            ("vectara/hhem", "hallucination", 0.5, True, 0.5, None),
        ),
        (
            lambda: vectara.report_hhem(faithfulness_score=math.nan),
            ("vectara/hhem", "hallucination", None, None, 0.5, None),
        ),
    ],
)
def test_a_report_sends_what_the_reference_sends(client, server, report, payload):
    with mesedi.execution():
        report()

    assert mesedi.flush(5) == 0
    (score,) = server.scores
    names = ("evaluator_id", "metric_type", "score", "passed", "threshold", "reason")
    assert tuple(score.get(name) for name in names) == payload
    assert score["higher_is_better"] is True


def test_a_rubric_without_a_name_is_counted_not_raised(client, server):
    promptfoo.report_llm_rubric("", 0.2, passed=True)

    assert mesedi.stats().dropped == {"no metric": 1}
