"""How far an evaluator agrees with others on the same answers, and when it is offered as over-strict.

The others are judges: grounding and faithfulness (`met` says that an answer is right, `violated` that it is wrong), and
people (`correct`, `wrong`; `evaluator_wrong` says the opposite of the evaluator's own verdict). People's word is kept
apart: grounding is a proxy, and an evaluator of style may be right to fail what every passage supports.

The rule. A pair is offered as over-strict if of its failing answers

- people have looked at least at MIN_LABELS, and found at least MIN_CORRECT of them right, and
- grounding has judged at least MIN_JUDGED, and found at least MIN_SUPPORTED of them right.

Below either minimum the page says how many there are. Nothing is ever marked without a person.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mesedi_server.store.agreement import Agreement

MIN_LABELS = 5
"""Failing answers that people must have labelled."""
MIN_CORRECT = Fraction(3, 4)
"""Of these, how many people must find right."""
MIN_JUDGED = 20
"""Failing answers that grounding must have judged `met` or `violated`."""
MIN_SUPPORTED = Fraction(1, 2)
"""Of these, how many must be `met`."""

OWN_EVALUATORS = {"grounding": "mesedi/grounding", "faithfulness": "mesedi/faithfulness"}
"""Judges whose outcomes also come as scores: their own pairs are not compared with themselves."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How an evaluator and metric compare with the judges that know the same answers."""

    judges: Mapping[str, Agreement]
    """By `grounding`, `faithfulness` and `people`; those without a common answer are left out."""

    @property
    def people(self) -> Agreement:
        """What people say."""
        return self.judges.get("people", Agreement())

    @property
    def grounding(self) -> Agreement:
        """What grounding says."""
        return self.judges.get("grounding", Agreement())

    @property
    def is_too_early(self) -> bool:
        """Say whether too few failing answers were labelled or judged to call the evaluator over-strict."""
        return self.people.failing < MIN_LABELS or self.grounding.failing < MIN_JUDGED

    @property
    def is_over_strict(self) -> bool:
        """Apply the rule."""
        return (
            not self.is_too_early
            and self.people.only_evaluator_fails >= MIN_CORRECT * self.people.failing
            and self.grounding.only_evaluator_fails >= MIN_SUPPORTED * self.grounding.failing
        )


def of_pair(evaluator_id: str, judges: Mapping[str, Agreement]) -> Quality:
    """Compare an evaluator with the judges, but none of ours with itself."""
    others = {
        judge: agreement
        for judge, agreement in judges.items()
        if agreement.answers and OWN_EVALUATORS.get(judge) != evaluator_id
    }
    return Quality(others)
