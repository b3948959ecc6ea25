"""Which execution ids have an address: others are refused where they come in, so that what is stored is in reach."""

import re

_NO_ADDRESS = re.compile(r"\A/|[\x00-\x1f\x7f\x85\u2028\u2029]|/halt(-stream)?\Z").search


def fault(execution_id: str) -> str | None:
    """Say why an execution with this id could not be addressed; None: it can."""
    if _NO_ADDRESS(execution_id) is None:
        return None
    if execution_id.startswith("/"):
        return "begins with a slash"
    if execution_id.endswith(("/halt", "/halt-stream")):
        return "ends like an address of halts"
    return "has a line break or another control character in it"
