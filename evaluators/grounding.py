"""grounding: trace every quantity and every numeric citation of an answer to its evidence.

A proxy: a matching number can speak of another thing, and a resolved citation of a passage that does
not help. Nothing is inferred: `5-10 minutes` supports neither 7 minutes nor 10 minutes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from evaluators import citations, metrics, quantities
from evaluators.evidence import Bundle, Source
from evaluators.metrics import Sample
from evaluators.quantities import Quantity, Value

Status: TypeAlias = Literal["source", "question", "unmatched", "ambiguous"]
Outcome: TypeAlias = Literal["met", "violated", "needs_review", "not_applicable"]

CACHED_TEXTS = 512
"""Sources whose quantities are remembered: the same passages come back for many answers."""
CACHED_CHARS = 20_000
"""A longer source is read each time: 512 of them could fill the memory."""


class Evidence(NamedTuple):
    """Where a value was found, in the source's own words."""

    source_id: str
    quote: str

    def content(self) -> dict[str, object]:
        """The place as a JSON value."""
        return {"source_id": self.source_id, "quote": self.quote}


class QuantityFinding(NamedTuple):
    """One quantity of an answer (durable-evaluations.md, 5.4).

    Attributes:
        quote: An exact piece of the answer.
        normalized: For example `temperature:eq:5863/20`; None when ambiguous, or too long to show.
        evidence: Only for status `source` and `question`.
    """

    quote: str
    normalized: str | None
    status: Status
    evidence: Evidence | None = None

    def content(self) -> dict[str, object]:
        """The finding as a JSON value."""
        return {
            "quote": self.quote,
            "normalized": self.normalized,
            "status": self.status,
            "evidence": self.evidence and self.evidence.content(),
        }


class CitationFinding(NamedTuple):
    """One number of a citation.

    Attributes:
        quote: The whole bracket, an exact piece of the answer.
        number: The passage's number, from 1; None when it is too long to be one.
        source_id: None when no passage has that number.
    """

    quote: str
    number: int | None
    source_id: str | None

    def content(self) -> dict[str, object]:
        """The finding as a JSON value."""
        return {"quote": self.quote, "index": self.number, "source_id": self.source_id}


@dataclass(frozen=True)
class Assessment:
    """What grounding found in one answer."""

    quantities: tuple[QuantityFinding, ...]
    citations: tuple[CitationFinding, ...]

    @cached_property
    def _statuses(self) -> list[Status]:
        return [finding.status for finding in self.quantities]

    @cached_property
    def _resolved(self) -> int:
        return sum([finding.source_id is not None for finding in self.citations])

    @property
    def outcome(self) -> Outcome:
        """The first that applies of durable-evaluations.md, 5.6, rows 1 to 4."""
        if "unmatched" in self._statuses or self._resolved < len(self.citations):
            return "violated"
        if "ambiguous" in self._statuses:
            return "needs_review"
        return "met" if self.quantities or self.citations else "not_applicable"

    def content(self) -> dict[str, list[dict[str, object]]]:
        """The findings as JSON values."""
        return {
            "quantities": [finding.content() for finding in self.quantities],
            "citations": [finding.content() for finding in self.citations],
        }

    def samples(self) -> dict[str, Sample]:
        """What this answer adds to each grounding metric (durable-evaluations.md, section 11)."""
        count = self._statuses.count
        traced = count("source") + count("question")
        return {
            "grounding.quantity_traceability": metrics.sample(traced, len(self.quantities)),
            "grounding.citation_resolution": metrics.sample(self._resolved, len(self.citations)),
            "grounding.question_quantities": metrics.sample(count("question"), 1),
            "grounding.ambiguous_quantities": metrics.sample(count("ambiguous"), 1),
        }


def assess(answer: str, bundle: Bundle) -> Assessment:
    """Trace the quantities and citations of an answer, which can be any text, to its evidence."""
    found = quantities.read(answer)
    support = _support({value for _, value in found if value}, bundle)
    return Assessment(
        tuple([_traced(quantity, bundle, support) for quantity in found]),
        tuple(_cited(answer, bundle.passages)),
    )


def _support(wanted: set[Value], bundle: Bundle) -> Mapping[Value, Evidence]:
    """Look up where each value stands first, in the question or else in the passages in order.

    Ambiguous quantities support nothing. Sources behind the last value found are not read.
    """
    support: dict[Value, Evidence] = {}
    for source_id, text, _ in bundle:
        if len(support) == len(wanted):
            break
        read = _remembered if len(text) <= CACHED_CHARS else _exact_quantities
        for value, quote in read(text):
            if value in wanted and value not in support:
                support[value] = Evidence(source_id, quote)
    return support


def _exact_quantities(text: str) -> tuple[tuple[Value, str], ...]:
    return tuple([(value, quote) for quote, value in quantities.read(text) if value])


_remembered = lru_cache(maxsize=CACHED_TEXTS)(_exact_quantities)


def _traced(
    quantity: Quantity, bundle: Bundle, support: Mapping[Value, Evidence]
) -> QuantityFinding:
    quote, value = quantity
    if value is None:
        return QuantityFinding(quote, None, "ambiguous")
    place = support.get(value)
    if place is None:
        return QuantityFinding(quote, quantities.normalized(value), "unmatched")
    is_question = place.source_id == bundle.question.source_id
    status: Status = "question" if is_question else "source"
    return QuantityFinding(quote, quantities.normalized(value), status, place)


def _cited(answer: str, passages: Sequence[Source]) -> Iterator[CitationFinding]:
    for quote, number in citations.read(answer):
        exists = number is not None and 1 <= number <= len(passages)
        source_id = f"passage:{number}" if exists else None
        yield CitationFinding(quote, number, source_id)
