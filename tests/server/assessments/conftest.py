"""A project of the test's own, with its pipeline and nothing that others left to assess."""

import pytest

from tests.server.detection.pipelines import Pipeline, make_pipeline


@pytest.fixture
def pipeline(database) -> Pipeline:
    with database.transaction() as connection:
        connection.exec_driver_sql("UPDATE executions SET detect_due_at = NULL")
        connection.exec_driver_sql("DELETE FROM assessment_work")
    return make_pipeline(database)
