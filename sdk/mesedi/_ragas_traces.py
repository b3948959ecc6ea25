"""Why Ragas' judge scored as it did, as far as a result's traces tell.

Source: evaluator-outputs.md, section 1.4, row "reason". Best effort, never fatal.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_WORDS = ("reason", "feedback")
_VERDICTS = ("verdict", "attributed")
_LISTS = ("statements", "classifications", "verdicts")


def reasons_of(trace: object, metrics: Iterable[str]) -> dict[str, str]:
    """Collect the judge's words on one row, by metric."""
    if not isinstance(trace, Mapping):
        return {}
    told = {}
    for metric in metrics:
        # Traces go by the metric's name without its mode.
        prompts = trace.get(metric.partition("(")[0])
        words = _words(prompts) if isinstance(prompts, Mapping) else []
        if words:
            told[metric] = "\n".join(words)
    return told


def _words(prompts: Mapping[str, Any]) -> list[str]:
    outputs = (_field(prompt, "output") for prompt in prompts.values())
    each = [words for output in outputs for words in _of_output(output)]
    return list(dict.fromkeys(each))


def _of_output(output: object) -> Iterator[str]:
    if isinstance(output, list | tuple):
        for part in output:
            yield from _of_output(part)
        return
    for name in _WORDS:
        if isinstance(words := _field(output, name), str) and words:
            yield words
    for name in _LISTS:
        items = _field(output, name)
        yield from _denied(items) if isinstance(items, list | tuple) else ()


def _denied(items: Iterable[object]) -> Iterator[str]:
    """Name the statements that the judge found without support, and why."""
    for item in items:
        verdicts = [_field(item, name) for name in _VERDICTS]
        if 0 in [verdict for verdict in verdicts if verdict is not None]:
            yield f"not supported: {_field(item, 'statement')} ({_field(item, 'reason')})"


def _field(holder: object, name: str) -> Any:
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)
