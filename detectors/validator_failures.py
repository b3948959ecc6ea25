"""validator_failures: code-driven yes/no checks that said no."""

from collections.abc import Iterable, Sequence

from detectors.events import EVENT_ORDER, ValidatorResult
from detectors.findings import Finding, Findings, Severity, bounded_signature

NAME = "validator_failures"
DESCRIPTION = "A code-driven check of the execution said no."
EVENT_TYPE = "validator_result"

MAX_MESSAGES = 3
"""Messages that are kept of each validator."""

_WORST_FIRST: tuple[Severity, ...] = ("critical", "error", "warning", "info")


def detect(results: Iterable[ValidatorResult]) -> Findings:
    """Find every distinct failing validator of one execution, in event order, at most 20.

    Only an explicit `passed: false` is a failure, and a validator without a name is none
    (detectors.md, validator_failures). Severity is the worst that its failures had.

    >>> from datetime import UTC, datetime
    >>> noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    >>> results = [
    ...     ValidatorResult("evt-1", 1, noon, "schema", passed=True),
    ...     ValidatorResult("evt-2", 2, noon, "citations", passed=False, category="missing"),
    ... ]
    >>> [finding.signature for finding in detect(results).found]
    ['citations:missing']
    """
    failures: dict[str, list[ValidatorResult]] = {}
    for result in sorted(results, key=EVENT_ORDER):
        if result.passed is False and result.name.strip():
            failures.setdefault(_signature(result), []).append(result)
    return Findings.capped([_finding(signature, rows) for signature, rows in failures.items()])


def _signature(result: ValidatorResult) -> str:
    text = f"{result.name}:{result.category}" if result.category else result.name
    return bounded_signature(text)


def _finding(signature: str, failures: Sequence[ValidatorResult]) -> Finding:
    messages = [failure.message for failure in failures if failure.message]
    severity = _worst(failure.severity for failure in failures)
    return Finding(
        failure_class=NAME,
        signature=signature,
        rule="failed_check",
        severity=severity,
        evidence={
            "rule": "failed_check",
            "name": failures[0].name,
            "category": failures[0].category,
            "failures": len(failures),
            "messages": messages[:MAX_MESSAGES],
        },
    )


def _worst(severities: Iterable[str]) -> Severity:
    given = set(severities)
    return next((severity for severity in _WORST_FIRST if severity in given), "error")
