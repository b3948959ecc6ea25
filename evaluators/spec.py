"""Evaluation specs: what is checked, and how much a pass may mean (section 3).

Specs come from YAML or from Python and are checked in full either way. Nothing is converted: a
number where text belongs is refused.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from evaluators.canonical import canonical
from evaluators.errors import SpecError
from evaluators.faithfulness import DEFAULT_MIN_CORRECTNESS
from evaluators.strict import read_yaml

REQUIREMENTS = ("conversation", "context", "complete_context")
QUALIFICATIONS = ("draft", "reviewed")
STREAMS = ("primary", "compare")

_Spec = TypeVar("_Spec")


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one kind of evaluator allows in its criteria."""

    rubric: str
    requirement: str
    conversation: bool
    always_applicable: bool
    min_correctness: bool = False
    config: bool = False


_RULES = {
    "rubric": _Rules("required", "conversation", conversation=True, always_applicable=True),
    "grounding": _Rules("refused", "context", conversation=False, always_applicable=False),
    "faithfulness": _Rules(
        "optional", "context", conversation=False, always_applicable=False, min_correctness=True
    ),
}
_CUSTOM = _Rules("refused", "conversation", conversation=True, always_applicable=True, config=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One question that an evaluator answers about each answer.

    Args:
        evaluator: "rubric", "grounding", "faithfulness", or the id of a registered evaluator.
        rubric: what a judge goes by; required for "rubric", refused where nobody reads it.
        evidence_requirement: "conversation", "context" or "complete_context"; by default what
            the evaluator needs.
        allow_not_applicable: by default True for grounding and faithfulness, else False.
        min_correctness: faithfulness only, 0 to 10, by default 7.
        config: settings of a registered evaluator.

    Raises SpecError.
    """

    id: str
    revision: str
    evaluator: str = "rubric"
    rubric: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    evidence_requirement: str | None = None
    allow_not_applicable: bool | None = None
    min_correctness: int | None = None
    schema_version: int = 1

    def __post_init__(self) -> None:
        _check_texts(self, "criterion", "id", "revision", "evaluator")
        where = f"criterion {self.id!r}"
        rules = _RULES.get(self.evaluator, _CUSTOM)
        _check_version(self.schema_version, where)
        self._check_rubric(rules, where)
        self._settle_requirement(rules, where)
        self._settle_applicability(rules, where)
        self._settle_correctness(rules, where)
        self._check_config(rules, where)

    @property
    def is_judged(self) -> bool:
        """Say whether a judge is asked."""
        return self.evaluator in {"rubric", "faithfulness"}

    @property
    def is_custom(self) -> bool:
        """Say whether a registered evaluator is asked."""
        return self.evaluator not in _RULES

    @property
    def needs_bundle(self) -> bool:
        """Say whether question and passages must be readable."""
        return self.evaluator in {"grounding", "faithfulness"}

    def _check_rubric(self, rules: _Rules, where: str) -> None:
        if self.rubric is not None:
            _check_text(self.rubric, f"{where}: rubric")
        if rules.rubric == "required" and self.rubric is None:
            raise SpecError(f"{where}: a rubric is required")
        if rules.rubric == "refused" and self.rubric is not None:
            raise SpecError(f"{where}: {self.evaluator} has no judge that could read a rubric")

    def _settle_requirement(self, rules: _Rules, where: str) -> None:
        requirement = self.evidence_requirement
        if requirement is None:
            requirement = rules.requirement
        _check_choice(requirement, REQUIREMENTS, f"{where}: evidence_requirement")
        if requirement == "conversation" and not rules.conversation:
            raise SpecError(f"{where}: {self.evaluator} needs the context")
        object.__setattr__(self, "evidence_requirement", requirement)

    def _settle_applicability(self, rules: _Rules, where: str) -> None:
        allowed = self.allow_not_applicable
        if allowed is None:
            allowed = not rules.always_applicable
        if not isinstance(allowed, bool):
            raise SpecError(f"{where}: allow_not_applicable must be true or false")
        if not allowed and not rules.always_applicable:
            raise SpecError(f"{where}: {self.evaluator} does not apply to every answer")
        object.__setattr__(self, "allow_not_applicable", allowed)

    def _settle_correctness(self, rules: _Rules, where: str) -> None:
        least = self.min_correctness
        if not rules.min_correctness:
            if least is not None:
                raise SpecError(f"{where}: {self.evaluator} takes no min_correctness")
            return
        if least is None:
            least = DEFAULT_MIN_CORRECTNESS
        if type(least) is not int or not 0 <= least <= 10:  # noqa: PLR2004 - the judge's scale
            raise SpecError(f"{where}: min_correctness must be an integer from 0 to 10")
        object.__setattr__(self, "min_correctness", least)

    def _check_config(self, rules: _Rules, where: str) -> None:
        if not isinstance(self.config, dict):
            raise SpecError(f"{where}: config must be an object")
        if self.config and not rules.config:
            raise SpecError(f"{where}: {self.evaluator} takes no config")
        try:
            canonical(self.config).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise SpecError(f"{where}: config is not JSON: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSpec:
    """A set of criteria. Raises SpecError.

    Args:
        qualification: "draft" (cannot pass) or "reviewed".
        streams: which streams of the capture, of "primary" and "compare".
        sample: another number asks a judge for another judgment of the same answers.
    """

    id: str
    revision: str
    criteria: tuple[Criterion, ...]
    qualification: str = "draft"
    scope: str = "turn"
    streams: tuple[str, ...] = ("primary",)
    sample: int = 0
    schema_version: int = 1

    def __post_init__(self) -> None:
        _check_texts(self, "spec", "id", "revision")
        where = f"spec {self.id!r}"
        _check_version(self.schema_version, where)
        object.__setattr__(self, "criteria", _several(self.criteria, f"{where}: criteria"))
        if not all(isinstance(criterion, Criterion) for criterion in self.criteria):
            raise SpecError(f"{where}: criteria must be a list of criteria")
        _check_unique([criterion.id for criterion in self.criteria], f"{where}: criterion id")
        _check_choice(self.qualification, QUALIFICATIONS, f"{where}: qualification")
        _check_choice(self.scope, ("turn",), f"{where}: scope")
        object.__setattr__(self, "streams", _several(self.streams, f"{where}: streams"))
        for stream in self.streams:
            _check_choice(stream, STREAMS, f"{where}: stream")
        _check_unique(self.streams, f"{where}: stream")
        if type(self.sample) is not int or self.sample < 0:
            raise SpecError(f"{where}: sample must be an integer from 0")

    @property
    def is_judged(self) -> bool:
        """Say whether any criterion asks a judge."""
        return any(criterion.is_judged for criterion in self.criteria)

    @property
    def is_custom(self) -> bool:
        """Say whether any criterion asks a registered evaluator."""
        return any(criterion.is_custom for criterion in self.criteria)

    def to_json(self) -> dict[str, Any]:
        """Return the spec with every default filled in."""
        return asdict(self) | {
            "criteria": [asdict(criterion) for criterion in self.criteria],
            "streams": list(self.streams),
        }


def load(path: Path) -> EvaluationSpec:
    """Read a spec from a YAML file. Raises SpecError, which names the file."""
    try:
        return from_json(read_yaml(path))
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def from_json(value: object) -> EvaluationSpec:
    """Build a spec from an object of plain values. Raises SpecError."""
    parts = _record(value, EvaluationSpec, "spec")
    criteria = parts.get("criteria")
    if not isinstance(criteria, list):
        raise SpecError("spec: criteria must be a list")
    parts["criteria"] = tuple(
        Criterion(**_record(criterion, Criterion, f"criterion {number}"))
        for number, criterion in enumerate(criteria, 1)
    )
    return EvaluationSpec(**parts)


def _record(value: object, kind: type[_Spec], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SpecError(f"{where}: must be an object")
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(str(name) for name in value if name not in known):
        raise SpecError(f"{where}: unknown field {', '.join(unknown)}")
    required = ("id", "revision") if kind is Criterion else ("id", "revision", "criteria")
    if missing := [name for name in required if name not in value]:
        raise SpecError(f"{where}: {', '.join(missing)} is missing")
    return dict(value)


def _check_text(value: object, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise SpecError(f"{where} must be text that is not blank (quote numbers and dates)")


def _check_texts(owner: object, where: str, *names: str) -> None:
    for name in names:
        _check_text(getattr(owner, name), f"{where}: {name}")


def _check_version(version: object, where: str) -> None:
    if type(version) is not int or version != 1:
        raise SpecError(f"{where}: schema_version must be 1")


def _check_choice(value: object, choices: tuple[str, ...], where: str) -> None:
    if not isinstance(value, str) or value not in choices:
        raise SpecError(f"{where} must be {' or '.join(choices)}")


def _check_unique(values: list[str] | tuple[str, ...], where: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise SpecError(f"{where} {value!r} occurs more than once")


def _several(value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise SpecError(f"{where} must be a list of at least one")
    return tuple(value)
