"""What an evaluation says: counts, coverage, decision and metrics, in all and by group.

Sections 10 to 12. The objects of a report are rebuilt from what is stored once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluators import metrics
from evaluators.errors import RunError
from evaluators.spec import Criterion
from evaluators.store import attempts, calls, checks, evaluations, plan
from evaluators.store.database import Connection, opened
from evaluators.store.evaluations import Case, Evaluation

Json = dict[str, Any]

STATUSES = (
    "met",
    "violated",
    "not_applicable",
    "missing_capture",
    "missing_evidence",
    "invalid",
    "budget_blocked",
    "unknown_outcome",
    "needs_review",
    "pending",
)
GROUPINGS = ("criteria", "streams", "tags", "personas")


@dataclass(frozen=True)
class View:
    """One evaluation of a run, open for reading."""

    connection: Connection
    run: Json
    evaluation: Evaluation

    @property
    def manifest(self) -> Json:
        """The evaluation's manifest."""
        return self.evaluation.manifest

    @property
    def evaluations(self) -> int:
        """How many evaluations the run has, this one included."""
        return evaluations.total(self.connection)

    @cached_property
    def criteria(self) -> dict[str, Criterion]:
        """The criteria of the spec by their ids."""
        return {each["id"]: Criterion(**each) for each in self.manifest["spec"]["criteria"]}

    def cases(self, *, texts: bool = True) -> Iterator[Case]:
        """Yield every case in order."""
        return evaluations.cases(self.connection, self.evaluation, texts=texts)


@contextmanager
def viewed(
    directory: Path, evaluation_id: str | None = None, *, verify: bool = True
) -> Iterator[View]:
    """Open an evaluation for reading.

    First everything captured is checked against its digests, unless the caller has just done so.
    """
    with opened(directory) as connection:
        run = checks.verify(connection) if verify else plan.manifest(connection)
        yield View(connection, run, chosen(connection, directory, evaluation_id))


def chosen(connection: Connection, directory: Path, evaluation_id: str | None) -> Evaluation:
    """Find an evaluation, the latest by default. Raises RunError."""
    found = None
    if evaluations.exist(connection):
        if evaluation_id is None:
            found = evaluations.latest(connection)
        else:
            found = evaluations.of_id(connection, evaluation_id)
    if found is None:
        missing = "no evaluation" if evaluation_id is None else f"no evaluation {evaluation_id}"
        raise RunError(f"{directory} has {missing}")
    return found


def summarize(view: View, counted: "Groups | None" = None) -> Json:
    """Add up an evaluation; `counted` are its cases, if somebody has counted all of them."""
    manifest = view.manifest
    groups = counted or _counted(view)
    return {
        "schema_version": 1,
        "evaluation_id": view.evaluation.id,
        "run_id": manifest["run_id"],
        "spec": manifest["spec"],
        "judge": manifest["judge"],
        **groups.whole.to_json(),
        "budget": _budget(view),
        **groups.by_kind(),
    }


def _counted(view: View) -> "Groups":
    groups = Groups(view.manifest)
    for case in view.cases(texts=False):
        groups.add(case)
    return groups


def is_draft(summary: Json) -> bool:
    """Say whether the spec of a summary is a draft, which cannot pass."""
    return bool(summary["spec"].get("qualification", "draft") == "draft")


class _Group:
    """Answers that are counted together, with the metrics of their own evaluators."""

    def __init__(self, *, draft: bool) -> None:
        self._draft = draft
        self._counts: Counter[str] = Counter()
        self._totals: dict[str, metrics.Totals] = {}

    def measure(self, evaluator: str, descriptors: Iterable[metrics.Descriptor]) -> None:
        """Show an evaluator's metrics, even where no answer adds to them."""
        if evaluator not in self._totals:
            self._totals[evaluator] = metrics.Totals(descriptors)

    def add(self, evaluator: str, status: str, samples: Json) -> None:
        self._counts[status] += 1
        if samples:
            self._totals[evaluator].add(samples)

    @property
    def planned(self) -> int:
        """All answers, whatever became of them."""
        return self._counts.total()

    def to_json(self) -> Json:
        counts = {status: self._counts[status] for status in STATUSES if self._counts[status]}
        planned = self.planned
        judged = self._counts["met"] + self._counts["violated"]
        applicable = planned - self._counts["not_applicable"]
        return {
            "planned": planned,
            "counts": counts,
            "judged": judged,
            "applicable": applicable,
            "unavailable": applicable - judged,
            "coverage": judged / applicable if applicable else None,
            "met_rate": self._counts["met"] / judged if judged else None,
            "decision": self._decision(judged, applicable - judged),
            "metrics": {
                name: entry
                for totals in self._totals.values()
                for name, entry in totals.entries().items()
            },
        }

    def _decision(self, judged: int, unavailable: int) -> str:
        if self._counts["violated"]:
            return "fail"
        passes = judged > 0 and unavailable == 0 and not self._draft
        return "pass" if passes else "inconclusive"


class Groups:
    """All groups of one evaluation."""

    def __init__(self, manifest: Json) -> None:
        spec = manifest["spec"]
        self._evaluators = {c["id"]: c.get("evaluator", "rubric") for c in spec["criteria"]}
        self._descriptors = _descriptors(manifest, self._evaluators.values())
        self._draft = spec.get("qualification", "draft") == "draft"
        self._groups: dict[tuple[str, str], _Group] = {}
        self.whole = _Group(draft=self._draft)
        for criterion, evaluator in self._evaluators.items():
            self.whole.measure(evaluator, self._descriptors[evaluator])
            self._group("criteria", criterion, evaluator)
            for stream in spec.get("streams", ["primary"]):
                self._group("streams", stream, evaluator)

    def add(self, case: Case) -> None:
        """Count a case in every group it belongs to."""
        evaluator = self._evaluators[case.input.criterion_id]
        status = "pending" if case.result is None else case.result["status"]
        samples = {} if case.result is None else case.result.get("metrics", {})
        self.whole.add(evaluator, status, samples)
        for kind, name in _memberships(case):
            self._group(kind, name, evaluator).add(evaluator, status, samples)

    def by_kind(self) -> Json:
        """Return the groups of each kind by their names."""
        found: dict[str, Json] = {kind: {} for kind in GROUPINGS}
        for (kind, name), group in self._groups.items():
            found[kind][name] = group.to_json()
        return found

    def _group(self, kind: str, name: str, evaluator: str) -> _Group:
        group = self._groups.get((kind, name))
        if group is None:
            group = self._groups[kind, name] = _Group(draft=self._draft)
        group.measure(evaluator, self._descriptors[evaluator])
        return group


def _memberships(case: Case) -> Iterator[tuple[str, str]]:
    yield "criteria", case.input.criterion_id
    yield "streams", case.input.stream
    for tag in case.tags:
        yield "tags", tag
    if case.persona_id is not None:
        yield "personas", case.persona_id


def _descriptors(manifest: Json, used: Iterable[str]) -> dict[str, tuple[metrics.Descriptor, ...]]:
    """Return the metrics as they were frozen; older evaluations froze none."""
    frozen = {
        evaluator["id"]: tuple(metrics.Descriptor(**each) for each in evaluator["metrics"])
        for evaluator in manifest.get("evaluators", [])
    }
    return {name: frozen.get(name) or metrics.of_evaluators([name]) for name in used}


def _budget(view: View) -> Json:
    limits = calls.budget(view.connection)
    return {
        "scope": "durable_evaluations",
        "limits": None if limits is None else asdict(limits),
        "changes": calls.budget_changes(view.connection),
        **asdict(calls.spending(view.connection)),
        "target": {
            "scope": "capture_run",
            "max_calls": attempts.most_calls(view.connection, view.run),
            "reserved_calls": attempts.attempt_count(view.connection),
            "actual_cost_micros": None,
        },
    }
