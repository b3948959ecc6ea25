"""What grounding and a judge found stands on the pages: marked in the texts, in words, and summed up over a group."""

import re

import pytest

from mesedi_server.roads import MIN_ANSWERS
from mesedi_server.store import answers, assessments, projects
from mesedi_server.store.assessments import AssessmentRow
from mesedi_server.tasks.assess import assess_all
from tests.factories import make_event, make_score
from tests.server.assessments.answering import make_answer
from tests.server.examining import examine_all
from tests.server.pages.browsing import Page
from tests.server.pages.failing import fail, groups_of, run


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def shown(viewer, tenant, database, project):
    """Sends a failing answer, lets it be assessed, and opens its group's page."""

    def show(answer="Take 5 mg [1].", **payload) -> Page:
        sent = make_answer(answer, **payload)
        group = fail(tenant, database, "exec-1", make_score(0.2), sent)
        assess_all(database)
        return viewer.open(f"{project}/groups/{group}")

    return show


def marks(page: Page) -> list[tuple[str, str]]:
    """The marks of a page, the legend's left out: what each is, and what it says."""
    found = [
        (attributes["class"].removeprefix("mark "), attributes["title"])
        for tag, attributes in page.elements
        if tag in ("a", "mark") and (attributes.get("class") or "").startswith("mark ")
        if "title" in attributes
    ]
    return [one for one in found if one[0] != "support"]


def ids(page: Page) -> list[str]:
    return [attributes["id"] for _, attributes in page.elements if "id" in attributes]


def fragments(page: Page) -> list[str]:
    links = [attributes.get("href") or "" for tag, attributes in page.elements if tag == "a"]
    return [link[1:] for link in links if link.startswith("#")]


def link_of(page: Page, title: str) -> dict:
    return next(one for _, one in page.elements if one.get("title") == title)


def keep(database, tenant, evaluator: str, outcome: str, **fields) -> None:
    """Store an assessment of the tenant's only answer."""
    with database.transaction() as connection:
        pk = connection.exec_driver_sql(
            "SELECT pk FROM executions WHERE project_pk = %(pk)s", {"pk": tenant.project.pk}
        ).scalar_one()
        row = AssessmentRow(
            project_pk=tenant.project.pk,
            execution_pk=pk,
            answer_id="a",
            answer_digest=b"",
            evaluator=evaluator,
            revision="tests",
            outcome=outcome,
            **fields,
        )
        assessments.put(connection, [row])


def test_each_finding_is_marked_as_what_it_is(shown):
    page = shown(
        "Take 5 mg [1] for about 2 hours, 9 g, or 7 days [4].",
        question="May I take it for 7 days?",
    )

    assert marks(page) == [
        ("source", "stands in passage 1"),
        ("citation", "cites passage 1"),
        ("ambiguous", "cannot be compared exactly: it needs a reader"),
        ("unmatched", "stands in no passage, nor in the question"),
        ("question", "taken from the question"),
        ("unresolved", "there is no passage 4"),
    ]
    assert "Grounding violated 2 of 4 quantities traced, 1 of 2 citations resolved" in page.text
    assert "9 g stands in no passage, nor in the question" in page.text
    assert "[4] there is no passage 4" in page.text


def test_a_finding_leads_to_its_very_place_and_back(shown):
    page = shown("Take 5 mg.", context={"passages": ["None of it.", "Not 15 mg but 5 mg."]})

    there = link_of(page, "stands in passage 2")
    back = link_of(page, "supports the answer")

    assert (there["href"], back["href"]) == (f"#{back['id']}", f"#{there['id']}")
    assert there["aria-label"] == "5 mg: stands in passage 2"
    assert "Not 15 mg but <a" in page.html


def test_every_place_that_is_led_to_is_there_once(viewer, tenant, database, project):
    answer = "5 mg, 5 mg, 3 days [1] [2] [9] and 8 g"
    for number in range(3):
        events = [make_answer(answer, answer_id=name) for name in ("a", "b")]
        group = fail(tenant, database, f"exec-{number}", make_score(0.2), *events)
    assess_all(database)

    for address in (f"{project}/groups/{group}", f"{project}/executions/exec-0"):
        page = viewer.open(address)

        assert len(fragments(page)) > 10
        assert len(ids(page)) == len(set(ids(page)))
        assert set(fragments(page)) <= set(ids(page))


def test_findings_past_the_cut_are_counted_and_the_execution_has_them(viewer, shown, project):
    page = shown(f"Take 5 mg. {'x ' * 1_500} Then 6 mg, and 3 days [2].")

    assert [name for name, _ in marks(page)] == ["source"]
    assert "3 more findings further on: see the execution" in page.text
    assert page.links["see the execution"].endswith("/executions/exec-1#answers")
    own = viewer.open(f"{project}/executions/exec-1")
    assert [name for name, _ in marks(own)] == ["source", "unmatched", "source", "citation"]
    assert "further on" not in own.text


def test_a_passage_that_is_not_shown_is_named(shown):
    passages = [f"number {number}" for number in range(499)]

    page = shown("Take 5 mg [500].", context={"passages": [*passages, "5 mg"]})

    assert marks(page) == [("source", "stands in passage 500"), ("citation", "cites passage 500")]
    assert fragments(page) == [] or set(fragments(page)) <= set(ids(page))


def test_a_great_many_findings_are_read_in_part_and_counted(shown):
    page = shown("6 mg " * 3_000)

    assert len(marks(page)) == answers.SHORT.findings
    assert f"{3_000 - answers.SHORT.findings:,} more findings further on" in page.text
    assert "and 190 more" in page.text


def test_an_answer_waits_until_it_is_assessed(viewer, tenant, database, project):
    group = fail(tenant, database, "exec-1", make_score(0.2), make_answer())

    page = viewer.open(f"{project}/groups/{group}")

    assert "Grounding not yet assessed" in page.text
    assert "1 is not yet assessed" in page.text
    assert marks(page) == []


def test_a_changed_answer_is_not_shown_with_what_was_found_before(
    viewer, tenant, database, project, shown
):
    shown("Take 5 mg.")
    tenant.ingest.post("/events", [make_answer("Take 5 mg, or 6 mg.")])

    before = viewer.open(f"{project}/executions/exec-1")
    assess_all(database)
    after = viewer.open(f"{project}/executions/exec-1")

    assert "Grounding not yet assessed" in before.text
    assert marks(before) == []
    assert [name for name, _ in marks(after)] == ["source", "unmatched"]


def test_missing_evidence_is_told_with_its_reason(shown):
    page = shown("Take 5 mg.", context={"passages": ["5 mg", ""]})

    assert "Grounding no readable evidence: passage 2 is malformed" in page.text


def test_what_cannot_be_assessed_is_told_with_its_reason(shown):
    page = shown("Take 5 mg.", question=["no text"])

    assert "Grounding could not be assessed: the question is not text" in page.text


def test_an_answer_with_nothing_to_trace_says_so(shown):
    page = shown("Ask a doctor.")

    assert "Grounding nothing to check no quantity and no citation in it" in page.text


HOSTILE = "<script>alert(1)</script>"


def test_what_clients_sent_stays_text_between_marks(shown):
    page = shown(
        f"{HOSTILE} 5 mg {HOSTILE} 9 mg [7] {HOSTILE}",
        context={"passages": [f"{HOSTILE} 5 mg {HOSTILE}"]},
    )

    assert "<script" not in page.html
    assert page.text.count(HOSTILE) == 5
    assert [name for name, _ in marks(page)] == ["source", "unmatched", "unresolved"]


def test_a_judges_claims_are_marked_beside_the_quantities(shown, viewer, tenant, database, project):
    shown("Take 5 mg for 3 days. It is harmless.")
    claims = [
        claim("Take 5 mg for 3 days", "supported", ("passage:1", "Take 5 mg")),
        claim("It is harmless", "unsupported"),
    ]
    verdict = {"claims": claims, "correctness": 6, "dangerous": True, "reasoning": "Says <b>more."}
    verdict |= {"danger_reason": "Overdose."}
    keep(database, tenant, "faithfulness", "violated", content={"verdict": verdict})

    page = viewer.open(f"{project}/executions/exec-1")

    assert "Faithfulness violated 1 of 2 claims supported, correctness 6 of 10" in page.text
    assert "dangerous: Overdose." in page.text
    assert "Take 5 mg for 3 days supported by passage 1" in page.text
    assert "It is harmless unsupported" in page.text
    assert "Says <b>more." in page.text
    assert [name for name, _ in marks(page)] == ["source", "source"]
    kinds = [one["class"] for tag, one in page.elements if tag == "span" and "claim" in str(one)]
    assert [kind for kind in kinds if kind != "claim support"] == ["claim supported"] * 4 + [
        "claim unsupported"
    ]
    assert set(fragments(page)) <= set(ids(page))
    assert len(ids(page)) == len(set(ids(page)))


def test_a_claim_that_overlaps_with_another_can_still_be_led_to(
    shown, viewer, tenant, database, project
):
    shown("Take 5 mg for 3 days.")
    claims = [
        claim("Take 5 mg for", "supported", ("passage:1", "Take 5")),
        claim("for 3 days", "contradicted", ("passage:2", "3 days")),
    ]
    verdict = {"claims": claims, "correctness": 6}
    keep(database, tenant, "faithfulness", "violated", content={"verdict": verdict})

    page = viewer.open(f"{project}/executions/exec-1")

    assert "for 3 days contradicted by passage 2" in page.text
    assert set(fragments(page)) <= set(ids(page))


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("invalid", "could not be assessed"),
        ("unknown_outcome", "the judge's answer never came"),
        ("budget_blocked", "the budget is used up"),
    ],
)
def test_a_judge_that_said_nothing_is_told_with_the_reason(
    shown, viewer, tenant, database, project, outcome, words
):
    shown()
    keep(database, tenant, "faithfulness", outcome, reason="claims[0] has <no> text")

    page = viewer.open(f"{project}/executions/exec-1")

    assert f"Faithfulness {words}: claims[0] has <no> text" in page.text


def test_a_passing_answer_says_nothing_of_grounding(viewer, tenant, database, project):
    fail(tenant, database, "exec-0")
    fail(tenant, database, "exec-1", make_score(0.9), make_answer())
    assess_all(database)

    page = viewer.open(f"{project}/executions/exec-1")

    assert "Answer Take 5 mg [1]." in page.text
    assert "Grounding" not in page.text


def send_group(tenant, database, sent: list[str], **payload) -> str:
    for number, answer in enumerate(sent):
        event = make_answer(answer, **payload)
        group = fail(tenant, database, f"exec-{number}", make_score(0.2), event)
    assess_all(database)
    return group


def test_a_group_is_summed_up_and_a_road_suggested(viewer, tenant, database, project):
    sent = ["9 g [7]"] * 5 + ["5 mg and 9 g"] * 7 + ["5 mg"] * 5 + ["Ask a doctor."] * 3
    group = send_group(tenant, database, sent)

    page = viewer.open(f"{project}/groups/{group}")

    assert (
        "Of the latest 20 failing answers, 60 % have an unmatched quantity,"
        " 25 % an unresolved citation, 0 % no readable evidence." in page.text
    )
    assert "Look at the prompt first. 12 answers of 20 had passages" in page.text
    assert "the retrieval 0 %, the prompt 60 %, the evaluator 25 %" in page.text


def test_answers_without_any_passage_point_to_the_retrieval(viewer, tenant, database, project):
    group = send_group(tenant, database, ["Within 14 days."] * 20, context={"excerpts": []})

    page = viewer.open(f"{project}/groups/{group}")

    assert "0 % no readable evidence, 100 % no passage at all." in page.text
    assert "Look at the retrieval first. 20 answers of 20 had nothing to lean on" in page.text
    assert "0 without readable evidence, 20 without any passage" in page.text
    assert "without any passage" in page.links


@pytest.mark.parametrize(
    ("is_on", "words"),
    [(False, "not assessed (no score of it fails)"), (True, "not yet assessed")],
)
def test_what_will_not_be_assessed_is_not_said_to_wait(
    viewer, tenant, database, project, is_on, words
):
    failed = {"name": "schema", "passed": False}
    for name, scores in {"exec-1": [make_score(0.2)], "exec-2": []}.items():
        checked = make_event(event_type="validator_result", payload=failed)
        run(tenant, name, make_answer(), checked, *scores)
    examine_all(database)
    assess_all(database)
    with database.transaction() as connection:
        projects.change(connection, tenant.project.pk, {"assesses_all": is_on}, actor="us")

    pages = [viewer.open(f"{project}/groups/{group}") for group in groups_of(tenant)]

    [page] = [page for page in pages if "schema" in page.text]
    assert f"Of the latest 2 failing executions, 1 is {words}" in page.text


def test_a_few_answers_suggest_no_road(viewer, tenant, database, project):
    group = send_group(tenant, database, ["9 g"] * 2)

    page = viewer.open(f"{project}/groups/{group}")

    assert f"Not enough answers yet to suggest where to look: 2 of {MIN_ANSWERS}." in page.text
    assert all(one.get("aria-label") != "Suggested road" for _, one in page.elements)


def test_passages_of_something_else_point_to_the_retrieval(database, tenant):
    sent = ["8 g and 9 g", "8 g and 5 mg", "8 g", "8 g, 9 g [1]", "8 g, 9 g [5], about 3 days"]
    send_group(tenant, database, sent)

    with database.transaction() as connection:
        pk = connection.exec_driver_sql(
            "SELECT pk FROM failure_groups WHERE project_pk = %(pk)s", {"pk": tenant.project.pk}
        ).scalar_one()
        counts = assessments.counts_of_group(connection, pk)

    assert (counts.answers, counts.unmatched, counts.untraced) == (5, 5, 2)


def test_where_no_answer_came_there_is_nothing_to_trace(viewer, tenant, database, project):
    group = fail(tenant, database)

    page = viewer.open(f"{project}/groups/{group}")

    assert "there is nothing to trace" in page.text
    assert "1 has no recorded answer" in page.text


def test_a_long_number_in_brackets_is_no_passage(shown):
    page = shown(f"See [{'9' * 700}].")

    assert re.search("there is no such passage", page.text)


def claim(text: str, status: str, *evidence: tuple[str, str]) -> dict:
    quotes = [{"source_id": source_id, "quote": quote} for source_id, quote in evidence]
    return {"text": text, "status": status, "evidence": quotes}


@pytest.fixture
def two_answers(viewer, tenant, database, project) -> str:
    """The address of a group of two failing answers, of which one has an unmatched quantity."""
    fail(tenant, database, "exec-right", make_score(0.2), make_answer("Take 5 mg [1]."))
    group = fail(tenant, database, "exec-wrong", make_score(0.2), make_answer("Take 6 mg [1]."))
    assess_all(database)
    return f"{project}/groups/{group}"


def test_a_number_of_the_sums_leads_to_its_answers_and_back(viewer, two_answers):
    page = viewer.open(two_answers)

    chosen = viewer.open(page.links["with an unmatched quantity"].partition("#")[0])

    assert page.links["50 % have an unmatched quantity"] == page.links["with an unmatched quantity"]
    assert "exec-wrong" in chosen.names
    assert "exec-right" not in chosen.names
    assert (
        "Of the latest 2 failing executions, those with an answer with an unmatched quantity."
        in chosen.text
    )
    assert "exec-right" in viewer.open(chosen.links["Show all"].partition("#")[0]).names


def test_a_number_that_is_none_leads_nowhere(viewer, two_answers):
    page = viewer.open(two_answers)

    assert "without readable evidence" in page.text
    assert "without readable evidence" not in page.links


def test_the_last_failure_is_the_last_of_all(viewer, tenant, database, two_answers):
    fail(tenant, database, "exec-last", make_score(0.11))

    page = viewer.open(f"{two_answers}?finding=unmatched")

    assert "0.11" in page.text.partition("Last failure:")[2].partition(" Group ")[0]


@pytest.mark.parametrize("finding", ["waiting", "%00", "unmatched%00'", "1=1", "x" * 3000])
def test_a_finding_that_no_sum_has_is_refused(viewer, two_answers, finding):
    page = viewer.open(f"{two_answers}?finding={finding}")

    assert page.status == 400
    assert "Finding: one of unmatched," in page.text


def test_a_group_without_assessments_has_no_executions_with_a_finding(
    viewer, tenant, database, project
):
    page = viewer.open(f"{project}/groups/{fail(tenant, database)}?finding=met")

    assert page.status == 200
    assert "Failing executions Of the latest 1 failing execution, those" in page.text
    assert "None." in page.text
