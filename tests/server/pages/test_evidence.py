"""What a group's page shows of its failing executions: question, answer, passages, scores, reasons, trace."""

import re

import pytest

from mesedi_server.store import answers, projects
from tests.factories import make_event, make_score
from tests.server.pages.failing import fail


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


def make_answer(answer_id="ans-1", **payload) -> dict:
    plain = {
        "answer_id": answer_id,
        "question": "How long can I return it?",
        "answer": "Within 60 days.",
        "context": {"excerpts": ["Within 30 days.", "Unused goods only."]},
    }
    return make_event(event_type="answer", payload=plain | payload)


def opened(viewer, tenant, database, project, *events):
    """The page of the group that an execution with these events is in."""
    return viewer.open(f"{project}/groups/{fail(tenant, database, 'exec-1', *events)}")


def test_the_answer_stands_beside_the_reason(viewer, tenant, database, project):
    score = make_score(0.2, False, reason="No passage says 60.", answer_id="ans-1")

    page = opened(viewer, tenant, database, project, make_answer(), score)

    card = page.text.partition("Failing executions")[2]
    place = 0
    for text in (
        "exec-1",
        "failed by the evaluator's own verdict",
        "0.20 failed No passage says 60.",
        "Question How long can I return it?",
        "Answer Within 60 days.",
        "2 retrieved passages Within 30 days. Unused goods only.",
    ):
        place = card.index(text, place)


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ({"passages": ["one"]}, ["one"]),
        ({"documents": [{"id": 7, "text": "two"}]}, ["two"]),
        ({"sources": [{"content": "three"}]}, ["three"]),
        ({"context": [{"body": "four"}]}, ["four"]),
        ({"passages": ["later"], "excerpts": ["first"]}, ["first"]),
        ({"excerpts": None, "passages": ["not tried"]}, []),
        ({"excerpts": "no list"}, []),
        ({"excerpts": [{"text": "", "content": "not tried"}, 5, None]}, ["", "", ""]),
        (["a", {"text": "b"}], ["a", "b"]),
        ("text", []),
        (None, []),
    ],
)
def test_passages_are_found_where_clients_put_them(database, tenant, context, shown):
    fail(tenant, database, "exec-1", make_score(0.2), make_answer(context=context))

    [found] = read_answers(database, tenant)

    assert found.passages == shown
    assert found.passage_count == len(shown)


def test_the_last_answer_of_an_id_counts(database, tenant):
    versions = [make_answer(answer=text) for text in ("first", "second", "third")]
    fail(tenant, database, "exec-1", make_score(0.2), *versions, make_answer("other"))

    assert [one.answer for one in read_answers(database, tenant)] == ["third", "Within 60 days."]


def without_id(text: str, **payload) -> dict:
    sent = make_answer(answer=text, **payload)
    return sent | {"payload": {k: v for k, v in sent["payload"].items() if k != "answer_id"}}


@pytest.mark.parametrize("names", [("", None), (None, ""), ("x" * 256 + "a", "x" * 256 + "b")])
def test_what_counts_as_one_id_is_one_answer_on_pages_and_in_datasets(
    viewer, tenant, database, project, names
):
    versions = [make_answer(name, answer=f"Take {n} mg.") for n, name in enumerate(names, 5)]
    if "" in names:
        versions.append(without_id("Take 7 mg."))
    group = fail(tenant, database, "exec-1", make_score(0.2, answer_id=names[0]), *versions)
    last = versions[-1]["payload"]["answer"]

    page = viewer.open(f"{project}/groups/{group}")
    with tenant.read.get(f"/failure-groups/{group}/dataset") as download:
        dataset = download.get_data(as_text=True)

    assert [one.answer for one in read_answers(database, tenant)] == [last]
    assert f"Answer {last}" in page.text
    assert re.findall(r"Take \d mg", dataset) == [last.removesuffix(".")]


def test_a_score_of_the_answer_without_an_id_shows_that_answer(viewer, tenant, database, project):
    events = [without_id("Take 7 mg."), make_answer("b"), make_score(0.2, answer_id="")]

    page = opened(viewer, tenant, database, project, *events)

    assert "Answer Take 7 mg." in page.text
    assert "Within 60 days." not in page.text


@pytest.mark.parametrize(("is_upright", "worst"), [(True, "0.10"), (False, "0.90")])
def test_of_many_scores_the_worst_are_shown(viewer, tenant, database, project, is_upright, worst):
    scores = [
        make_score(number / 10, higher_is_better=is_upright, reason=f"reason {number}")
        for number in range(1, 10)
    ]

    page = opened(viewer, tenant, database, project, make_score(0.5, False), *scores)

    assert f"{worst} reason" in page.text.partition("Failing executions")[2]


def test_much_is_cut_and_the_rest_is_counted(viewer, tenant, database, project):
    passages = [f"passage {number} " + "x" * 5_000 for number in range(200)]
    long = make_answer(answer="y" * 9_000, context={"excerpts": passages})

    page = opened(viewer, tenant, database, project, make_score(0.2), long)

    assert "9,000 characters in all" in page.text
    assert "200 retrieved passages" in page.text
    assert f"and {200 - answers.SHORT.passages} more" in page.text
    assert len(page.html) < 100_000


@pytest.mark.parametrize("payload", [[], "text", None, {"answer": None}, {"answer": "  "}, {}])
def test_an_answer_without_its_text_breaks_nothing(viewer, tenant, database, project, payload):
    odd = make_event(event_type="answer", payload=payload)

    page = opened(viewer, tenant, database, project, make_score(0.2), odd)

    assert page.status == 200
    assert "Answer empty" in page.text


def test_of_several_answers_that_which_was_judged_is_shown(viewer, tenant, database, project):
    events = [make_answer("a", answer="good one"), make_answer("b", answer="bad one")]
    score = make_score(0.2, answer_id="b")

    page = opened(viewer, tenant, database, project, *events, score)

    assert "bad one" in page.text
    assert "good one" not in page.text


def test_an_evaluator_that_does_not_say_which_gets_all_answers(viewer, tenant, database, project):
    events = [make_answer("a", answer="one"), make_answer("b", answer="two")]

    page = opened(viewer, tenant, database, project, *events, make_score(0.2))

    assert "Answer one" in page.text
    assert "Answer two" in page.text


def test_where_no_answer_came_the_page_says_how_to_send_it(viewer, tenant, database, project):
    page = opened(viewer, tenant, database, project, make_score(0.2))

    assert "record_answer" in page.text


def test_scores_that_failed_come_first_and_the_rest_is_counted(viewer, tenant, database, project):
    scores = [make_score(0.1 * number, reason=f"r{number}") for number in range(1, 8)]

    page = opened(viewer, tenant, database, project, *scores, make_score(0.9, False, reason="bad"))

    card = page.text.partition("Failing executions")[2]
    assert card.index("0.90 failed bad") < card.index("0.10 r1") < card.index("0.20 r2")
    assert f"and {8 - answers.MAX_SCORES} more" in card
    assert "r7" not in card


@pytest.mark.parametrize(
    ("pattern", "address"),
    [
        ("https://traces.example/t/{execution_id}", "https://traces.example/t/a%20b%2F%3Cc%3E"),
        (
            "http://localhost:3000/?q={execution_id}&x=1",
            "http://localhost:3000/?q=a%20b%2F%3Cc%3E&x=1",
        ),
        ("javascript:alert('{execution_id}')", None),
        (None, None),
    ],
)
def test_an_execution_leads_to_its_trace(viewer, tenant, database, project, pattern, address):
    with database.transaction() as connection:
        wanted = {"trace_url_template": pattern}
        projects.change(connection, tenant.project.pk, wanted, actor="us")
    scores = [{**make_score(0.2), "execution_id": "a b/<c>"}]
    tenant.ingest.post("/events", scores)
    group = fail(tenant, database, "exec-0", make_score(0.9))

    on_group = viewer.open(f"{project}/groups/{group}")
    on_own = viewer.open(f"{project}/executions/a%20b/%3Cc%3E")

    assert on_group.links.get("Trace") == address
    assert on_own.links.get("Open the trace") == address


def test_an_executions_page_shows_what_it_answered(viewer, tenant, database, project):
    fail(tenant, database, "exec-1", make_score(0.2), make_answer())

    page = viewer.open(f"{project}/executions/exec-1")

    assert "Answer Within 60 days." in page.text
    assert "2 retrieved passages" in page.text


def test_the_floor_of_a_pair_can_be_tried_from_its_group(member, tenant, database, project):
    group = fail(tenant, database, "exec-1", make_score(0.2, pair="a:b <i>/m"))
    form = member.open(f"{project}/groups/{group}").form_with("See what it would change")
    fields = dict(form.filled("See what it would change", {"floor": "0.1"}))

    page = member.open(f"{form.action}?pair={fields['pair'].replace('%', '%25')}&floor=0.1")
    seen = member.send(page.form_with("Preview"), "Preview")

    assert "The floor that you asked for is filled in" in page.text
    assert "1 would stop" in seen.text
    assert tenant.read.get("/me/detector-thresholds/grounding_failure").json["version"] == 0


@pytest.mark.parametrize("query", ["pair=a:m&floor=2", "pair=a:m&floor=x", "floor=0.1", "pair=x"])
def test_a_floor_that_cannot_be_is_not_filled_in(member, tenant, project, query):
    page = member.open(f"{project}/thresholds/grounding_failure?{query}")

    assert page.status == 200
    assert "filled in below" not in page.text


def read_answers(database, tenant):
    with database.transaction() as connection:
        pk = connection.exec_driver_sql(
            "SELECT pk FROM executions WHERE project_pk = %(project)s",
            {"project": tenant.project.pk},
        ).scalar_one()
        return answers.of_executions(connection, [pk], answers.SHORT)[pk]
