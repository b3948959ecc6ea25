"""grounding: trace every quantity and every numeric citation of an answer to its evidence.

A proxy: a matching number can speak of another thing, and a resolved citation of a passage that does
not help. Nothing is inferred: `5-10 minutes` supports neither 7 minutes nor 10 minutes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from evaluators import citations, quantities
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
            "evidence": self.evidence and self.evidence._asdict(),
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


Support: TypeAlias = Mapping[Value, tuple[str, str]]
"""Where each exact value stands first, in the question or else in the passages in their order: the
source's id and its wording."""


@dataclass(frozen=True)
class Assessment:
    """What grounding found in one answer."""

    quantities: tuple[QuantityFinding, ...]
    citations: tuple[CitationFinding, ...]

    @cached_property
    def _statuses(self) -> Counter[Status]:
        return Counter([finding.status for finding in self.quantities])

    @cached_property
    def _resolved(self) -> int:
        return sum([finding.source_id is not None for finding in self.citations])

    @property
    def outcome(self) -> Outcome:
        """The first that applies of durable-evaluations.md, 5.6, rows 1 to 4."""
        if self._statuses["unmatched"] or self._resolved < len(self.citations):
            return "violated"
        if self._statuses["ambiguous"]:
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
        found, count = len(self.quantities), self._statuses
        return {
            "grounding.quantity_traceability": _sample(count["source"] + count["question"], found),
            "grounding.citation_resolution": _sample(self._resolved, len(self.citations)),
            "grounding.question_quantities": _sample(count["question"], 1),
            "grounding.ambiguous_quantities": _sample(count["ambiguous"], 1),
        }


def assess(answer: str, bundle: Bundle, support: Support | None = None) -> Assessment:
    """Trace the quantities and citations of an answer.

    Args:
        answer: Any text.
        bundle: Its evidence.
        support: `parse_sources(bundle)`, if it is at hand; read from the bundle otherwise.
    """
    found = quantities.read(answer)
    if support is None:
        needed = any(quantity.value for quantity in found)
        support = parse_sources(bundle) if needed else {}
    return Assessment(
        tuple([_traced(quantity, bundle, support) for quantity in found]),
        tuple(_cited(answer, bundle.passages)),
    )


def parse_sources(bundle: Bundle) -> Support:
    """Look up each exact value of the evidence; ambiguous ones support nothing."""
    support: dict[Value, tuple[str, str]] = {}
    for source_id, text, _ in bundle:
        read = _remembered if len(text) <= CACHED_CHARS else _exact_quantities
        for value, quote in read(text):
            support.setdefault(value, (source_id, quote))
    return support


def _exact_quantities(text: str) -> tuple[tuple[Value, str], ...]:
    return tuple([(value, quote) for quote, value in quantities.read(text) if value])


_remembered = lru_cache(maxsize=CACHED_TEXTS)(_exact_quantities)


def _traced(quantity: Quantity, bundle: Bundle, support: Support) -> QuantityFinding:
    quote, value = quantity
    if value is None:
        return QuantityFinding(quote, None, "ambiguous")
    place = support.get(value)
    if place is None:
        return QuantityFinding(quote, quantities.normalized(value), "unmatched")
    is_question = place[0] == bundle.question.source_id
    status: Status = "question" if is_question else "source"
    return QuantityFinding(quote, quantities.normalized(value), status, Evidence(*place))


def _cited(answer: str, passages: Sequence[Source]) -> Iterator[CitationFinding]:
    for quote, number in citations.read(answer):
        exists = number is not None and 1 <= number <= len(passages)
        source_id = f"passage:{number}" if exists else None
        yield CitationFinding(quote, number, source_id)


def _sample(numerator: int, denominator: int) -> Sample:
    return {"numerator": numerator, "denominator": denominator}
