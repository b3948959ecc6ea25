"""What can go wrong at the durable edge; the command answers each of these with exit code 1.

EvaluatorsError
├── DatasetError         records of a dataset cannot be taken
├── SpecError            a spec, policy or suite is not valid
├── DownloadError        a server does not hand over a group
├── FactoryError         a `module:function` cannot be loaded or gives the wrong thing
├── RunError             a run directory cannot be read or used
│   ├── CorruptRunError  what is stored does not match its digest
│   └── LockedRunError   another process works on it
├── CaptureFailedError   a capture stopped; what it committed is kept
├── ResumeRefusedError   a capture must not be continued this way
├── EvaluationRefusedError  an evaluation must not be started or continued this way
├── ComparisonRefusedError  two evaluations are too unlike to be compared
└── ReviewError          reviews cannot be taken
"""

from collections.abc import Sequence
from pathlib import Path

SHOWN_PROBLEMS = 100
"""Problems of a dataset that are printed; the rest are counted."""


class EvaluatorsError(Exception):
    """The root of everything that this package raises on purpose."""


class DatasetError(EvaluatorsError):
    """Records of a dataset cannot be taken.

    `problems` holds (line number, reason) pairs in the order of the file, at most
    `SHOWN_PROBLEMS` of them; `total` counts all.
    """

    def __init__(self, path: Path, problems: Sequence[tuple[int, str]], total: int) -> None:
        self.problems = tuple(problems)
        self.total = total
        lines = [f"{path}: line {line}: {reason}" for line, reason in self.problems]
        if total > len(lines):
            lines.append(f"{path}: and {total - len(lines)} more")
        super().__init__("\n".join(lines))


class DownloadError(EvaluatorsError):
    """A server does not hand over a group, or not all of it."""


class SpecError(EvaluatorsError):
    """An evaluation spec, a policy or a suite is not valid."""


class FactoryError(EvaluatorsError):
    """A `module:function` cannot be loaded, or what it returns does not fit."""


class RunError(EvaluatorsError):
    """A run directory cannot be read or used."""


class CorruptRunError(RunError):
    """What a run directory holds does not match its digest."""


class LockedRunError(RunError):
    """Another process works on this run directory."""


class CaptureFailedError(EvaluatorsError):
    """A capture stopped before its end; what it committed is kept in `directory`."""

    def __init__(self, directory: Path, reason: str) -> None:
        self.directory = directory
        super().__init__(f"{reason}\nWhat was captured is kept in {directory}")


class ResumeRefusedError(EvaluatorsError):
    """A capture must not be continued this way."""


class EvaluationRefusedError(EvaluatorsError):
    """An evaluation must not be started or continued this way."""


class ComparisonRefusedError(EvaluatorsError):
    """Two evaluations are too unlike to be compared."""


class ReviewError(EvaluatorsError):
    """Reviews cannot be taken; the message names the file, each line and the reason."""
