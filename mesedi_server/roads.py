"""Which of the playbook's three roads a group's answers point to: the retrieval, the prompt, or the evaluator.

The rule. Each failing answer that grounding has assessed points to one road at most:

- **retrieval**: the answer had nothing to lean on. It has no readable evidence, or no passage at all, or it names at
  least two exact quantities and neither one of them nor a citation leads to a passage: they speak of something else.
- **prompt**: the passages were there, and the answer says what they do not: a quantity is unmatched, or a citation
  unresolved.
- **evaluator**: the passages hold everything that can be traced, every quantity and every citation, and the
  evaluator failed the answer all the same.

Answers with nothing to trace, with an ambiguous quantity at most, or that could not be assessed point nowhere, but they
count in the whole. The road that most answers point to is suggested if there are at least MIN_ANSWERS answers and at
least MIN_SHARE of them point to it. Of roads that are level the one named first above goes first: a better prompt only
hides passages that are missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from mesedi_server.store.assessments import GroupCounts

Road: TypeAlias = Literal["retrieval", "prompt", "evaluator"]

MIN_ANSWERS = 20
"""Assessed answers below which nothing is suggested: as many as make a group more than a discovery."""
MIN_SHARE = Fraction(1, 3)
"""Of the assessed answers, how many must point to a road."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Where a group's answers point."""

    answers: int
    """Assessed answers, the whole."""
    pointing: Mapping[Road, int]
    """How many answers point to each road."""
    likeliest: Road | None
    """None: too few answers, or no road stands out."""

    @property
    def is_too_early(self) -> bool:
        """Say whether there are too few answers to suggest anything."""
        return self.answers < MIN_ANSWERS


def suggest(counts: GroupCounts) -> Suggestion:
    """Apply the rule to what grounding found in a group's answers."""
    pointing: dict[Road, int] = {
        "retrieval": counts.missing_evidence + counts.without_passages + counts.untraced,
        "prompt": counts.violated - counts.violated_without_passages - counts.untraced,
        "evaluator": counts.met - counts.met_without_passages,
    }
    return Suggestion(counts.answers, pointing, _likeliest(counts.answers, pointing))


def _likeliest(answers: int, pointing: Mapping[Road, int]) -> Road | None:
    # Of equals `max` takes the first.
    road = max(pointing, key=lambda each: pointing[each])
    if answers < MIN_ANSWERS or pointing[road] < MIN_SHARE * answers:
        return None
    return road
