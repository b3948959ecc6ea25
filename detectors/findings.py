"""What detectors say, and the identity of the failure group that a finding belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypeAlias

JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
Severity: TypeAlias = Literal["critical", "error", "warning", "info"]

MAX_FINDINGS = 20
"""Findings of one class that an execution may have (the seed's cap; no knob)."""

MAX_OVERFLOW_SIGNATURES = 100
"""Signatures that are kept of what the cap cut; the count is always kept in full."""

# Room for an evaluator and a metric of 256 bytes each; a database index takes no much longer key.
_MAX_SIGNATURE_BYTES = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a detector says of one execution; `evidence` holds JSON values only."""

    failure_class: str
    signature: str
    rule: str
    evaluator_id: str = ""
    metric_type: str = ""
    severity: Severity
    evidence: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of one class in one execution, and what the cap cut (detectors.md, rule 4)."""

    found: tuple[Finding, ...] = ()
    overflow: int = 0
    overflow_signatures: tuple[str, ...] = ()

    @classmethod
    def capped(cls, findings: Sequence[Finding]) -> "Findings":
        """Keep the first 20, count the others."""
        cut = findings[MAX_FINDINGS:]
        return cls(
            found=tuple(findings[:MAX_FINDINGS]),
            overflow=len(cut),
            overflow_signatures=tuple(f.signature for f in cut[:MAX_OVERFLOW_SIGNATURES]),
        )


def bounded_signature(text: str) -> str:
    """Return `text`, or, beyond 600 bytes, its head and a digest of the whole.

    For the classes whose signature is a client's text of any length; two long texts stay two.
    """
    encoded = _utf8(text)
    if len(encoded) <= _MAX_SIGNATURE_BYTES:
        return text
    digest = sha256(encoded).hexdigest()[:16]
    head = encoded[: _MAX_SIGNATURE_BYTES - len(digest) - 1].decode(errors="ignore")
    return f"{head}~{digest}"


def group_id(project_id: str, failure_class: str, signature: str, evaluator_id: str = "") -> str:
    """Return the id of a failure group: `grp-` and 16 hex digits of a SHA-256 (wire.md 6.1).

    Hashed is the UTF-8 text `project_id|failure_class|signature`. Where `evaluator_id` contains a
    colon, it is `project_id|failure_class|<bytes of evaluator_id>|signature`: the pairs
    (`a:b`, `c`) and (`a`, `b:c`) share a signature, not a group (detectors.md, Failure groups).
    The length stands before the signature, since a metric's name may end in anything.

    >>> group_id("demo", "grounding_failure", "grounding_failure:ragas:faithfulness", "ragas")
    'grp-3d492d081d05541b'
    """
    parts = [project_id, failure_class, signature]
    if ":" in evaluator_id:
        parts.insert(2, str(len(_utf8(evaluator_id))))
    return f"grp-{sha256(_utf8('|'.join(parts))).hexdigest()[:16]}"


def _utf8(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
