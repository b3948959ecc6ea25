"""An answer that cannot be assessed holds up no other."""

import logging

import pytest
from sqlalchemy import text

from mesedi_server import assessing
from tests.factories import TOO_DEEP, make_score
from tests.server.assessments.answering import (
    assess,
    assessed,
    fail,
    make_answer,
    outcomes,
    settle,
    waiting,
)

# Damage that the door keeps out, but a restored backup or somebody's own SQL may bring.
NO_FLOAT = "(repeat('9', 5000))::jsonb"

_REFUSES = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.answer_id = 'bad' THEN RAISE 'no room for it'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON assessments FOR EACH ROW EXECUTE FUNCTION refuse();
"""
_TAKES = "DROP TRIGGER IF EXISTS refuse ON assessments; DROP FUNCTION IF EXISTS refuse"


@pytest.fixture
def refused(pipeline):
    """Let the database refuse what is said of the answer `bad`."""

    def run(statements):
        with pipeline.connection() as connection:
            connection.execute(text(statements))

    run(_REFUSES)
    yield lambda: run(_TAKES)
    run(_TAKES)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [(TOO_DEEP, "RecursionError"), (NO_FLOAT, "ValueError")],
    ids=["too deep", "a number of 5,000 digits"],
)
def test_one_that_cannot_be_read_is_invalid(pipeline, damage, kind):
    fail(pipeline, make_answer(answer_id="bad"), make_answer())
    with pipeline.connection() as connection:
        connection.execute(
            text(
                f"UPDATE events SET payload = jsonb_set(payload, '{{context}}', {damage})"
                " WHERE payload ->> 'answer_id' = 'bad' AND project_pk = :project"
            ),
            {"project": pipeline.project.pk},
        )

    assess(pipeline)

    assert outcomes(pipeline) == {"a": "met", "bad": "invalid"}
    assert assessed(pipeline)["bad"].reason == f"it cannot be read: {kind}"
    pipeline.send(make_answer(answer_id="c"))
    settle(pipeline)
    assert len(outcomes(pipeline)) == 3


def test_one_that_cannot_be_kept_is_put_off(pipeline, refused, caplog):
    names = ["exec-1", "exec-bad", "exec-2"]
    for name in names:
        answer_id = "bad" if name == "exec-bad" else "a"
        fail(pipeline, make_answer(answer_id=answer_id, execution_id=name), execution_id=name)

    taken = assess(pipeline)

    assert taken == 3
    assert [outcomes(pipeline, name) for name in names] == [{"a": "met"}, {}, {"a": "met"}]
    assert (waiting(pipeline), assess(pipeline)) == (1, 0)
    [said] = [r for r in caplog.records if r.name == "mesedi_server.assessing"]
    assert said.levelno == logging.ERROR
    assert "put off" in said.getMessage()


def test_it_is_assessed_once_there_is_room(pipeline, refused):
    fail(pipeline, make_answer(answer_id="bad"))
    assess(pipeline)

    refused()
    with pipeline.connection() as connection:
        connection.execute(text("UPDATE assessment_work SET due_at = due_at - interval '1 hour'"))
    assess(pipeline)

    assert outcomes(pipeline) == {"bad": "met"}
    assert waiting(pipeline) == 0


def test_more_than_a_batch_behind_it_is_assessed(pipeline, refused):
    fail(pipeline, make_answer(answer_id="bad", execution_id="exec-bad"), execution_id="exec-bad")
    names = [f"exec-{number}" for number in range(assessing.BATCH + 20)]
    for kind in (
        lambda name: make_score(0.2, execution_id=name),
        lambda n: make_answer(execution_id=n),
    ):
        pipeline.send(*(kind(name) for name in names), settle_s=0)
    pipeline.examine(settle_s=0)

    assess(pipeline)

    assert all(outcomes(pipeline, name) == {"a": "met"} for name in names)
