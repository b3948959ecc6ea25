"""What a task does when the database is away: nothing is lost, since what it looks for stays there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mesedi_server.errors import UnavailableError

logger = logging.getLogger(__name__)


@contextmanager
def next_time(work: str) -> Iterator[None]:
    """Leave the rest of some work to the task's next run if the database cannot be used."""
    try:
        yield
    except UnavailableError as error:
        logger.warning("%s put off: %s", work, error)
