"""The nine measures and how answers add up to them (durable-evaluations.md, section 11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

Aggregation: TypeAlias = Literal["ratio", "mean", "count"]
Direction: TypeAlias = Literal["higher", "lower", "neutral"]
Entry: TypeAlias = dict[str, str | float | int | None]


class Sample(TypedDict):
    """What one answer adds to one metric."""

    numerator: float
    denominator: int


def sample(numerator: int, denominator: int) -> Sample:
    """Make a sample of two counts; true and false count as one and none."""
    return {"numerator": int(numerator), "denominator": int(denominator)}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What a metric means; an evaluation freezes it together with its results.

    Attributes:
        id: `<evaluator>.<measure>`.
        direction: Which way is better.
    """

    id: str
    description: str
    aggregation: Aggregation
    unit: str
    direction: Direction
    revision: str = "v1"
    schema_version: int = 1

    @property
    def evaluator(self) -> str:
        """The evaluator whose results carry the metric."""
        return self.id.partition(".")[0]

    def entry(self, numerator: float, denominator: int) -> Entry:
        """Write the metric's line of a report; without a denominator the value is None."""
        return {
            "schema_version": self.schema_version,
            "id": self.id,
            "revision": self.revision,
            "description": self.description,
            "aggregation": self.aggregation,
            "unit": self.unit,
            "direction": self.direction,
            "value": self._value(numerator, denominator),
            "numerator": float(numerator),
            "denominator": denominator,
        }

    def _value(self, numerator: float, denominator: int) -> float | None:
        if not denominator:
            return None
        return float(numerator) if self.aggregation == "count" else numerator / denominator


_ALL = (
    Descriptor(
        "grounding.quantity_traceability",
        "Quantities found in the question or a passage, of all recognised quantities,"
        " the ambiguous ones included.",
        "ratio",
        "fraction",
        "higher",
    ),
    Descriptor(
        "grounding.citation_resolution",
        "Numbers in citations that name a passage, of all numbers in citations.",
        "ratio",
        "fraction",
        "higher",
    ),
    Descriptor(
        "grounding.question_quantities",
        "Quantities that the question supplied; the denominator counts assessed answers.",
        "count",
        "quantities",
        "neutral",
    ),
    Descriptor(
        "grounding.ambiguous_quantities",
        "Quantities that need interpretation; the denominator counts assessed answers.",
        "count",
        "quantities",
        "lower",
    ),
    Descriptor(
        "faithfulness.claim_support",
        "Supported claims, of all claims of all answers.",
        "ratio",
        "fraction",
        "higher",
    ),
    Descriptor(
        "faithfulness.correctness",
        "Mean correctness of the assessed answers to which the criterion applies.",
        "mean",
        "score_0_10",
        "higher",
    ),
    Descriptor(
        "faithfulness.answers_question",
        "Answers that answer the question, of the assessed answers to which the criterion applies.",
        "ratio",
        "fraction",
        "higher",
    ),
    Descriptor(
        "faithfulness.dangerous_answers",
        "Answers flagged as dangerous; the denominator counts valid assessments.",
        "count",
        "answers",
        "lower",
    ),
    Descriptor(
        "faithfulness.appropriate_abstentions",
        "Appropriate abstentions, of all abstentions.",
        "ratio",
        "fraction",
        "higher",
    ),
)

DESCRIPTORS: Mapping[str, Descriptor] = {descriptor.id: descriptor for descriptor in _ALL}
"""Every metric by its id, in the order of reports."""


def of_evaluators(evaluators: Iterable[str]) -> tuple[Descriptor, ...]:
    """Return the metrics that a group of these evaluators' results shows."""
    wanted = set(evaluators)
    return tuple(descriptor for descriptor in _ALL if descriptor.evaluator in wanted)


class Totals:
    """Sums of samples, for a group of any size."""

    def __init__(self, descriptors: Iterable[Descriptor]) -> None:
        self._descriptors = tuple(descriptors)
        self._sums: dict[str, tuple[float, int]] = {
            descriptor.id: (0, 0) for descriptor in self._descriptors
        }

    def add(self, samples: Mapping[str, Sample]) -> None:
        """Add an answer's saved samples; those of other metrics are another group's."""
        for name, sample in samples.items():
            if name in self._sums:
                numerator, denominator = self._sums[name]
                self._sums[name] = (
                    numerator + sample["numerator"],
                    denominator + sample["denominator"],
                )

    def entries(self) -> dict[str, Entry]:
        """Return the report's line of each metric, by its id."""
        return {
            descriptor.id: descriptor.entry(*self._sums[descriptor.id])
            for descriptor in self._descriptors
        }


def aggregate(
    samples: Iterable[Mapping[str, Sample]], descriptors: Iterable[Descriptor]
) -> dict[str, Entry]:
    """Add up the samples of many answers."""
    totals = Totals(descriptors)
    for sample in samples:
        totals.add(sample)
    return totals.entries()
