"""What targets, judges and evaluators of one's own promise is checked by the same rules."""

import re

from evaluators.canonical import is_utf8
from evaluators.errors import FactoryError


def check_text(value: object, what: str) -> str:
    """Return text that can be stored and is not blank; raise FactoryError for anything else."""
    if not isinstance(value, str) or not value.strip() or not is_utf8(value):
        raise FactoryError(f"{what} must be a string that is not blank")
    return value


def check_digest(value: object) -> None:
    """Raise FactoryError unless a value is a configuration's digest."""
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
        raise FactoryError("configuration_digest must be 64 lower-case hexadecimal digits")
