import pytest

from mesedi_server.config import Settings
from tests.server.judges.asking import SECRET, Judged
from tests.server.pages.people import Staff


@pytest.fixture(scope="module")
def settings(module_database_url, broker_url) -> Settings:
    return Settings(
        database_url=module_database_url,
        broker_url=broker_url,
        secret_key=SECRET,
        private_judges=True,
    )


@pytest.fixture
def judged(tenant, database) -> Judged:
    """A project of the test's own; what other tests left waits no longer."""
    with database.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM judge_work")
    return Judged(tenant, database)


@pytest.fixture
def staff(app, database, tenant) -> Staff:
    """People of the test's project."""
    return Staff(app, database, tenant)
