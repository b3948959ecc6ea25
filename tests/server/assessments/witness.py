"""Who writes down each assessment that is committed, so that none can happen twice unseen."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import text

from tests.server.detection.pipelines import Pipeline

_COME = """
CREATE TABLE witnessed (execution_pk bigint, answer_id text, evaluator text, revision text, digest text);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO witnessed VALUES (NEW.execution_pk, NEW.answer_id, NEW.evaluator, NEW.revision,
        encode(NEW.answer_digest, 'hex'));
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON assessments FOR EACH ROW EXECUTE FUNCTION witness();
"""
_GO = "DROP TRIGGER witness ON assessments; DROP FUNCTION witness; DROP TABLE witnessed"


@dataclass(frozen=True)
class Witness:
    pipeline: Pipeline

    def told(self) -> list[tuple]:
        """Each assessment: execution, answer, evaluator, revision and wording."""
        with self.pipeline.connection() as connection:
            return [tuple(row) for row in connection.execute(text("TABLE witnessed"))]


@contextmanager
def witnessed(pipeline: Pipeline) -> Iterator[Witness]:
    with pipeline.connection() as connection:
        connection.execute(text(_COME))
    try:
        yield Witness(pipeline)
    finally:
        with pipeline.connection() as connection:
            connection.execute(text(_GO))
