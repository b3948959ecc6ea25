"""A page asks the database as often for much as for little."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import event

from mesedi_server.tasks.assess import assess_all
from tests.factories import make_event, make_score
from tests.server.assessments.answering import make_answer
from tests.server.examining import examine_all
from tests.server.pages.browsing import Browser
from tests.server.pages.failing import fail, groups_of, run

PAGES = {
    "/groups": 7,
    "/groups?state=all&days=all&q=a&class=crashes&evaluator=b&metric=c": 7,
    "/groups?release=r1&environment=e&days=90": 7,
    "/groups/{group}": 15,
    "/groups/{group}?days=90": 15,
    "/executions": 4,
    "/executions?q=exec&release=r1": 4,
    "/executions/exec-0": 8,
    "/thresholds": 3,
    "/thresholds/grounding_failure": 5,
    "/settings": 2,
    "/settings/keys": 3,
    "/settings/members": 3,
}
"""How many statements each page takes: two of them find who is asking."""


@pytest.fixture
def statements(database) -> Iterator[list[str]]:
    """The statements that were sent."""
    sent: list[str] = []

    def note(connection, cursor, statement, *rest) -> None:
        sent.append(statement)

    event.listen(database._engine, "before_cursor_execute", note)
    yield sent
    event.remove(database._engine, "before_cursor_execute", note)


def counted(statements: list[str], visit: Callable[[], object]) -> int:
    statements.clear()
    visit()
    return len(statements)


def fill(tenant, database, executions: int) -> None:
    """Send executions of today that fail in two ways and have some events more."""
    now = datetime.now(UTC).isoformat()
    for number in range(executions):
        scores = [make_score(0.2), make_score(0.1, pair=f"judge-{number}/m")]
        answer = make_answer("Take 5 mg [1], or 6 mg.")
        run(tenant, f"exec-{number}", *scores, answer, make_event(), started_at=now)
        tenant.admin.put(
            "/me/detector-thresholds/grounding_failure/mean_floor", {"value": 0.4 + number / 1000}
        )
    examine_all(database)
    assess_all(database)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("executions", [1, 60])
def test_the_number_of_statements_is_always_the_same(
    viewer: Browser, tenant, database, statements, path, executions
):
    fill(tenant, database, executions)
    address = f"/p/{tenant.project.project_id}{path.format(group=groups_of(tenant)[-1])}"

    number = counted(statements, lambda: viewer.open(address))

    assert number == PAGES[path]


@pytest.mark.parametrize("executions", [1, 60])
def test_a_preview_takes_as_many_statements(viewer, tenant, database, statements, executions):
    fill(tenant, database, executions)
    address = f"/p/{tenant.project.project_id}/thresholds/grounding_failure"
    form = viewer.open(address).form_with("Preview")

    number = counted(statements, lambda: viewer.send(form, "Preview", mean_floor="0.01"))

    assert number == 11


def test_an_error_page_asks_nothing_more(viewer, tenant, database, statements):
    fail(tenant, database)

    number = counted(
        statements, lambda: viewer.open(f"/p/{tenant.project.project_id}/groups/unknown")
    )

    assert number == 3
