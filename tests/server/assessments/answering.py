"""Answers that are sent, and what was made of them."""

from mesedi_server.store import assessments, projects
from mesedi_server.store.assessments import AssessmentRow
from mesedi_server.tasks.assess import assess_all
from tests.factories import make_event, make_score
from tests.server.detection.pipelines import Pipeline

QUESTION = "How much, and for how long?"
PASSAGES = ["Take 5 mg.", "For 3 days."]


def make_answer(answer="Take 5 mg [1].", answer_id="a", execution_id="exec-1", **payload) -> dict:
    """An `answer` event; `payload` overrides its fields."""
    plain = {
        "answer_id": answer_id,
        "question": QUESTION,
        "answer": answer,
        "context": {"passages": PASSAGES},
    }
    return make_event(execution_id, "answer", payload=plain | payload)


def fail(pipeline: Pipeline, *answers: dict, execution_id: str = "exec-1") -> None:
    """A run whose score fails, with these answers; examined."""
    pipeline.run(execution_id, make_score(0.2), *answers)


def assess(pipeline: Pipeline) -> int:
    return assess_all(pipeline.database)


def assessed(pipeline: Pipeline, execution_id: str = "exec-1") -> dict[str, AssessmentRow]:
    """What grounding said of an execution's answers, by their ids."""
    pk = pipeline.execution(execution_id).pk
    with pipeline.connection() as connection:
        rows = assessments.of_executions(connection, [pk])[pk]
    return {row.answer_id: row for row in rows if row.evaluator == assessments.GROUNDING}


def outcomes(pipeline: Pipeline, execution_id: str = "exec-1") -> dict[str, str]:
    return {key: row.outcome for key, row in assessed(pipeline, execution_id).items()}


def assessed_at(pipeline: Pipeline, execution_id: str = "exec-1") -> dict[str, object]:
    """When each answer was assessed last, and in which version of the row."""
    pk = pipeline.execution(execution_id).pk
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT answer_id, assessed_at, xmin::text FROM assessments WHERE execution_pk = %(pk)s",
            {"pk": pk},
        )
        return {name: version for name, *version in rows}


def waiting(pipeline: Pipeline) -> int:
    """How many rows of work there are."""
    with pipeline.connection() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM assessment_work").scalar_one()


def assess_everything(pipeline: Pipeline, *, is_on: bool = True) -> None:
    """Switch the assessing of all answers on, or off."""
    with pipeline.connection() as connection:
        projects.change(connection, pipeline.project.pk, {"assesses_all": is_on}, actor="us")


def settle(pipeline: Pipeline) -> None:
    """Assess and examine until both have nothing to do."""
    for _ in range(10):
        if assess(pipeline) + pipeline.examine(settle_s=0) == 0:
            return
    raise AssertionError("one makes work for the other, again and again")
