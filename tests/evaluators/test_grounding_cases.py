"""The published cases: answers with the findings that the seed, an oracle or its principle decides."""

import json
from pathlib import Path

import pytest

from evaluators import evidence, grounding

FIXTURES = Path(__file__).parent / "fixtures"


def _cases(name):
    with (FIXTURES / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("case", _cases("grounding_cases.jsonl"), ids=lambda case: case["id"])
def test_an_answer_has_the_expected_findings(case):
    bundle = evidence.read({"passages": case["source"]}, case["question"], "turn:0")

    assessment = grounding.assess(case["answer"], bundle)

    content = assessment.content()
    assert assessment.outcome == case["expected_outcome"], case["why"]
    assert content["citations"] == case["citations"]
    assert len(content["quantities"]) == len(case["quantities"])
    for finding, expected in zip(content["quantities"], case["quantities"], strict=True):
        assert _as_told(finding, expected) == expected


def _as_told(finding, expected):
    """Leave out what a case leaves open: a long number's fraction, where support stands."""
    open_evidence = expected["status"] == "source" and expected["evidence"] is None
    return {
        name: None if open_evidence and name == "evidence" else finding[name] for name in expected
    }


@pytest.mark.parametrize("case", _cases("evidence_cases.jsonl"), ids=lambda case: str(case)[:60])
def test_a_context_is_read_as_the_published_case_says(case):
    bundle = evidence.read(case["context"], "What should I do?", "turn:0")

    if case["expected"] == "missing_evidence":
        assert isinstance(bundle, evidence.MissingEvidence)
        assert bundle.reason
    else:
        assert [passage._asdict() for passage in bundle.passages] == case["expected"]
