"""Fetch a failure group from a server, as a dataset.

The server's answer ends with an empty line. One that does not was cut off, however tidily, and is
refused: a capture holds all that was asked for, or is not made.
"""

import json
import re
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from evaluators import rundir
from evaluators.adapters import posting
from evaluators.adapters.errors import NotConnectedError, TimedOutError
from evaluators.adapters.posting import Address
from evaluators.errors import DownloadError

TIMEOUT_S = 3600.0
"""Seconds for a whole group."""
SILENCE_S = 60.0
"""The most seconds without a byte."""

_PIECE_BYTES = 64 * 1024
_SHOWN_CHARS = 300
_JSON_LINES = "application/x-ndjson"
_UNPRINTABLE = re.compile(r"[^ -~\u00a0-\ud7ff\ue000-\ufffd]")
_OK = 200
_REFUSALS = {
    401: "the server does not know the API key, or it has expired",
    403: "the API key has no scope read",
    404: "the project of the API key has no such failure group",
}
_COUNTS = {
    "executions": "Mesedi-Executions",
    "executions_without_answer": "Mesedi-Executions-Without-Answer",
    "executions_beyond_limit": "Mesedi-Executions-Beyond-Limit",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Which group of which server; None leaves a number to the server.

    Args:
        server: its URL.
        id: the group's.
        passing: answers that did not fail, for contrast.
        limit: executions of the group, the newest.
    """

    server: str
    id: str
    passing: int | None = None
    limit: int | None = None

    @property
    def address(self) -> Address:
        """Where its dataset is. Raises DownloadError."""
        numbers = {"passing": self.passing, "limit": self.limit}
        query = urlencode({name: value for name, value in numbers.items() if value is not None})
        path = f"/failure-groups/{quote(self.id, safe='')}/dataset" + (query and f"?{query}")
        try:
            return posting.address(self.server, path)
        except ValueError as error:
            raise DownloadError(f"--server {error}") from error


def download(
    group: Group,
    api_key: str,
    file: Path,
    *,
    timeout_s: float = TIMEOUT_S,
    silence_s: float = SILENCE_S,
) -> dict[str, Any]:
    """Write a group's dataset into a file and return where it came from, for a manifest.

    Args:
        group: what to fetch.
        api_key: a key with the scope read; it is in no message and no result.
        file: what to make.
        timeout_s: seconds for all of it.
        silence_s: the most seconds without a byte.

    Raises DownloadError.
    """
    headers = {"Authorization": f"Bearer {_checked(api_key)}", "Accept": _JSON_LINES}
    address = group.address
    try:
        with posting.getting(
            address, headers, timeout_s=timeout_s, silence_s=silence_s
        ) as response:
            _check(response)
            _write(response, file)
            return _source(group, response.headers)
    except (TimeoutError, TimedOutError) as error:
        raise DownloadError(f"{group.server} does not answer in time") from error
    except (OSError, HTTPException, NotConnectedError) as error:
        cause = error.__cause__ or error
        words = str(cause) or type(cause).__name__
        raise DownloadError(f"{group.server} does not hand the group over: {words}") from error


def _checked(api_key: str) -> str:
    if not re.fullmatch(r"[!-~]+", api_key):
        raise DownloadError("the API key must be of ASCII characters without spaces")
    return api_key


def _check(response: HTTPResponse) -> None:
    if response.status == _OK:
        if response.headers.get_content_type() != _JSON_LINES:
            raise DownloadError("the server does not answer with a dataset: is it the right one?")
        return
    if response.status in _REFUSALS:
        raise DownloadError(_REFUSALS[response.status])
    if response.status // 100 == 3:  # noqa: PLR2004 - HTTP's own number
        raise DownloadError("the server points elsewhere, and nothing follows: use that address")
    raise DownloadError(f"the server answers {response.status}{_said(response)}")


def _said(response: HTTPResponse) -> str:
    """Return what an error's body says, as much as is worth showing."""
    try:
        words = json.loads(response.read(_PIECE_BYTES))["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return f": {_UNPRINTABLE.sub('?', str(words))[:_SHOWN_CHARS]}"


def _write(response: HTTPResponse, file: Path) -> None:
    end = b"\n"  # an answer that is one empty line is whole
    with file.open("xb") as written:
        while piece := response.read(_PIECE_BYTES):
            written.write(piece)
            end = (end + piece)[-2:]
    if end != b"\n\n":
        raise DownloadError("the dataset was cut off on its way; nothing was captured. Try again")


def _source(group: Group, headers: Message) -> dict[str, Any]:
    counts = {name: headers.get(header, "") for name, header in _COUNTS.items()}
    return {
        "kind": "failure_group",
        "url": f"{group.server.rstrip('/')}/failure-groups/{quote(group.id, safe='')}",
        "group": group.id,
        "passing": group.passing,
        "limit": group.limit,
        "downloaded_at": rundir.now(),
        **{name: int(text) if text.isdecimal() else None for name, text in counts.items()},
    }
