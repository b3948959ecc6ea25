"""What the list of groups counts, ranks and marks, and how far back it looks."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from mesedi_server.store.tables import executions, failure_groups, projects
from mesedi_server.tasks import moving
from tests.factories import make_score
from tests.server.examining import examine_all
from tests.server.pages.browsing import Page
from tests.server.pages.failing import fail, run


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def received(tenant, database):
    """Sends executions with one score each that were received so many days ago, and examines them."""

    def send(name: str, days_ago: float, *scores: dict, **facts) -> None:
        run(tenant, name, *(scores or [make_score(0.2)]), **facts)
        at = datetime.now(UTC) - timedelta(days=days_ago)
        with database.transaction() as connection:
            connection.execute(
                update(executions)
                .where(executions.c.execution_id == name)
                .where(executions.c.project_pk == tenant.project.pk)
                .values(received_at=at)
            )
        examine_all(database)

    return send


def titles(page: Page) -> list[str]:
    """What the rows are called, in their order."""
    return [text for text in page.links if " · " in text]


def row(page: Page, title: str) -> str:
    """The text of a row behind its title."""
    return page.text.partition(f"{title} ")[2]


def sparkline(page: Page) -> list[int]:
    """The numbers that the first row's bars tell who cannot see them."""
    label = next(
        attributes["aria-label"]
        for tag, attributes in page.elements
        if tag == "svg" and attributes.get("class") == "spark"
    )
    return [int(number) for number in label.rpartition(": ")[2].split(", ")]


def test_what_fails_most_in_the_span_comes_first(viewer, received, project):
    for number in range(3):
        received(f"old-{number}", 20)
    received("new-0", 0, make_score(0.2, pair="hhem/truth"))
    received("new-1", 1, make_score(0.2, pair="hhem/truth"))

    assert titles(viewer.open(f"{project}/groups")) == ["ragas · faithfulness", "hhem · truth"]
    assert titles(viewer.open(f"{project}/groups?days=7")) == ["hhem · truth"]


@pytest.mark.parametrize(
    ("query", "number"), [("?days=7", 1), ("", 2), ("?days=90", 3), ("?days=all", 4)]
)
def test_the_list_counts_the_days_that_the_address_says(viewer, received, project, query, number):
    for name, days_ago in (("a", 1), ("b", 20), ("c", 80), ("d", 200)):
        received(name, days_ago)

    page = viewer.open(f"{project}/groups{query}")

    assert f" {number} 100 % open" in row(page, "ragas · faithfulness")


@pytest.mark.parametrize("query", ["", "?days=7", "?days=90", "?release=r1", "?environment=live"])
def test_the_bars_of_a_row_add_up_to_its_number(viewer, received, project, query):
    for number, days_ago in enumerate((0, 0, 3, 20, 29, 30, 89, 90)):
        received(f"exec-{number}", days_ago, release="r1", environment="live")

    page = viewer.open(f"{project}/groups{query}")

    bars = sparkline(page)
    assert f"{sum(bars)} " in row(page, "ragas · faithfulness").partition(" UTC ")[2]
    assert bars[-1] == 2


@pytest.mark.parametrize("days", ["0", "8", "-7", "x", "7.0", "9" * 50])
def test_a_span_that_is_none_of_ours_is_refused(viewer, project, days):
    assert viewer.open(f"{project}/groups?days={days}").status == 400


def test_the_share_is_of_the_executions_that_carry_the_pair(viewer, received, project):
    for number in range(4):
        received(f"exec-{number}", 1, make_score(0.9 if number else 0.2))
    received("other", 1, make_score(0.9, pair="hhem/truth"))

    page = viewer.open(f"{project}/groups")

    assert " 1 25 % open" in row(page, "ragas · faithfulness")


@pytest.mark.parametrize("query", ["release=r1", "environment=live", "release=r1&environment=live"])
def test_the_page_says_that_no_share_is_known_of_one_release_or_environment(
    viewer, received, project, query
):
    received("exec-1", 1, release="r1", environment="live")

    page = viewer.open(f"{project}/groups?{query}")

    assert " 1 \N{EN DASH} open r1 " in row(page, "ragas · faithfulness")
    assert "Shares are not known under this filter" in page.text
    assert "Shares are not known" not in viewer.open(f"{project}/groups?q=ragas").text


def test_a_row_tells_the_release_of_the_latest_member(viewer, received, project):
    received("exec-2", 2, release="r2")
    received("exec-1", 5, release="r1")

    assert " open r2 " in row(viewer.open(f"{project}/groups"), "ragas · faithfulness")


def test_days_are_those_of_the_projects_zone(viewer, tenant, database, received, project):
    received("exec-1", 0)
    counts = {}
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        with database.transaction() as connection:
            connection.execute(
                update(projects).where(projects.c.pk == tenant.project.pk).values(time_zone=zone)
            )
        moving.move_all(database, run_s=60)
        counts[zone] = sparkline(viewer.open(f"{project}/groups?days=7"))

    # It is today in both, though never the same day.
    assert counts == {zone: [0, 0, 0, 0, 0, 0, 1] for zone in counts}


@pytest.mark.parametrize(("days_old", "is_new"), [(6.9, True), (7.1, False)])
def test_a_group_is_new_for_a_week(viewer, tenant, database, project, days_old, is_new):
    fail(tenant, database)
    first = datetime.now(UTC) - timedelta(days=days_old)
    with database.transaction() as connection:
        connection.execute(
            update(failure_groups)
            .where(failure_groups.c.project_pk == tenant.project.pk)
            .values(first_seen_at=first)
        )

    page = viewer.open(f"{project}/groups")

    assert ("grounding_failure new discovery" in page.text) is is_new


def test_names_are_suggested_where_they_are_typed(viewer, received, project):
    received("exec-1", 1, make_score(0.2, pair="<b>/m"), release="2026.12")

    page = viewer.open(f"{project}/groups")

    suggested = [attributes["value"] for tag, attributes in page.elements if tag == "option"]
    assert {"<b>", "m", "2026.12"}.issubset(suggested)


def test_an_empty_project_names_its_key_and_its_address(member, tenant, project):
    page = member.open(f"{project}/groups")

    key = tenant.ingest.key[:14]
    assert f"{key}…" in page.text
    assert tenant.ingest.key not in page.html
    assert 'base_url="http://localhost"' in page.text


def test_where_the_span_has_nothing_the_page_leads_further_back(viewer, received, project):
    received("exec-1", 40)

    page = viewer.open(f"{project}/groups")
    further = viewer.open(page.links["all days"])

    assert "Nothing fails that needs somebody, in the last 30 days" in page.text
    assert titles(further) == ["ragas · faithfulness"]
