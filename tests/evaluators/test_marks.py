"""Findings are marked where they stand; past the cut of a text they are counted instead."""

from evaluators import grounding
from evaluators.evidence import Bundle, Source
from evaluators.marks import Marks

QUESTION = Source("turn:0", "How much is 7 mg?")


def marked(answer: str, passages: list[str], chars: int = 1000, shown: int = 1000) -> Marks:
    """Assess a whole answer, and mark as many characters of each text as a page shows."""
    bundle = Bundle(QUESTION, tuple(Source(f"passage:{n}", t) for n, t in enumerate(passages, 1)))
    content = grounding.assess(answer, bundle).content()
    texts = {source_id: text for source_id, text, _ in list(bundle)[: shown + 1]}
    whole = {**texts, "answer": answer}
    marks = Marks(
        "a",
        answer[:chars],
        {source_id: text[:chars] for source_id, text in texts.items()},
        {name for name, text in whole.items() if len(text) > chars},
    )
    marks.add_quantities(content["quantities"])
    marks.add_citations(content["citations"])
    return marks


def test_what_lies_past_the_cut_is_counted():
    marks = marked("Take 5 mg [1]. Later 9 mg, 8 mg and [2, 3].", ["5 mg"], chars=20)

    assert [mark.status for mark in marks.answer] == ["source", "citation"]
    assert marks.further == 4


def test_half_of_a_shown_value_does_not_pass_for_one_past_the_cut():
    answer = "Take x15 mg today, and then 5 mg."

    marks = marked(answer, ["5 mg"], chars=20)

    assert marks.answer == []
    assert marks.further == 1


def test_a_value_leads_to_its_very_place():
    marks = marked("Take 5 mg.", ["none", "Not 15 mg but 5 mg."])

    (mark,) = marks.answer
    (support,) = marks.sources["passage:2"]
    assert (mark.target, support.target) == (support.id, mark.id)
    assert (support.begin, support.end) == (14, 18)
    assert mark.sources == ("passage:2",)


def test_a_place_past_the_cut_of_a_passage_leads_to_the_passage():
    marks = marked("Take 5 mg.", [f"{'x' * 30} 5 mg"], chars=20)

    assert [mark.target for mark in marks.answer] == ["a-passage-1"]
    assert marks.sources == {}


def test_a_passage_that_is_not_shown_is_led_to_by_nothing():
    marks = marked("Take 5 mg [2].", ["none", "5 mg"], shown=1)

    assert [(mark.status, mark.target, mark.sources) for mark in marks.answer] == [
        ("source", None, ("passage:2",)),
        ("citation", None, ("passage:2",)),
    ]


def test_quotes_that_overlap_lead_to_one_mark():
    evidence = [
        {"source_id": "passage:1", "quote": "within 30 days"},
        {"source_id": "passage:1", "quote": "30 days of delivery"},
    ]
    claims = [
        {"text": text, "status": "supported", "evidence": [quote]}
        for text, quote in zip(("a month", "from delivery"), evidence, strict=True)
    ]
    marks = Marks("a", "a month from delivery", {"passage:1": "within 30 days of delivery"})

    marks.add_claims(claims)

    (support,) = marks.sources["passage:1"]
    assert [mark.target for mark in marks.answer] == [support.id, support.id]


def test_a_claim_past_the_cut_is_counted_and_its_evidence_still_marked():
    evidence = [{"source_id": "passage:1", "quote": "30 days"}]
    marks = Marks("a", "cut", {"passage:1": "within 30 days"}, {"answer"})

    marks.add_claims([{"text": "a month", "status": "supported", "evidence": evidence}])

    assert (marks.answer, marks.further) == ([], 1)
    assert [mark.target for mark in marks.sources["passage:1"]] == [None]
