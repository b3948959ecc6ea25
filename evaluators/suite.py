"""A suite: one YAML file that says what is captured, evaluated, compared, gated and kept.

Its fields are frozen with the run, files that it names included, so that a run can be resumed by
the same suite only. Paths are relative to the YAML file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluators import gates, loading, strict
from evaluators import spec as specs
from evaluators.canonical import digest
from evaluators.capture import capture
from evaluators.checking import checked
from evaluators.custom import Evaluator
from evaluators.errors import CaptureFailedError, ResumeRefusedError, RunError, SpecError
from evaluators.evaluation import evaluate_saved
from evaluators.gates import Policy
from evaluators.judges import LARGEST_COST_MICROS, Judge
from evaluators.ledger import Budget
from evaluators.progress import Progress, quiet
from evaluators.reports.files import ARTIFACTS, write_forms
from evaluators.resuming import resume
from evaluators.spec import EvaluationSpec
from evaluators.store import checks, state
from evaluators.store.database import opened
from evaluators.summary import Json, View, viewed
from evaluators.targets import Target

_REQUIRED = ("id", "revision", "dataset", "evaluation")
_PATHS = ("dataset", "persona", "baseline")
_TEXTS = ("target_factory", "judge_factory", "baseline_evaluation_id")
_OPTIONAL = (
    "schema_version",
    "persona",
    "target_factory",
    "max_target_calls",
    "judge_factory",
    "judge_budget",
    "evaluator_factories",
    "policy",
    "baseline",
    "baseline_evaluation_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What a suite's file says, checked.

    `snapshot` is all of it with every default, as it is frozen; `folder` is where its paths and
    modules are looked for.
    """

    folder: Path
    snapshot: Json
    dataset: Path
    spec: EvaluationSpec
    persona: Path | None
    policy: Policy | None
    baseline: Path | None
    budget: Budget | None

    @property
    def max_target_calls(self) -> int | None:
        """Requests that the whole run may send to its target."""
        found: int | None = self.snapshot["max_target_calls"]
        return found

    @property
    def baseline_evaluation_id(self) -> str | None:
        """Which of the baseline's evaluations is compared; None for the latest."""
        found: str | None = self.snapshot["baseline_evaluation_id"]
        return found

    def targets(self) -> dict[str, Target]:
        """Load what answers; nothing for recorded answers. Raises FactoryError."""
        name = self.snapshot["target_factory"]
        return {} if name is None else {"primary": loading.target(name, self.folder)}

    def judge(self) -> Judge | None:
        """Load what judges; nothing without a judged criterion. Raises FactoryError."""
        return loading.judge(self.snapshot["judge_factory"], self.spec, self.folder)

    def evaluators(self) -> list[Evaluator]:
        """Load the registered evaluators that criteria name. Raises FactoryError."""
        names = self.snapshot["evaluator_factories"] or ()
        return loading.evaluators(names, self.spec, self.folder)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a suite led to. `capture_error` says why the capture is not whole, else None."""

    run_dir: str
    evaluation_id: str
    decision: str
    capture_error: str | None
    artifacts: list[str]
    release: Json


# The file


def load(path: Path) -> Suite:
    """Read a suite and the files of settings that it names. Raises SpecError."""
    try:
        return _suite(strict.read_yaml(path), path.parent)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def _suite(value: object, folder: Path) -> Suite:
    fields = strict.record(value, "suite", _REQUIRED, _OPTIONAL)
    _check(fields)
    spec = specs.from_json(_settings(fields["evaluation"], folder, "evaluation"))
    policy = None
    if "policy" in fields:
        policy = gates.from_json(_settings(fields["policy"], folder, "policy"))
    budget = _budget(fields.get("judge_budget"))
    _check_parts(fields, spec, policy)
    paths = {name: folder / fields[name] if name in fields else None for name in _PATHS}
    known = {
        "evaluation": spec.to_json(),
        "policy": None if policy is None else policy.to_json(),
        "judge_budget": None if budget is None else asdict(budget),
    }
    return Suite(
        folder=folder,
        snapshot={**dict.fromkeys(_OPTIONAL), **fields, "schema_version": 1, **known},
        dataset=folder / fields["dataset"],
        spec=spec,
        persona=paths["persona"],
        policy=policy,
        baseline=paths["baseline"],
        budget=budget,
    )


def _check(fields: dict[str, Any]) -> None:
    strict.version(fields, "suite")
    for name in ("id", "revision", *_PATHS, *_TEXTS):
        if name in fields:
            strict.text(fields[name], f"suite: {name}")
    factories = fields.get("evaluator_factories", [])
    strict.items(factories, "suite: evaluator_factories", strict.text)
    if "max_target_calls" in fields:
        strict.integer(fields["max_target_calls"], "suite: max_target_calls")
    for name, needed in (
        ("target_factory", "max_target_calls"),
        ("max_target_calls", "target_factory"),
        ("judge_factory", "judge_budget"),
        ("baseline_evaluation_id", "baseline"),
    ):
        if name in fields and needed not in fields:
            raise SpecError(f"suite: {name} needs {needed}")


def _check_parts(fields: dict[str, Any], spec: EvaluationSpec, policy: Policy | None) -> None:
    if spec.streams != ("primary",):
        raise SpecError("suite: evaluation: a suite has the stream primary alone")
    judged = [criterion.id for criterion in spec.criteria if criterion.is_judged]
    if judged and "judge_factory" not in fields:
        raise SpecError(f"suite: criterion {judged[0]!r} needs judge_factory and judge_budget")
    if policy is None:
        return
    if policy.regression_gates and "baseline" not in fields:
        raise SpecError("suite: policy: a regression gate needs a baseline")
    criteria = {criterion.id for criterion in spec.criteria}
    for gate in policy.metric_gates:
        if gate.criterion not in {None, *criteria}:
            raise SpecError(f"suite: gate {gate.id!r}: there is no criterion {gate.criterion!r}")


def _settings(value: object, folder: Path, name: str) -> object:
    """Return settings that stand in the suite, or in a file that it names."""
    if not isinstance(value, str):
        return value
    try:
        return strict.read_yaml(folder / value)
    except OSError as error:
        raise SpecError(f"suite: {name}: {folder / value} cannot be read: {error}") from error


def _budget(value: object) -> Budget | None:
    if value is None:
        return None
    where = "suite: judge_budget"
    fields = strict.record(value, where, ("max_calls",), ("max_cost_micros",))
    calls = strict.integer(fields["max_calls"], f"{where}: max_calls")
    cost = fields.get("max_cost_micros")
    if cost is not None:
        strict.integer(cost, f"{where}: max_cost_micros", most=LARGEST_COST_MICROS)
    return Budget(calls, cost)


# The work


def run(
    suite: Suite,
    out: Path = Path("reports"),
    *,
    resumed: Path | None = None,
    progress: Progress = quiet,
) -> Outcome:
    """Capture, evaluate, compare, decide and keep.

    Args:
        suite: what is done.
        out: folder in which the run directory is made.
        resumed: a run of the same suite to go on with, in place of a new one.
        progress: is told how far the work is.

    What a capture committed before it failed is evaluated all the same; the answers that are
    missing keep it from passing. Raises EvaluatorsError for everything else.
    """
    _refuse_early(suite)
    # Loaded before a target is paid, since loading can fail.
    means = suite.judge(), suite.evaluators()
    if resumed is None:
        directory, error = _captured(suite, out, progress)
    else:
        directory, error = resumed, _continued(suite, resumed, progress)
    evaluation_id = _evaluated(suite, directory, *means, progress)
    with viewed(directory, evaluation_id) as view, _baseline(suite) as baseline:
        summary = checked(view, suite.policy, baseline)
        # Derived from the run alone, so they may always be written anew.
        paths = write_forms(view, summary, directory / "artifacts", ARTIFACTS, force=True)
    release = summary["release"]
    return Outcome(
        str(directory),
        evaluation_id,
        release["decision"],
        error,
        [str(path) for path in paths],
        release,
    )


def _refuse_early(suite: Suite) -> None:
    """Find what would stop the suite at its end, before a target is paid at its beginning."""
    if not suite.dataset.is_file():
        raise RunError(f"{suite.dataset} is no file")
    with _baseline(suite):
        pass


@contextmanager
def _baseline(suite: Suite) -> Iterator[View | None]:
    if suite.baseline is None:
        yield None
        return
    with viewed(suite.baseline, suite.baseline_evaluation_id) as view:
        yield view


def _evaluated(
    suite: Suite,
    directory: Path,
    judge: Judge | None,
    evaluators: list[Evaluator],
    progress: Progress,
) -> str:
    return evaluate_saved(
        directory,
        suite.spec,
        # A capture that went on has other inputs than before, hence maybe another evaluation.
        new_evaluation=True,
        judge=judge,
        budget=suite.budget,
        evaluators=evaluators,
        progress=progress,
    )


def _captured(suite: Suite, out: Path, progress: Progress) -> tuple[Path, str | None]:
    try:
        directory = capture(
            suite.dataset,
            out,
            persona=suite.persona,
            targets=suite.targets(),
            max_target_calls=suite.max_target_calls,
            suite=suite.snapshot,
            progress=progress,
        )
    except CaptureFailedError as error:
        return error.directory, _failure(error.directory)
    return directory, None


def _continued(suite: Suite, directory: Path, progress: Progress) -> str | None:
    with opened(directory) as connection:
        frozen = checks.verify(connection)
    if frozen.get("suite_digest") != digest(suite.snapshot):
        raise ResumeRefusedError(f"{directory} was not made by this suite as it is now")
    try:
        resume(
            directory,
            targets=suite.targets(),
            dataset=suite.dataset,
            persona=suite.persona,
            progress=progress,
        )
    except CaptureFailedError:
        return _failure(directory)
    return None


def _failure(directory: Path) -> str:
    with opened(directory) as connection:
        stands = state.state(connection)
    named = "" if stands.exception_type is None else f" ({stands.exception_type})"
    return f"{stands.failure_kind or stands.status}{named}"
