"""Can an evaluator be trusted? Its results beside what people decided about the same evidence."""

from collections import Counter
from dataclasses import dataclass

from evaluators.errors import SpecError
from evaluators.review import OUTCOMES, adjudications, tasks
from evaluators.store.evaluations import Case
from evaluators.summary import Json, View


@dataclass(frozen=True, slots=True)
class Limits:
    """What is asked of an evaluator.

    Args:
        min_agreement: share of the compared answers on which both sides say the same.
        max_false_passes: answers that people found violated and the evaluator did not.
        min_coverage: share of the adjudicated answers to which the evaluator gave an outcome.

    Raises SpecError for a share that is not from 0 to 1.
    """

    min_agreement: float = 1.0
    max_false_passes: int = 0
    min_coverage: float = 1.0

    def __post_init__(self) -> None:
        for share in (self.min_agreement, self.min_coverage):
            if not 0 <= share <= 1:  # not a number is neither
                raise SpecError(f"a share must be from 0 to 1, not {share}")


def qualify(view: View, limits: Limits = Limits()) -> Json:
    """Compare an evaluation with the human adjudications in force.

    Adjudications of the same criteria about other evidence (the criterion was changed, or the
    answer is not in this evaluation) are stale: they are counted, and nothing is concluded from
    them. Opinions, and what models or generators said, are only counted.
    """
    human, others = adjudications(view.connection)
    wanted = {review["evidence_digest"]: review for review in human}
    pairs = [
        (case, wanted.pop(task["evidence_digest"]))
        for case, task in tasks(view)
        if task["evidence_digest"] in wanted
    ]
    criteria = {criterion["id"] for criterion in view.manifest["spec"]["criteria"]}
    stale = [each for each in wanted.values() if each["criterion_id"] in criteria]
    report = {
        "schema_version": 1,
        "run_id": view.run["id"],
        "evaluation_id": view.evaluation.id,
        "decision": "",
        **_agreement(pairs),
        "stale_references": [_reference(review) for review in stale],
        "other_reviews": others,
    }
    report["decision"] = _decision(report, limits)
    return report


def _agreement(pairs: list[tuple[Case, Json]]) -> Json:
    matrix: Counter[tuple[str, str]] = Counter()
    lists: dict[str, list[Json]] = {"false_passes": [], "false_failures": []}
    for case, review in pairs:
        human, machine = review["annotation"]["outcome"], _status(case)
        matrix[human, machine] += 1
        if machine in OUTCOMES and "violated" in {human, machine} and human != machine:
            name = "false_passes" if human == "violated" else "false_failures"
            lists[name].append(_reference(review))
    compared = sum(count for (_, machine), count in matrix.items() if machine in OUTCOMES)
    agreed = sum(count for (human, machine), count in matrix.items() if human == machine)
    return {
        "adjudicated": len(pairs),
        "compared": compared,
        "agreed": agreed,
        "agreement": agreed / compared if compared else None,
        "coverage": compared / len(pairs) if pairs else None,
        **lists,
        "outcomes": [
            {"human": human, "machine": machine, "answers": count}
            for (human, machine), count in sorted(matrix.items())
        ],
    }


def _decision(report: Json, limits: Limits) -> str:
    if report["compared"] and (
        report["agreement"] < limits.min_agreement
        or len(report["false_passes"]) > limits.max_false_passes
    ):
        return "fail"
    if not report["compared"] or report["stale_references"]:
        return "inconclusive"
    return "pass" if report["coverage"] >= limits.min_coverage else "inconclusive"


def _status(case: Case) -> str:
    return "pending" if case.result is None else str(case.result["status"])


def _reference(review: Json) -> Json:
    names = ("case_id", "criterion_id", "input_key")
    return {"review_id": review["annotation"]["id"], **{name: review[name] for name in names}}


def lines(report: Json) -> list[str]:
    """Return the report as lines of text."""
    return [
        f"Decision: {report['decision']}",
        f"Adjudicated by people: {report['adjudicated']}; compared: {report['compared']}",
        f"Agreement: {_share(report['agreement'])}; coverage: {_share(report['coverage'])}",
        *_listed("False passes", report["false_passes"]),
        *_listed("False failures", report["false_failures"]),
        *_listed("Stale references", report["stale_references"]),
        f"Other reviews in force: {report['other_reviews']}",
    ]


def _share(value: float | None) -> str:
    return "nothing to measure" if value is None else f"{value:.3f}"


def _listed(title: str, references: list[Json]) -> list[str]:
    named = [f"  {each['case_id']} ({each['criterion_id']})" for each in references]
    return [f"{title}: {len(references)}", *named]
