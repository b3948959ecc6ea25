"""Where the findings of a result stand in the texts, and what is wrong with them in words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from evaluators.prompts import ANSWER_ID
from evaluators.reports import judgments
from evaluators.summary import Json

_BAD = ("unmatched", "ambiguous")


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a text that a finding speaks of; `target` is the id of what it leads to."""

    begin: int
    end: int
    status: str
    title: str
    id: str
    target: str | None


class Marks:
    """All marks of one case, in its answer and in its sources."""

    def __init__(self, number: int, data: Json, result: Json) -> None:
        self._case = f"c{number}"
        self._texts = {passage["source_id"]: passage["text"] for passage in data["passages"] or ()}
        self._texts[data["question_source_id"]] = data["question"] or ""
        self.answer: list[Mark] = []
        self.sources: dict[str, list[Mark]] = {}
        assessment = result.get("assessment") or {}
        self._mark_quantities(data["answer"], assessment.get("quantities", ()))
        self._mark_citations(data["answer"], assessment.get("citations", ()))
        self._mark_claims(data["answer"], judgments.claims(result))
        self._mark_quotes(data["answer"], judgments.quotes(result))
        self.answer.sort(key=lambda mark: mark.begin)

    def source_anchor(self, source_id: str) -> str:
        """Id of a whole source."""
        return f"{self._case}-{source_id.replace(':', '-')}"

    def _mark_quantities(self, answer: str, quantities: Iterable[Json]) -> None:
        end = 0
        for quantity in quantities:
            begin = place(answer, quantity["quote"], end)
            if begin < 0:
                continue
            end = begin + len(quantity["quote"])
            anchor = f"{self._case}-a{begin}"
            target = self._mark_source(quantity["evidence"], anchor)
            title = quantity["status"]
            if quantity["evidence"]:
                title = f"{title}: {quantity['evidence']['source_id']}"
            self.answer.append(Mark(begin, end, quantity["status"], title, anchor, target))

    def _mark_source(self, evidence: Json | None, back: str | None) -> str | None:
        if evidence is None:
            return None
        source_id, quote = evidence["source_id"], evidence["quote"]
        begin = place(self._texts.get(source_id, ""), quote)
        if begin < 0:
            return None
        anchor = f"{self.source_anchor(source_id)}-{begin}"
        marks = self.sources.setdefault(source_id, [])
        if all(mark.id != anchor for mark in marks):
            end = begin + len(quote)
            marks.append(Mark(begin, end, "support", "supports the answer", anchor, back))
            marks.sort(key=lambda mark: mark.begin)
        return anchor

    def _mark_citations(self, answer: str, citations: Iterable[Json]) -> None:
        end = 0
        for quote, numbers in _brackets(citations):
            begin = place(answer, quote, end)
            if begin < 0:
                continue
            end = begin + len(quote)
            unresolved = [str(each["index"]) for each in numbers if each["source_id"] is None]
            resolved = [each["source_id"] for each in numbers if each["source_id"] is not None]
            title = f"no passage {', '.join(unresolved)}" if unresolved else ", ".join(resolved)
            target = self.source_anchor(resolved[0]) if resolved else None
            status = "unresolved" if unresolved else "citation"
            self.answer.append(Mark(begin, end, status, title, f"{self._case}-a{begin}", target))

    def _mark_claims(self, answer: str, claims: Iterable[Json]) -> None:
        for claim in claims:
            begin = answer.find(claim["text"])
            anchor = f"{self._case}-a{begin}"
            targets = [self._mark_source(quote, anchor) for quote in claim["evidence"]]
            shown = [quote["source_id"] for quote in claim["evidence"]]
            title = ": ".join([claim["status"], *filter(None, [", ".join(shown)])])
            target = next(filter(None, targets), None)
            end = begin + len(claim["text"])
            self.answer.append(Mark(begin, end, claim["status"], title, anchor, target))

    def _mark_quotes(self, answer: str, quotes: Iterable[Json]) -> None:
        for quote in quotes:
            if quote["source_id"] != ANSWER_ID:
                self._mark_source(quote, None)
                continue
            begin = answer.find(quote["quote"])
            end = begin + len(quote["quote"])
            anchor = f"{self._case}-a{begin}"
            self.answer.append(Mark(begin, end, "support", "quoted by the judge", anchor, None))


def _brackets(citations: Iterable[Json]) -> Iterator[tuple[str, list[Json]]]:
    """Group the numbers of each bracket: `[1,3]` is two findings with one quote."""
    left = iter(citations)
    for first in left:
        quote = first["quote"]
        yield quote, [first, *islice(left, quote.count(","))]


def complaints(result: Json) -> Iterator[str]:
    """Yield a line for every finding that keeps an answer from being met."""
    yield from judgments.complaints(result)
    assessment = result.get("assessment") or {}
    for quantity in assessment.get("quantities", ()):
        if quantity["status"] in _BAD:
            yield f"{quantity['status']} quantity: {quantity['quote']}"
    for citation in assessment.get("citations", ()):
        if citation["source_id"] is None:
            yield f"unresolved citation: {citation['index']} in {citation['quote']}"


def place(text: str, quote: str, begin: int = 0) -> int:
    """Return where a quote stands in a text, whole: not inside a longer word or number; -1."""
    found = text.find(quote, begin)
    while found >= 0:
        end = found + len(quote)
        before, after = text[found - 1 : found], text[end : end + 1]
        if not (_joins(quote[0], before, "_.") or _joins(quote[-1], after, "_°")):
            return found
        found = text.find(quote, found + 1)
    return text.find(quote, begin)


def _joins(edge: str, neighbour: str, marks: str) -> bool:
    # A bracket stands for itself wherever it is; a letter or digit may belong to what is next.
    return edge not in "[]" and bool(neighbour) and (neighbour.isalnum() or neighbour in marks)
