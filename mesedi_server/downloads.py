"""Files that are made while they are read. Each holds a thread of its process, so few are made at a time."""

import time
from collections.abc import Iterator, Mapping

from flask import Response

from mesedi_server.errors import UnavailableError
from mesedi_server.runtime import runtime

LONGEST_S = 3600.0
"""When a download is broken off, whatever is left of it."""

_JSON_LINES = "application/x-ndjson"
_BLOCK_BYTES = 64 * 1024


def json_lines(lines: Iterator[bytes], headers: Mapping[str, str]) -> Response:
    """Send lines as they are made.

    Raises:
        UnavailableError: this process makes as many files as it may; try again.
    """
    slots = runtime().download_slots
    if not slots.acquire(blocking=False):
        raise UnavailableError("this process makes as many downloads as it may; try again")
    response = Response(_blocks(lines), mimetype=_JSON_LINES, headers=dict(headers))
    # Also where the client is gone before the first line, and the generator never starts.
    response.call_on_close(slots.release)
    return response


def _blocks(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Put lines together, since each piece that is sent has its price."""
    give_up_at = time.monotonic() + LONGEST_S
    block = bytearray()
    for line in lines:
        block += line
        if len(block) >= _BLOCK_BYTES:
            yield bytes(block)
            block.clear()
        if time.monotonic() > give_up_at:
            raise UnavailableError("the download takes too long")
    yield bytes(block)
