"""Times as a page shows and takes them: in the project's zone; outside projects in UTC."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from flask import g
from markupsafe import Markup

from mesedi_server.pages import wording
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


def tag(at: datetime) -> Markup:
    """Write a time to the minute, in that zone and with its name, and the exact UTC for whoever points at it."""
    exact, here = wording.iso(at), _in_zone(at)
    shown = here.replace(tzinfo=None).isoformat(" ", "minutes")
    # A list has dozens of them: a template takes three times as long for each.
    html = (
        f'<time datetime="{exact}" title="{exact}">{shown}'
        f'<span class="zone"> {here.strftime("%Z")}</span></time>'
    )
    return Markup(html)  # noqa: S704 - digits, and names of the time zone database


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
