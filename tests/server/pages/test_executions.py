"""The list of executions, and an execution's page."""

import pytest

from mesedi_server.pages import executions
from mesedi_server.pages.wording import NOTHING
from tests.factories import at, make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.pages.failing import fail, run


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


def test_an_empty_project_has_no_executions(viewer, project):
    page = viewer.open(f"{project}/executions")

    assert page.status == 200
    assert "has sent nothing yet" in page.text


def test_the_list_shows_what_is_known(viewer, tenant, database, project):
    run(tenant, "exec-1", make_score(0.9), release="r1", environment="production")
    examine_all(database)
    tenant.ingest.post("/executions", make_execution("exec-2"))

    page = viewer.open(f"{project}/executions")

    assert "exec-1 completed r1 production 1.0 s 2026-12-01 12:00 UTC" in page.text
    assert "exec-2 started not examined yet" in page.text


@pytest.mark.parametrize(
    ("query", "is_listed"),
    [
        ("?status=completed", True),
        ("?status=crashed", False),
        ("?q=EXEC", True),
        ("?q=other", False),
        ("?evaluator=ragas&metric=faithfulness", True),
        ("?evaluator=hhem", False),
        ("?release=r1", True),
        ("?environment=staging", False),
    ],
)
def test_filters_are_in_the_address(viewer, tenant, database, project, query, is_listed):
    fail(tenant, database, release="r1", environment="production")

    page = viewer.open(f"{project}/executions{query}")

    assert ("exec-1" in page.links) is is_listed
    assert ("No execution matches" in page.text) is not is_listed


def test_all_executions_are_reached_page_by_page(viewer, tenant, project):
    sent = {f"exec-{number:02}" for number in range(executions.ROWS + 2)}
    tenant.ingest.post("/events", [make_event(execution_id=name) for name in sorted(sent)])

    first = viewer.open(f"{project}/executions")
    second = viewer.open(first.links["Next page"])

    listed = [text for page in (first, second) for text in page.links if text in sent]
    assert sorted(listed) == sorted(sent)


def test_an_execution_shows_its_facts(viewer, tenant, project):
    run(tenant, "parent")
    facts = {"release": "r1", "tenant_id": "acme", "parent_execution_id": "parent"}
    tenant.ingest.post("/executions", make_execution("exec-1", **facts, input_summary="q" * 4000))
    close = make_close(total_tokens_in=12, estimated_cost_usd=0.0123, output_summary="an answer")
    tenant.ingest.patch("/executions/exec-1", close)

    page = viewer.open(f"{project}/executions/exec-1")

    for fact in (
        "Status completed",
        "Duration 1.0 s",
        "Release r1",
        "Tenant acme",
        "Part of parent",
        "SDK python 0.7.0",
        "Tokens in, out 12, 0",
        "Cost 0.0123 USD",
        "Output an answer",
        "4,000 characters in all",
    ):
        assert fact in page.text
    assert "q" * 3001 not in page.text


def test_an_execution_shows_why_it_is_in_its_groups(viewer, tenant, database, project):
    scores = [make_score(0.2, reason="no passage says so"), make_score(0.9, False, "hhem/x")]
    fail(tenant, database, "exec-1", *scores)

    page = viewer.open(f"{project}/executions/exec-1")

    assert "mean 0.20 over 1 score, floor 0.50 (default)" in page.text
    assert "no passage says so" in page.text
    assert "failed by the evaluator's own verdict (1 of 1 score), mean 0.90" in page.text
    assert page.links["grounding_failure:ragas:faithfulness"].startswith(f"{project}/groups/grp-")


def test_scores_are_summed_up_by_pair(viewer, tenant, database, project):
    scores = [make_score(0.2), make_score(0.6), make_score(None), make_score(0.4, False)]
    fail(tenant, database, "exec-1", *scores, make_score(0.1, pair="x/y", higher_is_better=False))

    page = viewer.open(f"{project}/executions/exec-1")

    assert "ragas · faithfulness 0.40 0.20 0.60 4 1 1" in page.text
    assert (
        f"x · y lower is better: no floor applies 0.10 0.10 0.10 1 {NOTHING} {NOTHING}" in page.text
    )


def test_what_the_cap_cut_is_counted_and_named(viewer, tenant, database, project):
    scores = [make_score(0.1, pair=f"judge-{number:02}/m") for number in range(23)]
    fail(tenant, database, "exec-1", *scores)

    page = viewer.open(f"{project}/executions/exec-1")

    assert "3 more failures, not grouped" in page.text
    for number in (20, 21, 22):
        assert f"grounding_failure:judge-{number}:m" in page.text
    assert page.text.count("floor 0.50 (default)") == 20


def test_an_execution_that_was_not_examined_says_so(viewer, tenant, project):
    tenant.ingest.post("/events", [make_score(0.2)])

    page = viewer.open(f"{project}/executions/exec-1")

    assert "Examined not yet" in page.text
    assert "Not examined yet." in page.text


def test_the_timeline_shows_scores_at_a_glance_and_payloads_whole(viewer, tenant, project):
    step = make_event(payload={"name": "plan", "metadata": {"depth": 2}})
    run(tenant, "exec-1", step, make_score(0.2, False, reason="because"))

    page = viewer.open(f"{project}/executions/exec-1")

    assert 'checkpoint { "name": "plan", "metadata": { "depth": 2 } }' in page.text
    assert "eval_score ragas · faithfulness 0.20 failed" in page.text
    assert '"reason": "because"' in page.text


def test_a_large_payload_is_cut_and_says_how_large_it_is(viewer, tenant, project):
    run(tenant, "exec-1", make_event(payload={"text": "x" * 1_000_000}))

    page = viewer.open(f"{project}/executions/exec-1")

    assert len(page.html) < 30_000
    assert "The first 3,000 of 1,000,0" in page.text


def test_a_long_timeline_comes_in_pages(viewer, tenant, project):
    events = [make_event(payload={"n": number}) for number in range(executions.EVENTS + 5)]
    run(tenant, "exec-1", *events)

    first = viewer.open(f"{project}/executions/exec-1")
    second = viewer.open(first.links["Next page"])

    assert '{ "n": 99 }' in first.text
    assert '{ "n": 100 }' not in first.text
    assert [f'{{ "n": {n} }}' in second.text for n in (99, 100, 104)] == [False, True, True]
    assert "Next page" not in second.links


@pytest.mark.parametrize("offset", ["-1", "x", "9" * 5000, "99999999"])
def test_an_odd_offset_breaks_nothing(viewer, tenant, project, offset):
    run(tenant, "exec-1", make_event())

    assert viewer.open(f"{project}/executions/exec-1?offset={offset}").status == 200


@pytest.mark.parametrize(
    "execution_id",
    [
        "a/b",
        "a//b",
        "a/",
        "..",
        "a/../b",
        ".",
        "a b?c#d%20e&f",
        "%2e%2e",
        "ü\u202e",
        "'\"<b>",
    ],
)
def test_a_listed_execution_can_be_opened_whatever_it_is_called(
    viewer, tenant, project, execution_id
):
    tenant.ingest.post("/events", [make_event(execution_id=execution_id)])
    listed = viewer.open(f"{project}/executions")
    address = listed.links[execution_id]

    page = viewer.open(address)

    assert page.status == 200
    assert execution_id in page.names
    assert not {"", ".", ".."} & set(address.partition("?")[0].split("/")[1:])


@pytest.mark.parametrize(
    "address", ["executions/never", "executions/%00", "execution?id=%00", "execution"]
)
def test_an_unknown_execution_is_not_found(viewer, project, address):
    assert viewer.open(f"{project}/{address}").status == 404


def test_a_search_looks_further_back_page_by_page(viewer, tenant, database, project, monkeypatch):
    for number in range(7):
        run(tenant, f"exec-{number}", started_at=at(number), release="r1" if number < 2 else "r2")
    monkeypatch.setattr("mesedi_server.store.executions.SEARCHED", 3)

    pages = [viewer.open(f"{project}/executions?release=r1")]
    for _ in range(2):
        further = next(href for text, href in pages[-1].links.items() if "next" in text.lower())
        pages.append(viewer.open(further))

    found = [[text for text in page.links if text.startswith("exec-")] for page in pages]
    assert found == [[], ["exec-1"], ["exec-0"]]
    assert "None of these 3 executions matches." in pages[0].text
    assert not [text for text in pages[-1].links if "next" in text.lower()]
