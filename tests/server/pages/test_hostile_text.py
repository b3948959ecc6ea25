"""Whatever a client calls its things, pages show it as text and stay whole."""

import pytest

from mesedi_server.schemas import execution_ids
from tests.factories import make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.pages.browsing import Browser, Page
from tests.server.pages.failing import fail, groups_of, run

NAMES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg/onload=alert(3)>",
    "</title></textarea></pre>",
    "javascript:alert(4)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;&amp;amp;",
    "x" * 256,
    "\u05d0\u05d1\u202eevil\u202c\u2067",
    "\U0001f994\u200d\U0001f525 \u0301\u0301",
    "line\nbreak\r\ttab\x0b\x1b[31m\x7f",
    " ",
    "../../etc/passwd",
    "a:b:c",
    "%3Cscript%3E%00",
]
OURS = {
    *(
        "a",
        "bdi",
        "blockquote",
        "body",
        "button",
        "caption",
        "code",
        "datalist",
        "dd",
        "details",
        "div",
        "dl",
    ),
    *(
        "dt",
        "fieldset",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "head",
        "header",
        "html",
        "input",
        "label",
        "legend",
        "li",
    ),
    *(
        "link",
        "main",
        "meta",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "small",
        "span",
        "strong",
    ),
    *("summary", "table", "tbody", "td", "th", "thead", "time", "title", "tr", "ul"),
    *("article", "figure", "figcaption", "line", "path", "rect", "svg", "text", "textarea"),
}


def assert_whole(page: Page) -> None:
    """Every element closes where it should (the reader checks), is one of ours, and runs nothing."""
    assert page.status == 200
    assert page.tags <= OURS
    attributes = {name for _, found in page.elements for name in found}
    assert not [name for name in attributes if name.startswith("on")]
    assert all(href.startswith(("/", "#")) for href in page.links.values())


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.mark.parametrize("name", NAMES)
def test_names_are_text_on_every_page(viewer, tenant, database, project, name):
    evaluator = name if name.strip() else "judge"
    scores = [
        make_score(0.1, evaluator_id=evaluator, metric_type=name, reason=name * 3),
        make_event(event_type=name, payload={name: [name]}),
        make_event(
            event_type="validator_result",
            payload={"name": name, "passed": False, "message": name, "category": name},
        ),
    ]
    facts = dict.fromkeys(("release", "environment", "tenant_id", "input_summary"), name)
    # Not every name can be an execution's.
    execution_id = name if execution_ids.fault(name) is None else "exec-1"
    fail(tenant, database, execution_id, *scores, **facts, parent_execution_id=name)

    listed = viewer.open(f"{project}/groups")
    groups = [viewer.open(f"{project}/groups/{group}") for group in groups_of(tenant)]
    runs = viewer.open(f"{project}/executions")
    run = viewer.open(
        next(
            href
            for text, href in runs.links.items()
            if text in (execution_id.strip(), " ".join(execution_id.split()))
        )
    )
    thresholds = viewer.open(f"{project}/thresholds/grounding_failure")

    for page in (listed, *groups, runs, run, thresholds):
        assert_whole(page)
    for page in (listed, *groups, runs, run):
        assert name in page.names
    assert f"{evaluator}:{name}" in thresholds.names


@pytest.mark.parametrize("name", NAMES)
def test_what_people_write_is_text_too(staff, tenant, database, project, name):
    browser = staff.browser("member", f"{name} {staff.tenant.project.pk}")
    group = f"{project}/groups/{fail(tenant, database)}"
    floor = f"{project}/thresholds/grounding_failure"

    resolved = browser.send(browser.open(group).form_with("Resolve"), "Resolve", reason=name)
    strict = "The evaluator is over-strict"
    marked = browser.send(resolved.form_with(strict), strict, note=name)
    saved = browser.send(
        browser.open(floor).form_with("Save"), "Save", mean_floor="0.4", reason=name
    )
    filtered = browser.call("GET", f"{project}/groups", query_string={"q": name, "evaluator": name})

    for page in (resolved, marked, saved, Page(filtered)):
        assert_whole(page)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused_is_shown_as_text(staff, member, project, name):
    form = member.open(f"{project}/thresholds/grounding_failure").form_with("Save")

    refused = member.send(form, "Save", mean_floor=name, reason=name)
    lost = Page(member.call("GET", f"{project}/groups", query_string={"state": name}))

    for page in (refused, lost):
        page.status = 200 if page.status == 400 else page.status
        assert_whole(page)


def test_what_cannot_be_stored_is_shown_replaced(viewer, tenant, database, project):
    payload = b'{"evaluator_id":"ragas","metric_type":"m","score":NaN,"passed":false,"reason":"a\\u0000b\\ud800"}'
    event = b'[{"event_id":"e1","execution_id":"exec-1","event_type":"eval_score","payload":%s}]'
    assert tenant.ingest.post("/events", event % payload).json["accepted"] == 1
    examine_all(database)

    page = viewer.open(f"{project}/executions/exec-1")

    assert_whole(page)
    assert "a\ufffdb\ufffd" in page.text
    assert "no score measured, 1 unmeasured" in page.text


def test_numbers_of_any_size_are_shown(viewer, tenant, database, project):
    scores = [make_score(score, False) for score in (1e308, 1e308, -1e-300, 0.1234567)]
    fail(tenant, database, "exec-1", *scores)

    page = viewer.open(f"{project}/groups/{groups_of(tenant)[0]}")

    assert_whole(page)
    assert "mean \u2068faithfulness\u2069 5e+307" in page.text


def test_a_project_with_a_hostile_name_is_shown(app, database, staff):
    from mesedi_server.store import people, projects

    with database.transaction() as connection:
        projects.create(connection, "<b>p</b> \u202e")
        operator = people.ensure_operator(connection, "<i>operator</i>")
        token = people.create_sign_in_link(connection, operator)

    page = Browser(app).open(f"/sign-in?token={token}")

    assert_whole(page)
    assert {"<b>p</b> \u202e", "<i>operator</i>"} <= set(page.names)


def test_an_empty_execution_breaks_nothing(viewer, tenant, database, project):
    run(tenant, "exec-1")
    tenant.ingest.post("/executions", make_execution("exec-2", status="odd <status>"))
    tenant.ingest.post("/events", [make_event(execution_id="exec-3", payload=None)])
    examine_all(database)

    for name in ("exec-1", "exec-2", "exec-3"):
        assert_whole(viewer.open(f"{project}/executions/{name}"))
