"""Request bodies: bounded before and after decompression."""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

from flask import Request

from mesedi_server.errors import RefusedError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

MAX_BYTES = 32 * 1024 * 1024
"""Bytes of a body, as it comes and decoded; more is 413."""


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
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    body = request.get_data(cache=False)
    if encoding in ("", "identity"):
        return body
    if encoding == "zstd":
        return _decoded(body, ZstdDecompressor, encoding)
    if encoding in ("gzip", "x-gzip"):
        return _decoded(body, lambda: zlib.decompressobj(wbits=31), encoding)
    raise RefusedError(f"Content-Encoding {encoding!r} is not known here; zstd or gzip is", 415)


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
