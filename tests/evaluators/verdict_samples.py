"""A verdict of each kind that nothing is wrong with, to be spoilt field by field."""

from evaluators.evidence import Bundle, Source

ANSWER = "You should **drink 2 L** of water and\nsleep 7 hours. 5 °C."
BUNDLE = Bundle(
    Source("turn:0", "I have 3 L"), (Source("passage:1", "Drink 2 L; sleep 7 hours.", "doc-9"),)
)
QUOTE = {"source_id": "passage:1", "quote": "Drink 2 L"}


def claim(text="7 hours", status="supported", evidence=(QUOTE,)):
    return {"text": text, "status": status, "evidence": list(evidence)}


def faithful(**changed):
    return {
        "claims": [claim()],
        "correctness": 9,
        "answers_question": True,
        "abstained": False,
        "abstention_appropriate": None,
        "dangerous": False,
        "danger_reason": None,
        "reasoning": "It is so.",
        "no_claims_reason": None,
        **changed,
    }


def declined(**changed):
    """An appropriate abstention that claims nothing."""
    fields = {
        "claims": [],
        "answers_question": False,
        "abstained": True,
        "abstention_appropriate": True,
        "no_claims_reason": "appropriate_abstention",
    }
    return faithful(**{**fields, **changed})


def rubric(**changed):
    quote = {"source_id": "answer", "quote": "2 L"}
    return {"outcome": "met", "rationale": "It does.", "evidence": [quote], **changed}


def without(verdict, name):
    return {key: value for key, value in verdict.items() if key != name}
