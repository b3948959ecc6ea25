"""Names that people give to things: one line, and not too long."""

import re
from typing import Any

from marshmallow import ValidationError, fields

# U+FFFD is what a lenient reader makes of a NUL and of bytes that are no text: the name would be another one.
_NO_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffd]")


class Name(fields.String):
    """A name on one line, without blanks around it.

    Args:
        longest: characters that it may have at most.
        shortest: characters that it needs.
        options: as of any field.
    """

    def __init__(self, *, longest: int, shortest: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self._shortest, self._longest = shortest, longest

    def _deserialize(self, *args: Any, **kwargs: Any) -> str:
        name = str(super()._deserialize(*args, **kwargs)).strip()
        if not self._shortest <= len(name) <= self._longest:
            raise ValidationError(f"between {self._shortest} and {self._longest} characters.")
        if _NO_NAME.search(name):
            raise ValidationError("no control characters and no line breaks.")
        return name
