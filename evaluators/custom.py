"""Registered deterministic evaluators: a function of yours that says how an answer did.

A factory takes no arguments and returns an `Evaluator`. Its function is called with the keyword
arguments `answer` (text), `conversation` (the committed turns up to and including the answer, each
with `source_id`, `role` and `content`), `context` (the saved JSON value, None when there was none),
`config` (the criterion's) and `sources` (what can be quoted, text by source id). It returns
`{"outcome", "rationale", "evidence": [{"source_id", "quote"}], "metrics": {id: {"numerator",
"denominator"}}}`, with a sample for each metric that the evaluator declares and no other.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from evaluators import verdicts
from evaluators.canonical import digest
from evaluators.contracts import check_digest, check_text
from evaluators.errors import FactoryError
from evaluators.metrics import DESCRIPTORS, Aggregation, Descriptor, Direction, Sample
from evaluators.prompts import Turn
from evaluators.verdicts import InvalidVerdictError

Outcome: TypeAlias = Literal["met", "violated", "not_applicable", "needs_review"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
RESERVED = frozenset({"rubric", "grounding", "faithfulness", "evaluation"})
"""Ids of evaluators of our own, and `evaluation`, whose metrics are those of the whole."""

LARGEST = 2**53
"""Largest amount in a sample: a report prints floats, which are exact up to here."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """A function and what it measures.

    Args:
        id: what criteria name it by; letters, digits, `_` and `-`.
        revision: raise it when the same answer may come out differently.
        function: see the head of this module.
        metrics: what it measures; each id is `<evaluator id>.<measure>`.
        configuration_digest: 64 hexadecimal digits over what shapes the results besides; by
            default one that says there is nothing.

    Raises FactoryError.
    """

    id: str
    revision: str
    function: Callable[..., object]
    metrics: tuple[Descriptor, ...] = ()
    configuration_digest: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _NAME.fullmatch(self.id):
            raise FactoryError("an evaluator's id must be of letters, digits, _ and -")
        if self.id in RESERVED:
            raise FactoryError(f"the evaluator id {self.id!r} is taken")
        check_text(self.revision, f"{self.id}: revision")
        if not callable(self.function):
            raise FactoryError(f"{self.id}: function cannot be called")
        self._settle_metrics()
        self._settle_digest()

    def _settle_metrics(self) -> None:
        if not isinstance(self.metrics, list | tuple):
            raise FactoryError(f"{self.id}: metrics must be a list of Descriptors")
        object.__setattr__(self, "metrics", tuple(self.metrics))
        for metric in self.metrics:
            _check_metric(self.id, metric)
        names = [metric.id for metric in self.metrics]
        if len(set(names)) < len(names):
            raise FactoryError(f"{self.id}: a metric is declared twice")

    def _settle_digest(self) -> None:
        if self.configuration_digest == "":
            nothing = digest({"id": self.id, "config": {}})
            object.__setattr__(self, "configuration_digest", nothing)
        check_digest(self.configuration_digest)


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluator's function said, checked.

    Attributes:
        outcome: one of OUTCOMES, or "invalid".
        reason: the class of what went wrong when it is invalid, and nothing else: a message can
            hold the texts.
    """

    outcome: Outcome | Literal["invalid"]
    reason: str | None = None
    _fields: Mapping[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The assessment as a JSON value."""
        return dict(self._fields)

    def samples(self) -> dict[str, Sample]:
        """What this answer adds to each declared metric."""
        return dict(self._fields.get("metrics", {}))


def build(factory: Callable[[], object]) -> Evaluator:
    """Call an evaluator factory and check what it returns. Raises FactoryError."""
    try:
        evaluator = factory()
    except (Exception, SystemExit) as error:
        message = f"the evaluator factory failed: {type(error).__name__}: {error}"
        raise FactoryError(message) from error
    if not isinstance(evaluator, Evaluator):
        raise FactoryError("an evaluator factory returns an evaluators.custom.Evaluator")
    return evaluator


def registry(evaluators: Iterable[Evaluator]) -> dict[str, Evaluator]:
    """Name evaluators by their ids. Raises FactoryError when two have the same."""
    named: dict[str, Evaluator] = {}
    for evaluator in evaluators:
        if evaluator.id in named:
            raise FactoryError(f"two evaluators have the id {evaluator.id!r}")
        named[evaluator.id] = evaluator
    return named


def run(
    evaluator: Evaluator,
    answer: str,
    *,
    conversation: Sequence[Turn],
    context: object,
    config: Mapping[str, Any],
    sources: Mapping[str, str],
    allow_not_applicable: bool,
) -> Result:
    """Ask an evaluator about one answer; what it breaks makes the result invalid.

    Args:
        evaluator: whom to ask.
        answer: the saved answer.
        conversation: the committed turns up to and including the answer.
        context: the saved context; the function gets a copy, of `config` as well.
        config: the criterion's settings.
        sources: what can be quoted, by source id; `rubric.sources(...)`.
        allow_not_applicable: whether the criterion need not apply to every answer.
    """
    try:
        returned = evaluator.function(
            answer=answer,
            conversation=tuple(conversation),
            context=deepcopy(context),
            config=deepcopy(dict(config)),
            sources=dict(sources),
        )
        fields = _read(evaluator, returned)
        _check(fields, sources, allow_not_applicable=allow_not_applicable)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is somebody else's code
        return Result("invalid", type(error).__name__)
    quotes = [quote.content() for quote in fields["evidence"]]
    return Result(fields["outcome"], None, {**fields, "evidence": quotes})


def _read(evaluator: Evaluator, returned: object) -> dict[str, Any]:
    samples = verdicts.exactly({metric.id: _sample for metric in evaluator.metrics})
    return verdicts.exactly({**_FIELDS, "metrics": samples})(verdicts.parse(_plain(returned)), "")


def _check(
    fields: Mapping[str, Any], sources: Mapping[str, str], *, allow_not_applicable: bool
) -> None:
    if fields["outcome"] == "not_applicable" and not allow_not_applicable:
        raise InvalidVerdictError("not_applicable is not allowed by the criterion")
    verdicts.check_quotes(fields["evidence"], sources)


def _plain(returned: object) -> object:
    """Refuse text, which `parse` would read: a function returns an object."""
    if isinstance(returned, str):
        raise InvalidVerdictError("is text", is_object=False)
    return returned


def _amount(value: object, where: str) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= LARGEST:  # type: ignore[arg-type]  # NaN is not, either
        raise InvalidVerdictError(f"{where} must be a number of at most {LARGEST}")
    return value


_sample = verdicts.exactly({"numerator": _amount, "denominator": verdicts.integer(0, LARGEST)})

_FIELDS: verdicts.Fields = {
    "outcome": verdicts.one_of(*OUTCOMES),
    "rationale": verdicts.text,
    "evidence": verdicts.list_of(verdicts.quote),
}


def _check_metric(evaluator_id: str, metric: object) -> None:
    if not isinstance(metric, Descriptor):
        raise FactoryError(f"{evaluator_id}: a metric must be a Descriptor")
    if metric.id in DESCRIPTORS:
        raise FactoryError(f"{evaluator_id}: the metric {metric.id!r} is taken")
    owner, _, measure = str(metric.id).partition(".")
    if owner != evaluator_id or not _NAME.fullmatch(measure):
        raise FactoryError(f"the metric {metric.id!r} must be {evaluator_id}.<measure>")
    if metric.aggregation not in get_args(Aggregation):
        raise FactoryError(f"{metric.id}: aggregation must be ratio, mean or count")
    if metric.direction not in get_args(Direction):
        raise FactoryError(f"{metric.id}: direction must be higher, lower or neutral")
    for value in (metric.description, metric.unit, metric.revision):
        if not isinstance(value, str) or not value.strip():
            raise FactoryError(f"{metric.id}: description, unit and revision must be text")
