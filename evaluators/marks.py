"""Where findings stand in the texts that they speak of: what a report or a page marks, and what leads where.

Texts may be cut. What lies past the cut is not marked, and `further` counts it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from evaluators.prompts import ANSWER_ID

Finding = Mapping[str, Any]
"""A finding's `content()`."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a text that a finding speaks of.

    Attributes:
        begin, end: Characters of the text.
        status: The finding's own; `citation` or `unresolved` for a bracket, `support` in a source.
        title: What there is to say of it, for a report.
        id: Names the piece within its page.
        target: The id of what it leads to; None when that is not shown.
        sources: Ids of the sources that the finding names.
    """

    begin: int
    end: int
    status: str
    title: str
    id: str
    target: str | None
    sources: tuple[str, ...] = ()


class Marks:
    """All marks of one answer, in itself and in its sources.

    Args:
        name: What the ids begin with; one of its own for each answer of a page.
        answer: As much of it as is shown.
        sources: The shown sources by their ids, as much of each as is shown.
        cut: Ids of the texts that are not shown whole, `answer` for the answer. Only a quote that
            stands there by itself is found: half of `15 mg` must not pass for the `5 mg` that comes later.

    Attributes:
        answer: Marks of the answer, in its order; they may overlap.
        sources: Marks of each source, in its order; they do not overlap.
        further: How many findings of the answer lie past the cut.
    """

    def __init__(
        self, name: str, answer: str, sources: Mapping[str, str], cut: Collection[str] = ()
    ) -> None:
        self._name = name
        self._answer = answer
        self._texts = sources
        self._cut = cut
        self.answer: list[Mark] = []
        self.sources: dict[str, list[Mark]] = {}
        self.further = 0

    def source_anchor(self, source_id: str) -> str:
        """Id of a whole source."""
        return f"{self._name}-{source_id.replace(':', '-')}"

    def add_quantities(self, quantities: Iterable[Finding]) -> None:
        """Mark the quantities of the answer, and what supports them."""
        end = 0
        for quantity in quantities:
            begin = self._place(ANSWER_ID, self._answer, quantity["quote"], end)
            if begin < 0:
                self.further += 1
                continue
            end = begin + len(quantity["quote"])
            self._mark_quantity(quantity, begin, end)
        self._sort()

    def add_citations(self, citations: Iterable[Finding]) -> None:
        """Mark the brackets of the answer."""
        end = 0
        for quote, numbers in _brackets(citations):
            begin = self._place(ANSWER_ID, self._answer, quote, end)
            if begin < 0:
                self.further += len(numbers)
                continue
            end = begin + len(quote)
            self._mark_bracket(numbers, begin, end)
        self._sort()

    def add_claims(self, claims: Iterable[Finding]) -> None:
        """Mark the claims that a judge found in the answer, and what it quoted for or against them."""
        for claim in claims:
            begin = self._answer.find(claim["text"])
            anchor = self._anchor(begin) if begin >= 0 else None
            targets = [self._mark_source(quote, anchor) for quote in claim["evidence"]]
            if anchor is None:
                self.further += 1
                continue
            shown = tuple(quote["source_id"] for quote in claim["evidence"])
            title = ": ".join([claim["status"], *filter(None, [", ".join(shown)])])
            target = next(filter(None, targets), None)
            end = begin + len(claim["text"])
            self.answer.append(Mark(begin, end, claim["status"], title, anchor, target, shown))
        self._sort()

    def add_quotes(self, quotes: Iterable[Finding]) -> None:
        """Mark what a verdict leans on, in the answer or in a source."""
        for quote in quotes:
            if quote["source_id"] != ANSWER_ID:
                self._mark_source(quote, None)
                continue
            begin = self._answer.find(quote["quote"])
            end = begin + len(quote["quote"])
            anchor = self._anchor(begin)
            self.answer.append(Mark(begin, end, "support", "quoted by the judge", anchor, None))
        self._sort()

    def _mark_quantity(self, quantity: Finding, begin: int, end: int) -> None:
        anchor, evidence, status = self._anchor(begin), quantity["evidence"], quantity["status"]
        if evidence is None:
            self.answer.append(Mark(begin, end, status, status, anchor, None))
            return
        source_id, target = evidence["source_id"], self._mark_source(evidence, anchor)
        title = f"{status}: {source_id}"
        self.answer.append(Mark(begin, end, status, title, anchor, target, (source_id,)))

    def _mark_bracket(self, numbers: list[Finding], begin: int, end: int) -> None:
        unresolved = [str(each["index"]) for each in numbers if each["source_id"] is None]
        resolved = [each["source_id"] for each in numbers if each["source_id"] is not None]
        title = f"no passage {', '.join(unresolved)}" if unresolved else ", ".join(resolved)
        shown = [source_id for source_id in resolved if source_id in self._texts]
        target = self.source_anchor(shown[0]) if shown else None
        status = "unresolved" if unresolved else "citation"
        anchor = self._anchor(begin)
        self.answer.append(Mark(begin, end, status, title, anchor, target, tuple(resolved)))

    def _mark_source(self, evidence: Finding, back: str | None) -> str | None:
        """Mark a quote in its source; return the id that leads there, or to the source as a whole."""
        source_id, quote = evidence["source_id"], evidence["quote"]
        if source_id not in self._texts:
            return None
        begin = self._place(source_id, self._texts[source_id], quote)
        if begin < 0:
            return self.source_anchor(source_id)
        end, marks = begin + len(quote), self.sources.setdefault(source_id, [])
        for mark in marks:
            if mark.begin < end and begin < mark.end:
                return mark.id
        anchor = f"{self.source_anchor(source_id)}-{begin}"
        marks.append(Mark(begin, end, "support", "supports the answer", anchor, back))
        marks.sort(key=lambda mark: mark.begin)
        return anchor

    def _anchor(self, begin: int) -> str:
        return f"{self._name}-a{begin}"

    def _place(self, text_id: str, text: str, quote: str, begin: int = 0) -> int:
        return place(text, quote, begin, must_be_whole=text_id in self._cut)

    def _sort(self) -> None:
        self.answer.sort(key=lambda mark: mark.begin)


def place(text: str, quote: str, begin: int = 0, *, must_be_whole: bool = False) -> int:
    """Return where a quote stands in a text, whole: not inside a longer word or number; -1.

    If it stands nowhere whole, inside of something longer will do, unless it `must_be_whole`.
    """
    found = text.find(quote, begin)
    while found >= 0:
        end = found + len(quote)
        before, after = text[found - 1 : found], text[end : end + 1]
        if not (_joins(quote[0], before, "_.") or _joins(quote[-1], after, "_°")):
            return found
        found = text.find(quote, found + 1)
    return -1 if must_be_whole else text.find(quote, begin)


def _brackets(citations: Iterable[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Group the numbers of each bracket: `[1,3]` is two findings with one quote."""
    left = iter(citations)
    for first in left:
        quote = first["quote"]
        yield quote, [first, *islice(left, quote.count(","))]


def _joins(edge: str, neighbour: str, marks: str) -> bool:
    # A bracket stands for itself wherever it is; a letter or digit may belong to what is next.
    return edge not in "[]" and bool(neighbour) and (neighbour.isalnum() or neighbour in marks)
