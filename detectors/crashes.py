"""crashes: the execution ended in an exception that its client could name."""

from detectors.findings import Finding, Findings, Severity, bounded_signature

NAME = "crashes"
DESCRIPTION = "The execution crashed; crashes with the same signature are one group."
SEVERITY: Severity = "critical"  # wire.md 6.4


def detect(status: str, crash_signature: str | None) -> Findings:
    """Find the crash of one execution (detectors.md, crashes).

    >>> [finding.signature for finding in detect("crashed", "KeyError:agent.py:plan").found]
    ['KeyError:agent.py:plan']
    >>> detect("halted", "halt:step_count").found
    ()
    """
    if status != "crashed" or not crash_signature or not crash_signature.strip():
        return Findings()
    signature = bounded_signature(crash_signature)
    finding = Finding(
        failure_class=NAME,
        signature=signature,
        rule="crashed",
        severity=SEVERITY,
        evidence={"rule": "crashed", "crash_signature": signature},
    )
    return Findings((finding,))
