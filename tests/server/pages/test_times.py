"""Times on pages: the project's zone to read, the exact UTC on hover."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from mesedi_server.store import projects
from mesedi_server.store.tables import executions
from tests.server.pages.failing import fail

NIGHT = datetime(2026, 10, 25, 0, 30, 5, 250000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "at", "shown"),
    [
        ("UTC", NIGHT, "2026-10-25 00:30 UTC"),
        ("Europe/Berlin", NIGHT, "2026-10-25 02:30 CEST"),
        ("Europe/Berlin", NIGHT.replace(hour=1), "2026-10-25 02:30 CET"),
        ("Pacific/Kiritimati", NIGHT, "2026-10-25 14:30 +14"),
        ("Etc/GMT+12", NIGHT, "2026-10-24 12:30 -12"),
        ("Asia/Kathmandu", NIGHT, "2026-10-25 06:15 +0545"),
        ("Pacific/Kiritimati", datetime(9999, 12, 31, 23, tzinfo=UTC), "9999-12-31 23:00 UTC"),
        ("Etc/GMT+12", datetime(1, 1, 1, tzinfo=UTC), "0001-01-01 00:00 UTC"),
    ],
)
def test_a_time_is_read_in_the_projects_zone(viewer, tenant, database, zone, at, shown):
    fail(tenant, database)
    with database.transaction() as connection:
        projects.change(connection, tenant.project.pk, {"time_zone": zone}, actor="us")
        own = executions.c.project_pk == tenant.project.pk
        connection.execute(update(executions).where(own).values(started_at=at))

    page = viewer.open(f"/p/{tenant.project.project_id}/executions")

    assert shown in page.text
    exact = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert exact in [a.get("title") for tag, a in page.elements if tag == "time"]
