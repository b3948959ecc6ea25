import pytest

from tests.server.judges.asking import Judged


@pytest.fixture
def judged(tenant, database) -> Judged:
    """A project of the test's own; what other tests left waits no longer."""
    with database.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM judge_work")
    return Judged(tenant, database)
