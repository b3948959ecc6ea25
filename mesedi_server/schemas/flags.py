"""Yes or no: JSON's own true and false, and nothing that only looks like them."""

from typing import Any

from marshmallow import fields


class Flag(fields.Boolean):
    """A boolean that neither 1 nor 1.0 nor "true" stands for: Python finds the first two equal to True."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value
