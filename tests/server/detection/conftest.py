"""A project of the test's own, with its pipeline and its workers."""

import pytest

from tests.server.detection.pipelines import Pipeline, make_pipeline


@pytest.fixture
def pipeline(database) -> Pipeline:
    # Workers take whatever is due: nothing that earlier tests left may be.
    with database.transaction() as connection:
        connection.exec_driver_sql("UPDATE executions SET detect_due_at = NULL")
    return make_pipeline(database)
