"""Capture: freeze a dataset, then commit one answer after the other.

Everything that shapes the run is frozen before the first answer. Recorded answers are committed
in batches (they can be read again from what was frozen), generated ones one by one.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from evaluators import planning, rundir, transcripts
from evaluators.answering import Asking, answer_turns
from evaluators.canonical import ListDigest, canonical
from evaluators.dataset import Problems, read
from evaluators.errors import CaptureFailedError
from evaluators.progress import Progress, quiet
from evaluators.store import answers, attempts, checks, plan, state
from evaluators.store.database import Connection, create, opened, transaction
from evaluators.targets import RECORDED, Target
from evaluators.version import PACKAGE_VERSION

STREAMS = ("primary", "compare")
_RECORDED_BATCH = 1000


def capture(
    dataset: Path,
    out: Path = Path("reports"),
    *,
    persona: Path | None = None,
    targets: Mapping[str, Target] | None = None,
    max_target_calls: int | None = None,
    suite: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> Path:
    """Make a run directory from a dataset and return it.

    Args:
        dataset: JSON lines, one record a line.
        out: folder in which the run directory is made.
        persona: a file whose bytes are frozen with the run.
        targets: what answers the streams "primary" and "compare"; without any, the primary
            stream keeps the recorded answers.
        max_target_calls: requests that the whole run may cost; None for no limit.
        suite: the suite that the capture is a part of, frozen with it.
        source: where the dataset was fetched from, if it is no file of yours; frozen too.
        progress: is told how far the work is.

    Raises DatasetError and leaves nothing behind when a record cannot be taken; raises
    CaptureFailedError and keeps the run directory when a target fails.
    """
    with rundir.unfinished(out) as directory:
        create(directory / rundir.DATABASE)
        with opened(directory, write=True) as connection, transaction(connection):
            artifact = (
                None if persona is None else plan.add_artifact(connection, persona.read_bytes())
            )
            frozen = _freeze(connection, dataset, dict(targets or {}), progress) | {
                "dataset": str(dataset),
                "persona": None if persona is None else str(persona),
                "persona_digest": artifact,
                "max_target_calls": max_target_calls,
            }
            if suite is not None:
                content = canonical(dict(suite)).encode()
                frozen["suite_digest"] = plan.add_artifact(connection, content)
            if source is not None:
                frozen |= {"dataset": source["url"], "source": dict(source)}
            plan.freeze(connection, frozen)
        rundir.write_copy(directory, "manifest.json", frozen)
        run = rundir.publish(directory, dataset.stem)
        carry_on(run, targets or {}, progress)
    return run


def _freeze(
    connection: Connection, dataset: Path, targets: dict[str, Target], progress: Progress
) -> dict[str, Any]:
    problems = Problems(dataset)
    size = dataset.stat().st_size
    records = read(dataset, problems, lambda read_now: progress("Reading", read_now, size))
    dataset_digest = plan.stage(connection, records)
    for line, session_id, index, first in plan.repeated_turns(connection):
        problems.add(line, f"turn_index {index} of session {session_id!r} is that of line {first}")
    streams = _streams(targets)
    for stream in streams:
        turns = planning.plan(stream, plan.sorted_turns(connection))
        plan.add_planned(connection, turns)
    for line, case_id, first in plan.repeated_cases(connection):
        problems.add(line, f"case_id {case_id!r} is that of line {first}")
    problems.refuse_if_any()
    return {
        "schema_version": 1,
        "id": str(uuid4()),
        "created_at": rundir.now(),
        "package_version": PACKAGE_VERSION,
        "dataset_digest": dataset_digest,
        "plan_digest": plan.plan_digest(connection),
        "targets": list(streams.values()),
    }


def _streams(targets: Mapping[str, Target]) -> dict[str, dict[str, Any]]:
    streams: dict[str, dict[str, Any]] = {"primary": {"stream": "primary", **RECORDED}}
    for stream, target in targets.items():
        streams[stream] = target.description(stream)
    return streams


def carry_on(directory: Path, targets: Mapping[str, Target], progress: Progress) -> None:
    """Commit every turn that is missing, then write the readable copies.

    The caller holds the lock. Raises CaptureFailedError when a target fails.
    """
    with opened(directory, write=True) as connection:
        frozen = plan.manifest(connection)
        try:
            _answer_streams(connection, frozen, directory, targets, progress)
            transcripts.write_all(connection, frozen, directory / "transcripts")
            # Last, so that a capture which was killed before is not taken for a finished one.
            if state.state(connection).status != "captured":
                _end(connection, state.RunState("captured", "captured"))
        except KeyboardInterrupt:
            _end(connection, state.RunState("interrupted", "capture", "interrupted"))
            raise
        except CaptureFailedError:
            raise
        except Exception as error:
            failure = ("pipeline_error", type(error).__name__)
            _end(connection, state.RunState("failed", "capture", *failure))
            raise
        finally:
            rundir.write_copy(directory, "run.json", summary(connection, frozen))


def _answer_streams(
    connection: Connection,
    frozen: dict[str, Any],
    directory: Path,
    targets: Mapping[str, Target],
    progress: Progress,
) -> None:
    total = sum(state.planned_turns(connection, target["stream"]) for target in frozen["targets"])
    told = _told(progress, total)
    most_calls = attempts.most_calls(connection, frozen)
    for target in frozen["targets"]:
        stream = target["stream"]
        told(state.committed_turns(connection, stream))
        if target["mode"] == "recorded":
            _import(connection, frozen["id"], stream, told)
        elif stream in targets:
            asking = Asking(connection, targets[stream], most_calls, directory)
            answer_turns(connection, frozen["id"], stream, asking, told)


def _told(progress: Progress, total: int) -> Callable[[int], None]:
    return lambda turns: progress("Capturing", turns, total)


def _import(connection: Connection, run_id: str, stream: str, told: Callable[[int], None]) -> None:
    begin = state.committed_turns(connection, stream)
    for start in range(begin, state.planned_turns(connection, stream), _RECORDED_BATCH):
        with transaction(connection):
            committed = answers.commit_recorded(
                connection, run_id, stream, start, start + _RECORDED_BATCH
            )
        told(committed)


def _end(connection: Connection, new: state.RunState) -> None:
    with transaction(connection):
        state.set_state(connection, new)


def summary(connection: Connection, frozen: dict[str, Any]) -> dict[str, Any]:
    """Return where a run stands, as `status --json` prints it."""
    generated = [t["stream"] for t in frozen["targets"] if t["mode"] == "generated"]
    stands = asdict(state.state(connection))
    counts = asdict(state.progress(connection, generated))
    return {
        "schema_version": 1,
        "run_id": frozen["id"],
        **stands,
        "planned_records": counts.pop("planned"),
        "committed_records": counts.pop("committed"),
        **counts,
        "liveness": "not_checked",
    }


def status(directory: Path) -> dict[str, Any]:
    """Return where a run stands. Raises RunError and CorruptRunError."""
    with opened(directory) as connection:
        return summary(connection, checks.verify(connection))


def dataset_digest(dataset: Path) -> str:
    """Return the digest that a capture of this file would freeze. Raises DatasetError."""
    problems = Problems(dataset)
    whole = ListDigest()
    for record in read(dataset, problems, lambda _: None):
        whole.add(record.content)
    problems.refuse_if_any()
    return whole.hexdigest()
