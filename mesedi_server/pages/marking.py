"""An answer as a page shows it: its words and its passages cut where findings begin and end."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from evaluators.marks import Mark, Marks
from evaluators.prompts import ANSWER_ID
from mesedi_server.assessing import QUESTION_ID
from mesedi_server.store.answer_assessments import Assessed
from mesedi_server.store.answers import Answer, Extent
from mesedi_server.store.assessments import FAITHFULNESS, GROUNDING

MAX_LINES = 10
"""Findings that are told in words under an answer; more are counted."""
MAX_QUOTE_CHARS = 200
"""Characters of a quote in such a line."""

_PASSAGE = "passage:"
_WORDS = {
    "question": "taken from the question",
    "unmatched": "stands in no passage, nor in the question",
    "ambiguous": "cannot be compared exactly: it needs a reader",
    "support": "supports the answer",
}
_SIGNS = {"question": "Q", "ambiguous": "?", "unmatched": "✗", "unresolved": "✗"}
# A number too long to be a passage's is not kept.
_NO_NUMBER = ("no passage None", "no such passage")
_FAULTS = {"unmatched", "ambiguous", "unresolved"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text, all of it under the same marks."""

    text: str
    begin: int
    mark: Mark | None
    """What grounding found here, or what a finding leans on."""
    claim: Mark | None
    """The claim that a judge found here, or what it quoted."""

    @property
    def begins_mark(self) -> bool:
        """Say whether the mark begins here: only then does the piece carry its id."""
        return self.mark is not None and self.mark.begin == self.begin

    @property
    def begins_claim(self) -> bool:
        """Say whether the claim begins here."""
        return self.claim is not None and self.claim.begin == self.begin


@dataclass(frozen=True, slots=True)
class Text:
    """A question, an answer or a passage; `anchors` are ids that lead to it as a whole."""

    pieces: list[Piece]
    anchors: Sequence[str] = ()

    @property
    def is_marked(self) -> bool:
        """Say whether anything leads here."""
        return any(piece.mark or piece.claim for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Line:
    """A finding in words: a quote, and what is wrong with it, or what supports it."""

    quote: str
    words: str
    status: str
    id: str | None = None
    target: str | None = None
    """Where the quote stands in the answer, or the evidence in a passage."""


@dataclass(frozen=True, slots=True)
class MarkedAnswer:
    """An answer beside its evidence, and what evaluators say of it."""

    answer: Answer
    is_waiting: bool
    """Its execution will be looked at (again)."""
    grounding: Assessed | None
    faithfulness: Assessed | None
    question: Text
    text: Text
    passages: list[Text]
    faults: list[Line]
    more_faults: int
    claims: list[Line]
    more_claims: int
    further: int
    """Findings of the answer past what is shown of it."""

    @property
    def is_passage_marked(self) -> bool:
        """Say whether anything leads to one of the passages."""
        return any(passage.is_marked for passage in self.passages)


def mark(
    name: str, answer: Answer, said: Mapping[str, Assessed], extent: Extent, *, is_waiting: bool
) -> MarkedAnswer:
    """Lay what evaluators found over an answer.

    Args:
        name: what the ids begin with, of its own on the page.
        answer: as it was read.
        said: what each evaluator found in it.
        extent: as much as was read: a text that is as long has been cut, perhaps.
        is_waiting: its execution will be looked at (again).
    """
    grounding, faithfulness = said.get(GROUNDING), said.get(FAITHFULNESS)
    quantities, claims = _layers(name, answer, extent)
    if grounding:
        quantities.add_quantities(grounding.findings.quantities or ())
        quantities.add_citations(grounding.findings.citations or ())
    if faithfulness:
        claims.add_claims(faithfulness.findings.claims or ())
    words = answer.answer or ""
    faults, told = _faults(words, quantities), _claims(words, claims)
    shown = _explained(quantities.answer, faults[:MAX_LINES])
    return MarkedAnswer(
        answer=answer,
        is_waiting=is_waiting,
        grounding=grounding,
        faithfulness=faithfulness,
        question=_source(answer.question or "", QUESTION_ID, quantities, claims),
        text=Text(_pieces(words, shown, claims.answer)),
        passages=[
            _source(text, f"{_PASSAGE}{number}", quantities, claims)
            for number, text in enumerate(answer.passages, 1)
        ],
        faults=faults[:MAX_LINES],
        more_faults=len(faults[MAX_LINES:]),
        claims=told[:MAX_LINES],
        more_claims=len(told[MAX_LINES:]),
        further=quantities.further
        + claims.further
        + _left_out(grounding)
        + _left_out(faithfulness),
    )


def spoken(mark: Mark) -> str:
    """Say in words what a mark means."""
    places = ", ".join(map(place_name, mark.sources))
    match mark.status:
        case "source":
            return f"stands in {places}"
        case "citation":
            return f"cites {places}"
        case "unresolved":
            return f"there is {mark.title}".replace(*_NO_NUMBER)
        case "supported" | "contradicted":
            return f"{mark.status} by {places}"
        case status:
            return _WORDS.get(status, status)


def sign(mark: Mark) -> str:
    """Return the few characters that stand beside a mark, so that its colour is not its only sign."""
    if mark.status == "source":
        return f"P{mark.sources[0].removeprefix(_PASSAGE)}"
    return _SIGNS.get(mark.status, "")


def place_name(source_id: str) -> str:
    """Name a source as the page does."""
    number = source_id.removeprefix(_PASSAGE)
    return "the question" if number == source_id else f"passage {number}"


def _layers(name: str, answer: Answer, extent: Extent) -> tuple[Marks, Marks]:
    """Make the marks of grounding, and those of a judge: a claim has quantities in it."""
    sources = {QUESTION_ID: answer.question or ""}
    for number, text in enumerate(answer.passages, 1):
        sources[f"{_PASSAGE}{number}"] = text
    words = answer.answer or ""
    texts = {ANSWER_ID: words, **sources}
    cut = {text_id for text_id, text in texts.items() if len(text) >= extent.chars}
    return Marks(name, words, sources, cut), Marks(f"{name}j", words, sources, cut)


def _source(text: str, source_id: str, quantities: Marks, claims: Marks) -> Text:
    pieces = _pieces(text, quantities.sources.get(source_id, ()), claims.sources.get(source_id, ()))
    return Text(pieces, (quantities.source_anchor(source_id), claims.source_anchor(source_id)))


def _pieces(text: str, marks: Iterable[Mark], claims: Iterable[Mark]) -> list[Piece]:
    """Cut a text wherever something begins or ends."""
    marks, claims = list(_apart(marks)), list(_apart(claims))
    ends = {end for one in (*marks, *claims) for end in (one.begin, one.end)}
    bounds = sorted({0, len(text), *ends})
    return [
        Piece(text[begin:end], begin, _covering(marks, begin), _covering(claims, begin))
        for begin, end in pairwise(bounds)
    ]


def _apart(marks: Iterable[Mark]) -> Iterator[Mark]:
    """Leave out what overlaps with one before it."""
    end = 0
    for one in marks:
        if one.begin >= end:
            end = one.end
            yield one


def _covering(marks: Sequence[Mark], place: int) -> Mark | None:
    # Few marks; the last one that begins by here is the only one that can reach as far.
    number = bisect_right(marks, place, key=lambda one: one.begin)
    found = marks[number - 1] if number else None
    return found if found is not None and place < found.end else None


def _faults(answer: str, marks: Marks) -> list[Line]:
    """Tell what keeps an answer from being met."""
    return [
        Line(_short(answer, one), spoken(one), one.status, _line_id(one), one.id)
        for one in marks.answer
        if one.status in _FAULTS
    ]


def _claims(answer: str, marks: Marks) -> list[Line]:
    """Tell what a judge says of each claim; the line of one that overlaps with another stands for its mark."""
    shown = {one.id for one in _apart(marks.answer)}
    lines = []
    for one in marks.answer:
        line_id = None if one.id in shown else one.id
        shown.add(one.id)
        lines.append(Line(_short(answer, one), spoken(one), one.status, line_id, one.target))
    return lines


def _explained(marks: Iterable[Mark], lines: Iterable[Line]) -> list[Mark]:
    """Let marks without support lead to the lines that say what is wrong."""
    ids = {line.id for line in lines}
    return [replace(one, target=_line_id(one)) if _line_id(one) in ids else one for one in marks]


def _left_out(assessed: Assessed | None) -> int:
    """Count the findings that were not read."""
    if assessed is None:
        return 0
    found = assessed.findings
    return (
        assessed.quantities
        - len(found.quantities or ())
        + assessed.citations
        - len(found.citations or ())
        + (found.all_claims or 0)
        - len(found.claims or ())
    )


def _line_id(one: Mark) -> str:
    return f"{one.id}-why"


def _short(answer: str, one: Mark) -> str:
    quote = answer[one.begin : one.end]
    return quote if len(quote) <= MAX_QUOTE_CHARS else f"{quote[:MAX_QUOTE_CHARS]}…"
