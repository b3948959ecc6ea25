"""Request bodies: bounded before and after decompression."""

import sys
import zlib
from collections.abc import Callable
from typing import IO, Protocol

from flask import Request
from werkzeug.wsgi import get_input_stream

from mesedi_server.errors import RefusedError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

MAX_BYTES = 32 * 1024 * 1024
"""Bytes of a body, as it comes and decoded; more is 413."""
MAX_BRACKETS = 1_000_000
"""Brackets and braces of a body; more is 413: two bytes of `[]` are a hundred in memory."""
MAX_FRAMES = 100
"""Frames or members that a compressed body may consist of; each costs a copy of what follows it."""

_READ_BYTES = 64 * 1024
_READ_AWAY_BYTES = 64 * 1024 * 1024


class _Stream(Protocol):
    """A decompressor of one frame."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def read(request: Request) -> bytes:
    """Read and decode a JSON body.

    Raises:
        RefusedError: another content type or encoding (415), broken (400), or too large (413).
    """
    _check_type(request)
    body = _read(request)
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        raise RefusedError(f"the body has more than {MAX_BRACKETS} brackets", 413)
    return body


def _read(request: Request) -> bytes:
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    body = _received(request)
    if encoding in ("", "identity"):
        return body
    if encoding == "zstd":
        return _decoded(body, ZstdDecompressor, encoding)
    if encoding in ("gzip", "x-gzip"):
        return _decoded(body, lambda: zlib.decompressobj(wbits=31), encoding)
    raise RefusedError(f"Content-Encoding {encoding!r} is not known here; zstd or gzip is", 415)


def _received(request: Request) -> bytes:
    # By hand: Werkzeug cuts a body without Content-Length off at its limit, and says nothing.
    stream = get_input_stream(request.environ)
    body = bytearray()
    while part := stream.read(_READ_BYTES):
        body += part
        if len(body) > MAX_BYTES:
            _read_away(stream)
            raise RefusedError(f"the body is larger than {MAX_BYTES} bytes", 413)
    if len(body) < (request.content_length or 0):
        raise RefusedError("the body ends before the length that was announced")
    return bytes(body)


def _read_away(stream: IO[bytes]) -> None:
    """Read on for a while: who still sends when the connection closes can't read the answer."""
    for _ in range(_READ_AWAY_BYTES // _READ_BYTES):
        if not stream.read(_READ_BYTES):
            break


def _check_type(request: Request) -> None:
    if request.mimetype not in ("", "application/json") and not request.mimetype.endswith("+json"):
        raise RefusedError(
            f"Content-Type {request.mimetype} is not JSON; send application/json", 415
        )
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise RefusedError(f"charset {charset} is not known here; send UTF-8", 415)


def _decoded(body: bytes, make_stream: Callable[[], _Stream], encoding: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    while body:
        if len(parts) == MAX_FRAMES:
            raise RefusedError(f"the body is more than {MAX_FRAMES} {encoding} frames", 413)
        stream = make_stream()
        try:
            # One byte over the limit tells "too large" from "just fits"; what a frame's header claims does not count.
            part = stream.decompress(body, MAX_BYTES - size + 1)
        except (ZstdError, zlib.error) as error:
            raise RefusedError(f"the body is not {encoding}: {error}") from error
        size += len(part)
        if size > MAX_BYTES:
            raise RefusedError(f"the decoded body is larger than {MAX_BYTES} bytes", 413)
        if not stream.eof:
            raise RefusedError(f"the body's {encoding} ends too early")
        parts.append(part)
        body = stream.unused_data
    return b"".join(parts)
