"""The emitters of everything but scores, captured on the caller's thread."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice

from mesedi import _client
from mesedi._executions import current_execution, step
from mesedi._pieces import Observation
from mesedi._plain import UNREADABLE, plain, printed, text
from mesedi._readings import number, read_verdict

_LLM_CALL = "llm_call"
_MAX_PASSAGES = 1_000  # more than any judge reads; an iterable need not end
_SEVERITIES = {"warning", "error", "critical"}


@_client.emitter
def emit_event(
    event_type: str,
    payload: Mapping[str, object] | None = None,
    *,
    execution_id: str | None = None,
    event_id: str | None = None,
    duration_ms: int | None = None,
) -> None:
    """Send an event of any type; `payload` is copied, what JSON lacks is named by its type."""
    step()
    if event_type == _LLM_CALL:
        _count_tokens(payload)
    send_event(event_type, payload, execution_id, event_id, duration_ms)


@_client.emitter
def record_answer(
    question: str,
    answer: str,
    contexts: Sequence[object] | Mapping[str, object] | None = None,
    *,
    answer_id: str | None = None,
    execution_id: str | None = None,
    metadata: Mapping[str, object] | None = None,
    event_id: str | None = None,
) -> str | None:
    """Send the text that scores are about: question, answer and what was retrieved.

    Args:
        question: what was asked.
        answer: what your pipeline said.
        contexts: the passages in order, as strings or objects with a text; an empty list
            says that nothing was found, None that nothing is known. A mapping goes as it is.
            The first 1,000 are taken.
        answer_id: your own id; default: a new one.
        execution_id: the execution to attach it to.
        metadata: anything else worth keeping; copied.
        event_id: your own id of this event.

    Returns:
        The answer's id, for `emit_eval_score(..., answer_id=...)`.
    """
    step()
    client = _client.current()
    if answer_id is None and client is not None:
        answer_id = client.ids.name("ans", client.ids.take())
    payload: dict[str, object] = {
        "answer_id": answer_id,
        "question": question,
        "answer": answer,
        "context": _context(contexts),
    }
    if metadata is not None:
        payload["metadata"] = metadata
    send_event("answer", payload, execution_id, event_id)
    return answer_id


@_client.emitter
def validator_result(
    name: str,
    passed: object,
    message: str = "",
    severity: str = "error",
    category: str = "",
    *,
    execution_id: str | None = None,
) -> None:
    """Send what one yes-or-no check of your own code found.

    `severity` is `warning`, `error` or `critical`; `category` tells failures of one check apart.
    """
    payload: dict[str, object] = {
        "name": name,
        "passed": read_verdict(passed),
        "severity": told if (told := printed(severity)) in _SEVERITIES else "error",
    }
    payload.update({"message": told} if (told := printed(message)) else {})
    payload.update({"category": told} if (told := printed(category)) else {})
    send_event("validator_result", payload, execution_id)


@_client.emitter
def checkpoint(name: str, /, **metadata: object) -> None:
    """Mark a place that the execution has come to."""
    step()
    send_event("checkpoint", {"name": name, "metadata": metadata})


def send_event(
    event_type: str,
    payload: Mapping[str, object] | None,
    execution_id: str | None = None,
    event_id: str | None = None,
    duration_ms: int | None = None,
) -> None:
    """Send an event from inside the SDK: no halt-safe point, and not guarded."""
    client = _client.for_emitting()
    if client is None:
        return
    content, size = plain({} if payload is None else payload)
    run_id, sequence = place_of(execution_id)
    number, kind, now = client.ids.take(), text(event_type), time.time()
    client.put(
        Observation(number, run_id, sequence, now, kind, content, size, event_id, duration_ms)
    )


def _count_tokens(payload: object) -> None:
    run = current_execution()
    if run is not None and run.meter is not None and isinstance(payload, Mapping):
        used = [number(payload.get(name)) or 0 for name in ("input_tokens", "output_tokens")]
        run.meter.spend(int(used[0]), int(used[1]))


def place_of(execution_id: str | None) -> tuple[str, int | None]:
    """Answer the execution of an event emitted here ("": it gets its own), and its place."""
    run = current_execution()
    if execution_id is not None and (run is None or execution_id != run.id):
        return text(execution_id), None
    return ("", 1) if run is None else (run.id, run.next_sequence())


def _context(contexts: Sequence[object] | Mapping[str, object] | None) -> object:
    try:
        if contexts is None or isinstance(contexts, Mapping):
            return contexts
        passages = [contexts] if isinstance(contexts, str) else islice(contexts, _MAX_PASSAGES)
        return {"excerpts": [_passage(passage) for passage in passages]}
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return UNREADABLE


def _passage(passage: object) -> object:
    """Read a passage object as retrieval libraries have them; text and mappings stay."""
    try:
        for name in ("page_content", "text", "content"):
            words = getattr(passage, name, None)
            if isinstance(words, str):
                name_of = getattr(passage, "id", None)
                return {"text": words} if name_of is None else {"id": name_of, "text": words}
    except Exception:  # noqa: BLE001 - foreign objects raise what they like
        return UNREADABLE
    return passage
