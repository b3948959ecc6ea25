"""Times in bodies and queries."""

from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields


class UtcTime(fields.AwareDateTime):
    """A time, given in UTC; one without a zone is UTC. Outside the years 1 to 9999 it is refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)

    def _deserialize(self, *args: Any, **kwargs: Any) -> datetime:
        time = super()._deserialize(*args, **kwargs)
        try:
            return time.astimezone(UTC)
        except OverflowError as error:
            raise ValidationError("not within the years 1 to 9999, in UTC.") from error
