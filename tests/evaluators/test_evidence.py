import pytest

from evaluators import evidence
from evaluators.evidence import Bundle, MissingEvidence, Source


def test_the_question_comes_first_and_passages_keep_their_order():
    bundle = evidence.read({"documents": ["b", {"content": "a", "id": 7}]}, "Why?", "turn:4")

    assert list(bundle) == [
        Source("turn:4", "Why?", None),
        Source("passage:1", "b", None),
        Source("passage:2", "a", "7"),
    ]


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (None, "there is no context"),
        ([], "the context is not an object"),
        ({}, "the context has none of excerpts, passages, documents, sources, context"),
        ({"title": "t"}, "the context has none of excerpts, passages, documents, sources, context"),
        ({"excerpts": {}, "passages": ["p"]}, "excerpts is not a list"),
        ({"passages": ["p", ""]}, "passage 2 is malformed: the item is blank"),
        ({"passages": [" \n\u00a0"]}, "passage 1 is malformed: the item is blank"),
        ({"passages": [7]}, "passage 1 is neither text nor an object"),
        ({"passages": [{"title": "t"}]}, "passage 1 has none of text, content, body"),
        ({"passages": [{"text": None, "body": "b"}]}, "passage 1 is malformed: text is not text"),
        ({"passages": [{"body": " "}]}, "passage 1 is malformed: body is blank"),
    ],
)
def test_unreadable_evidence_says_why(context, reason):
    assert evidence.read(context, "Why?", "turn:0") == MissingEvidence(reason)


def test_without_a_question_there_is_no_evidence():
    missing = evidence.read({"passages": ["p"]}, None, "turn:0")

    assert missing == MissingEvidence("no user question comes before the answer")


def test_an_empty_retrieval_is_evidence():
    assert evidence.read({"excerpts": []}, "Why?", "turn:0") == Bundle(Source("turn:0", "Why?"), ())


def test_a_long_passage_is_not_shortened():
    text = "word " * 100_000

    bundle = evidence.read({"passages": [text]}, "Why?", "turn:0")

    assert bundle.passages[0].text == text
