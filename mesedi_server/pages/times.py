"""Times as a page shows and takes them: in the project's zone; outside projects in UTC."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from flask import g

from mesedi_server.store.trends import Span


def zone() -> tzinfo:
    """Return the zone of the project that the page is of."""
    visit = g.get("visit")
    return UTC if visit is None else ZoneInfo(visit.project.time_zone)


def today() -> date:
    """Return the day that it is in that zone."""
    return datetime.now(zone()).date()


def last_days(number: int) -> Span:
    """List the days up to today."""
    end = today()
    return [end - timedelta(days=back) for back in reversed(range(number))]


def local(at: datetime) -> str:
    """Write a time to the minute, in that zone."""
    return _in_zone(at).replace(tzinfo=None).isoformat(" ", "minutes")


def zone_of(at: datetime) -> str:
    """Write how that zone is called at a time."""
    return _in_zone(at).strftime("%Z")


def aware(text: str) -> str:
    """Add to a time that a form brought the zone in which it was meant; what is no such time stays as it is."""
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=zone()).isoformat() if at.tzinfo is None else text
    except ValueError:
        return text


def _in_zone(at: datetime) -> datetime:
    try:
        return at.astimezone(zone())
    except OverflowError:
        # The first and the last day of the calendar have no other zone.
        return at.astimezone(UTC)
