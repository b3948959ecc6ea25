"""One spelling for every JSON value, so that equal values have equal digests."""

import json
from collections.abc import Sequence
from hashlib import sha256
from json import encoder
from typing import Any

_ENCODER = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
)
# `encode` makes a writer for each value, which costs as much as a small value does; this is that
# writer, made once, where Python has it.
_make_writer = getattr(encoder, "c_make_encoder", None)
_pieces = _ENCODER.iterencode
if _make_writer is not None:
    _pieces = _make_writer(
        markers=None,
        default=_ENCODER.default,
        encoder=encoder.encode_basestring,
        indent=_ENCODER.indent,
        key_separator=_ENCODER.key_separator,
        item_separator=_ENCODER.item_separator,
        sort_keys=_ENCODER.sort_keys,
        skipkeys=_ENCODER.skipkeys,
        allow_nan=_ENCODER.allow_nan,
    )
_DECODER = json.JSONDecoder()


def canonical(value: object) -> str:
    """Write a JSON value with sorted keys, without spaces, with non-ASCII characters as they are.

    Raises ValueError for NaN and infinities, TypeError for what is not JSON, RecursionError for
    what is nested too deeply.
    """
    return "".join(_pieces(value, False))  # noqa: FBT003 - a place, not a choice


def parsed(text: str) -> Any:
    """Read canonical JSON, with nothing before or behind it: faster than `json.loads`."""
    return _DECODER.raw_decode(text)[0]


def text_digest(text: str) -> str:
    """SHA-256 of the UTF-8 text, as 64 hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def is_utf8(text: str) -> bool:
    """Say whether a text can be stored: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON of a value."""
    return text_digest(canonical(value))


class ListDigest:
    """The digest of a JSON list whose items come one after the other, never all at once."""

    def __init__(self) -> None:
        self._hash = sha256(b"[")
        self._separator = b""

    def add(self, item: str) -> None:
        """Append an item that is canonical JSON already, or several with commas between them."""
        self._hash.update(self._separator + item.encode())
        self._separator = b","

    def add_values(self, items: Sequence[object]) -> None:
        """Append several JSON values at once, which is faster than one by one."""
        if items:
            self.add(canonical(items)[1:-1])

    def hexdigest(self) -> str:
        """Digest of the list up to here."""
        closed = self._hash.copy()
        closed.update(b"]")
        return closed.hexdigest()
