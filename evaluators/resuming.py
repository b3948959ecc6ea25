"""Continue a capture that stopped, or say why it must not be continued."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from evaluators import rundir
from evaluators.answering import message_digest, messages_before, used_up
from evaluators.capture import carry_on, dataset_digest
from evaluators.errors import CorruptRunError, ResumeRefusedError
from evaluators.progress import Progress, quiet
from evaluators.store import answers, attempts, checks, plan, state
from evaluators.store.database import Connection, opened, transaction
from evaluators.store.plan import PlannedTurn
from evaluators.targets import Target
from evaluators.version import PACKAGE_VERSION


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a resume would do, by stream: turns to commit and requests to send."""

    turns: dict[str, int]
    requests: dict[str, int]

    @property
    def is_nothing(self) -> bool:
        """Say whether everything is committed."""
        return not any(self.turns.values())


def resume(
    directory: Path,
    *,
    targets: Mapping[str, Target] | None = None,
    dataset: Path | None = None,
    persona: Path | None = None,
    max_target_calls: int | None = None,
    check: bool = False,
    progress: Progress = quiet,
) -> Remaining:
    """Continue a capture and return what there was to do; with `check`, only look.

    `max_target_calls` raises what the whole run may cost, and is kept with it.

    All streams are checked before anything is written. Raises ResumeRefusedError,
    CorruptRunError, LockedRunError, or CaptureFailedError when a target fails again.
    """
    given = targets or {}
    with rundir.locked(directory):
        with opened(directory, is_locked=True) as connection:
            frozen = checks.verify(connection)
            _same_sources(frozen, dataset, persona)
            most_calls = _most_calls(connection, frozen, max_target_calls)
            remaining = _remaining(connection, frozen)
            if not remaining.is_nothing:
                _same_version(frozen)
            for target in frozen["targets"]:
                if remaining.turns[target["stream"]] and target["mode"] == "generated":
                    _may_continue(connection, most_calls, target, given.get(target["stream"]))
        if not check:
            _carry_on(directory, given, remaining, max_target_calls, progress)
    return remaining


def captured_from(directory: Path) -> Path:
    """Return the path of the dataset as it was given to the capture."""
    with opened(directory) as connection:
        return Path(plan.manifest(connection)["dataset"])


def _carry_on(
    directory: Path,
    targets: Mapping[str, Target],
    remaining: Remaining,
    raised: int | None,
    progress: Progress,
) -> None:
    with opened(directory, write=True) as connection:
        stands = state.state(connection).status
        if remaining.is_nothing and stands in {"captured", "succeeded"}:
            return
        with transaction(connection):
            attempts.abandon_attempts(connection)
            if raised is not None:
                attempts.raise_most_calls(connection, raised)
            state.set_state(connection, state.RunState("running", "capture"))
    carry_on(directory, targets, progress)


def _remaining(connection: Connection, frozen: dict[str, Any]) -> Remaining:
    turns, requests = {}, {}
    for target in frozen["targets"]:
        stream = target["stream"]
        committed = state.committed_turns(connection, stream)
        turns[stream] = state.planned_turns(connection, stream) - committed
        requests[stream] = (
            state.planned_answers(connection, stream, committed)
            if target["mode"] == "generated"
            else 0
        )
    return Remaining(turns, requests)


def _same_sources(frozen: dict[str, Any], dataset: Path | None, persona: Path | None) -> None:
    if dataset is not None and dataset_digest(dataset) != frozen["dataset_digest"]:
        raise ResumeRefusedError(f"{dataset} is not the dataset that was captured")
    if persona is not None:
        given = sha256(persona.read_bytes()).hexdigest()
        if given != frozen["persona_digest"]:
            raise ResumeRefusedError(f"{persona} is not the persona that was captured")


def _most_calls(connection: Connection, frozen: dict[str, Any], given: int | None) -> int | None:
    before = attempts.most_calls(connection, frozen)
    if given is None:
        return before
    if before is None:
        raise ResumeRefusedError("the run's target calls have no limit that could be raised")
    if given < before:
        raise ResumeRefusedError(f"the run's {before} target calls can be raised, not lowered")
    return given


def _same_version(frozen: dict[str, Any]) -> None:
    if frozen["package_version"] != PACKAGE_VERSION:
        raise ResumeRefusedError(
            f"the run was begun by version {frozen['package_version']}, "
            f"this is {PACKAGE_VERSION}: capture the dataset again"
        )


def _may_continue(
    connection: Connection,
    most_calls: int | None,
    described: dict[str, Any],
    target: Target | None,
) -> None:
    stream = described["stream"]
    if target is None:
        raise ResumeRefusedError(f"the stream {stream} needs its target to go on")
    if target.description(stream) != described:
        raise ResumeRefusedError(
            f"the target of {stream} is not the one that began: "
            f"its model, adapter or recovery contract differs"
        )
    recovery = described["recovery"]
    if recovery["session_state"] != "stateless":
        raise ResumeRefusedError(f"the target of {stream} keeps a state that was lost")
    first = answers.first_unanswered(connection, stream)
    if first is None:
        return
    _may_send_again(connection, first, recovery)
    if most_calls is not None and attempts.attempt_count(connection) >= most_calls:
        raise ResumeRefusedError(used_up(most_calls))


def _may_send_again(connection: Connection, turn: PlannedTurn, recovery: dict[str, Any]) -> None:
    earlier = attempts.attempts_of(connection, turn.stream, turn.ordinal)
    if not earlier:
        return
    name = f"turn {turn.stream}:{turn.ordinal}"
    if recovery["interrupted_request"] != "idempotent":
        raise ResumeRefusedError(f"{name} was sent and may be sent once only")
    if len(earlier) >= recovery["max_attempts"]:
        raise ResumeRefusedError(f"{name} was tried {len(earlier)} times, which is the most")
    expected = message_digest(messages_before(connection, turn))
    if any(attempt.input_digest != expected for attempt in earlier):
        raise CorruptRunError(f"{name} was sent with other messages than those that are stored")
