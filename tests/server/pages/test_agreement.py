"""How far an evaluator agrees with grounding, a judge and people on the same answers, and the offer that follows."""

import pytest

from mesedi_server.quality import MIN_JUDGED, MIN_LABELS
from mesedi_server.store import agreement, assessments, labels
from mesedi_server.store.agreement import Agreement
from mesedi_server.store.assessments import AssessmentRow
from tests.factories import make_score
from tests.server.assessments.answering import make_answer
from tests.server.examining import examine_all
from tests.server.pages.failing import groups_of, run

PAIR = ("ragas", "faithfulness")
FAILS, PASSES = 0.2, 0.9


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def send(tenant, database):
    """Sends an execution: its scores, or one score of its only answer; and what others said of its answers."""

    def send_one(execution_id, *scores, **words: list[str]):
        scores = [make_score(s) if isinstance(s, float) else s for s in scores]
        run(tenant, execution_id, *(make_answer(answer_id=name) for name in words), *scores)
        for answer_id, said in words.items():
            for word in said:
                say(tenant, database, execution_id, answer_id, word)

    return send_one


_WHO = {
    "people": ("Mira", None),
    "key": ("key key-0123", None),
    "key for people": ("key key-0123", "Mira"),
}
"""Who labels, and in whose name."""


def say(tenant, database, execution_id: str, answer_id: str, word: str) -> None:
    """Let a judge (`grounding:met`) or a person (`people:correct`) judge an answer."""
    judge, _, outcome = word.partition(":")
    with database.transaction() as connection:
        pk = connection.exec_driver_sql(
            "SELECT pk FROM executions WHERE project_pk = %(pk)s AND execution_id = %(id)s",
            {"pk": tenant.project.pk, "id": execution_id},
        ).scalar_one()
        if judge in _WHO:
            actor, by = _WHO[judge]
            labels.add(
                connection,
                tenant.project.pk,
                execution_id,
                answer_id,
                label=outcome,
                note=None,
                actor=actor,
                by=by,
            )
            return
        row = AssessmentRow(
            project_pk=tenant.project.pk,
            execution_pk=pk,
            answer_id=answer_id,
            answer_digest=b"",
            evaluator=judge,
            revision="tests",
            outcome=outcome,
        )
        assessments.put(connection, [row])


def compared(tenant, database, floor: float = 0.5) -> dict[str, Agreement]:
    examine_all(database)
    with database.transaction() as connection:
        return agreement.of_pair(connection, tenant.project.pk, PAIR, floor)


@pytest.mark.parametrize(
    ("score", "word", "expected"),
    [
        (FAILS, "grounding:violated", Agreement(both_fail=1)),
        (FAILS, "grounding:met", Agreement(only_evaluator_fails=1)),
        (PASSES, "grounding:met", Agreement(both_pass=1)),
        (PASSES, "grounding:violated", Agreement(only_judge_fails=1)),
        (FAILS, "faithfulness:met", Agreement(only_evaluator_fails=1)),
        (FAILS, "people:wrong", Agreement(both_fail=1)),
        (FAILS, "people:correct", Agreement(only_evaluator_fails=1)),
        (PASSES, "people:correct", Agreement(both_pass=1)),
        (PASSES, "people:wrong", Agreement(only_judge_fails=1)),
        # Who says that the evaluator is wrong says the opposite of its verdict.
        (FAILS, "people:evaluator_wrong", Agreement(only_evaluator_fails=1)),
        (PASSES, "people:evaluator_wrong", Agreement(only_judge_fails=1)),
        # Its own verdict counts before the floor.
        (make_score(0.9, False), "grounding:met", Agreement(only_evaluator_fails=1)),
        (0.5, "grounding:met", Agreement(both_pass=1)),
    ],
)
def test_verdicts_are_laid_side_by_side(tenant, database, send, score, word, expected):
    send("exec-1", score, a=[word])

    assert compared(tenant, database) == {word.partition(":")[0]: expected}


@pytest.mark.parametrize(
    "outcome", ["needs_review", "not_applicable", "missing_evidence", "invalid", "budget_blocked"]
)
def test_what_is_no_verdict_is_not_compared(tenant, database, send, outcome):
    send("exec-1", FAILS, a=[f"grounding:{outcome}"])

    assert compared(tenant, database) == {}


def test_a_score_that_was_not_measured_is_no_verdict(tenant, database, send):
    send("exec-1", make_score(None), a=["grounding:met", "people:correct"])

    assert compared(tenant, database) == {}


def test_the_last_label_of_an_answer_counts(tenant, database, send):
    send("exec-1", FAILS, a=["people:correct", "people:wrong"])

    assert compared(tenant, database) == {"people": Agreement(both_fail=1)}


def test_a_label_of_a_key_is_a_persons_only_in_the_name_of_one(tenant, database, send):
    send("exec-1", FAILS, a=["key:correct"])
    send("exec-2", FAILS, a=["key for people:correct"])
    send("exec-3", FAILS, a=["people:wrong", "key:correct"])

    assert compared(tenant, database) == {"people": Agreement(only_evaluator_fails=1, both_fail=1)}


def test_a_label_of_an_earlier_version_does_not_count(tenant, database, send):
    send("exec-1", FAILS, a=["people:correct"])
    tenant.ingest.post("/events", [make_answer("Changed.")])

    assert compared(tenant, database) == {}


def test_of_several_answers_each_has_its_own_verdict(tenant, database, send):
    scores = [
        make_score(FAILS, answer_id="a"),
        make_score(0.6, answer_id="a"),
        make_score(PASSES, answer_id="b"),
        make_score(8, scale=[0, 10], answer_id="c"),
        make_score(PASSES, False, answer_id="d"),
        make_score(FAILS),
    ]
    met = ["grounding:met"]

    send("exec-1", *scores, a=met, b=met, c=met, d=met, e=met)

    assert compared(tenant, database) == {
        "grounding": Agreement(both_pass=2, only_evaluator_fails=2)
    }


def test_an_answer_that_was_sent_twice_is_still_the_only_one(tenant, database, send):
    send("exec-1", FAILS, a=["grounding:met"])
    tenant.ingest.post("/events", [make_answer("Changed.")])

    assert compared(tenant, database) == {"grounding": Agreement(only_evaluator_fails=1)}


def test_another_floor_makes_other_verdicts(tenant, database, send):
    send("exec-1", FAILS, a=["grounding:met"])

    assert compared(tenant, database, 0.1) == {"grounding": Agreement(both_pass=1)}


def test_others_pairs_and_projects_are_not_looked_at(tenant, other, database, send):
    send("exec-1", make_score(FAILS, pair="ragas/other"), a=["grounding:met"])

    assert compared(tenant, database) == {}
    assert compared(other, database) == {}


def seen(tenant, database, viewer, project):
    examine_all(database)
    return viewer.open(f"{project}/groups/{groups_of(tenant)[0]}")


@pytest.fixture
def over_strict(send) -> None:
    """A pair whose failing answers grounding and people find correct."""
    for number in range(MIN_JUDGED):
        label = ["people:correct"] if number < MIN_LABELS else []
        send(f"exec-{number}", FAILS, a=["grounding:met", *label])


@pytest.mark.usefixtures("over_strict")
def test_an_evaluator_that_fails_right_answers_is_offered_as_over_strict(
    member, tenant, database, project
):
    page = seen(tenant, database, member, project)

    assert "people found 5 of 5 correct, and grounding 20 of 20" in page.text
    assert not page.text.count("The evaluator is over-strict, says")
    button = "Mark it as over-strict"
    marked = member.send(page.form_with(button), button)
    assert "The evaluator is over-strict, says" in marked.text
    assert "of its failing answers people found 5 of 5 correct, grounding 20 of 20" in marked.text
    assert not marked.has_button(button)


@pytest.mark.usefixtures("over_strict")
def test_a_viewer_sees_the_numbers_and_no_button(viewer, tenant, database, project):
    page = seen(tenant, database, viewer, project)

    assert "The evaluator looks over-strict." in page.text
    assert not page.has_button("Mark it as over-strict")


@pytest.mark.usefixtures("over_strict")
def test_people_who_find_the_answers_wrong_take_the_offer_back(
    viewer, tenant, database, project, send
):
    for number in range(2):
        send(f"exec-wrong-{number}", FAILS, a=["people:wrong"])

    page = seen(tenant, database, viewer, project)

    assert "looks over-strict" not in page.text
    assert "Too early" not in page.text


def test_numbers_stand_on_the_page_and_people_apart(viewer, tenant, database, project, send):
    send("exec-1", FAILS, a=["grounding:met", "people:wrong"])
    send("exec-2", PASSES, a=["grounding:met"])

    page = seen(tenant, database, viewer, project)

    assert "People's labels 1 1 0 0 0 100 %" in page.text
    assert "Grounding 2 0 1 1 0 50 %" in page.text
    assert "Too early to call it over-strict" in page.text
    assert (
        "people have labelled 1 of at least 5, grounding has judged 1 of at least 20" in page.text
    )


def test_the_page_says_that_grounding_has_seen_failing_answers_only(
    viewer, tenant, database, project, send
):
    send("exec-1", FAILS, a=["grounding:violated"])
    said = "Grounding has seen the answers of failing executions only"

    before = seen(tenant, database, viewer, project)
    tenant.admin.put("/project/assesses-all", {"assesses_all": True})

    assert said in before.text
    assert before.links["assesses every answer"] == f"{project}/settings"
    assert said not in seen(tenant, database, viewer, project).text


def test_without_a_common_answer_the_page_says_so(viewer, tenant, database, project, send):
    send("exec-1", FAILS)

    page = seen(tenant, database, viewer, project)

    assert "No answer has both its verdict and another one yet" in page.text
