"""Work out the results that an evaluation still lacks, and store them.

Results of answers that need no judge are stored by the hundred. What comes of a judge's reply is
worked out from the reply as it was saved, so a killed process loses none of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from evaluators import assessing, custom, rundir
from evaluators.assessing import Finding
from evaluators.judges import Judge
from evaluators.judging import Answered, Asking, Stop, on_interrupt
from evaluators.material import Material
from evaluators.progress import Progress
from evaluators.spec import Criterion, EvaluationSpec
from evaluators.store import evaluations
from evaluators.store.database import Connection, transaction
from evaluators.store.evaluations import Case, Evaluation
from evaluators.summary import Groups

_BATCH = 500
"""Results that one transaction commits; a killed process works at most this many out again."""


class Means(NamedTuple):
    """What an evaluation is made with; without judged criteria `judge` is None."""

    spec: EvaluationSpec
    judge: Judge | None
    registered: Mapping[str, custom.Evaluator]
    concurrency: int

    @classmethod
    def of(
        cls,
        spec: EvaluationSpec,
        judge: Judge | None = None,
        evaluators: Iterable[custom.Evaluator] = (),
        concurrency: int = 1,
    ) -> "Means":
        """Take what a spec needs of what there is."""
        return cls(
            spec, judge if spec.is_judged else None, custom.registry(evaluators), concurrency
        )


WAITING = ("budget_blocked", "unknown_outcome")
"""Statuses that give way when a person raises the budget or settles the call; others are final."""


class _Subject(NamedTuple):
    criterion: Criterion
    material: Material


def add_pending(
    connection: Connection, evaluation: Evaluation, means: Means, progress: Progress
) -> Groups | None:
    """Store every result that can be had now; return all of the evaluation, if these are all.

    Raises KeyboardInterrupt after Ctrl-C, when the judge calls under way have finished, and
    EvaluationRefusedError when the judge's contract changes meanwhile.
    """
    results = _Results(connection, evaluation, progress)
    with on_interrupt() as stop:
        if means.judge is None:
            for criterion, material in results.pending(means.spec, stop):
                results.add(material.case, _unjudged(criterion, material, means))
        else:
            asking = Asking[_Subject](
                connection, means.judge, means.concurrency, results.write, stop
            )
            with asking:
                _add_judged(results, asking, means, stop)
        results.store()
    return results.all_counted


def _add_judged(results: "_Results", asking: Asking[_Subject], means: Means, stop: Stop) -> None:
    for subject in results.pending(means.spec, stop):
        criterion, material = subject
        finding = assessing.unavailable(criterion, material)
        if finding is None and criterion.is_judged:
            request = assessing.request(criterion, means.spec.sample, material)
            _conclude(results, asking.ask(subject, request))
        else:
            results.add(material.case, finding or _unjudged(criterion, material, means))
    _conclude(results, asking.finish())


def _unjudged(criterion: Criterion, material: Material, means: Means) -> Finding:
    return assessing.unavailable(criterion, material) or assessing.assess(
        criterion, material, means.registered
    )


def _conclude(results: "_Results", answered: Iterable[Answered[_Subject]]) -> None:
    for each in answered:
        criterion, material = each.waiting
        results.add(material.case, assessing.conclude(criterion, material, each))


class _Results:
    """Results on their way into the database."""

    def __init__(self, connection: Connection, evaluation: Evaluation, progress: Progress) -> None:
        self._connection = connection
        self._evaluation = evaluation
        self._final: list[tuple[int, dict[str, Any]]] = []
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._counted = Groups(evaluation.manifest)
        self._told = partial(progress, "Evaluating")
        self._total = evaluations.planned(connection, evaluation)
        left = evaluations.pending_count(connection, evaluation)
        self._told(self._total - left, self._total)

    def pending(self, spec: EvaluationSpec, stop: Stop) -> Iterator[_Subject]:
        """Yield every answer without a final result, until somebody wants to stop."""
        criteria = {criterion.id: criterion for criterion in spec.criteria}
        begin = 0
        while batch := evaluations.pending(self._connection, self._evaluation, begin, _BATCH):
            for case in batch:
                if stop.is_asked:
                    return
                criterion = criteria[case.input.criterion_id]
                yield _Subject(criterion, Material(self._connection, case))
            begin = batch[-1].number + 1

    def add(self, case: Case, finding: Finding) -> None:
        """Take a result; it is stored with others."""
        result = _content(case, finding)
        self._counted.add(case._replace(result=result))
        if finding.status not in WAITING:
            self._final.append((case.number, result))
        elif not _is_same(result, case.result):
            self._waiting.append((case.number, result))
        if len(self._final) + len(self._waiting) >= _BATCH:
            self.store()

    @property
    def all_counted(self) -> Groups | None:
        """What was added, counted: None unless that is the whole evaluation."""
        return self._counted if self._counted.whole.planned == self._total else None

    def store(self) -> None:
        """Store what was added, in a transaction of its own."""
        if self._final or self._waiting:
            with transaction(self._connection):
                self.write()

    def write(self) -> None:
        """Store what was added, in a transaction that is open."""
        evaluations.add_results(self._connection, self._evaluation, self._final)
        evaluations.put_waiting(self._connection, self._evaluation, self._waiting)
        self._told(len(self._final), self._total)
        self._final, self._waiting = [], []


def _content(case: Case, finding: Finding) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "input_key": case.input.key,
        "status": finding.status,
        "call_id": finding.call_id,
        "verdict": finding.verdict,
        "assessment": finding.assessment,
        "metrics": finding.samples,
        "reason": finding.reason,
        "recorded_at": rundir.now(),
    }


def _is_same(result: dict[str, Any], stored: dict[str, Any] | None) -> bool:
    return stored is not None and result == {**stored, "recorded_at": result["recorded_at"]}
