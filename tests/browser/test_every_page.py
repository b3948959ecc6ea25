"""What holds of every page, whatever clients send: everybody can read it, light and dark, on a laptop and a phone."""

import json
import math

import pytest

from tests.browser.walking import (
    PHONE,
    broken_words,
    is_wider_than_the_window,
    open_help_desk,
    wait_for,
)
from tests.factories import make_close, make_execution, make_score

LONG = "metric_" + "x" * 249
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg/onload=alert(3)>",
    "</title></textarea><style>*{display:none}</style>",
    "javascript:alert(4)",
    LONG,
    "\u05d0\u05d1\u202eevil\u202c\u2067",
    "\U0001f994\u200d\U0001f525 \u0301\u0301",
    "W" * 256,
]
OPEN = ("/sign-in", "/sign-in?token=used")
SIGNED_IN = (
    "/account",
    "/p/{project}/nothing-here",
    "/p/{empty}/groups",
    "/p/{project}/groups",
    "/p/{project}/groups?state=all&q=nothing",
    "/p/{project}/groups/{group}",
    "/p/{desk}/groups/{desk_group}",
    "/p/{project}/executions",
    "/p/{project}/executions/hostile",
    "/p/{project}/executions/many",
    "/p/{project}/thresholds",
    "/p/{project}/thresholds/grounding_failure",
    "/p/{project}/settings",
    "/p/{project}/settings/judge",
    "/p/{project}/settings/keys",
    "/p/{project}/settings/members",
    "/p/{project}/settings/audit-log",
)


MARKED = 2
"""Passages of an answer that is marked; one with more has no text."""


def answers(name: str, passages: int) -> dict:
    """An `answer` event of hostile text."""
    return {
        "event_id": f"answer-{passages}",
        "execution_id": "hostile",
        "event_type": "answer",
        "sequence": 1,
        "payload": {
            "answer_id": f"answer-{passages}",
            "question": name,
            "answer": "" if passages > MARKED else f"{name} 5 mg [1] {name} 9 g [7] about 3 days",
            "context": {
                "passages": [{"id": str(n), "text": f"{name} 5 mg {name}"} for n in range(passages)]
            },
        },
    }


@pytest.fixture(scope="module")
def places(site) -> dict[str, str]:
    """A project of hostile text, an empty one, and what their addresses are made of."""
    project = site.command("create-project", HOSTILE[0])
    empty = site.command("create-project", "empty")
    desk = site.command("create-project", "help desk")
    site.command("demo", "--project", desk)
    key = site.command("create-key", "--project", project, "--scopes", "admin", "--name", "<b>key")
    site.command("create-user", HOSTILE[1], "--project", project)
    scores = [
        make_score(0.1, False, execution_id="hostile", evaluator_id=a, metric_type=b, reason=a * 3)
        for a, b in zip(HOSTILE, HOSTILE[::-1], strict=True)
    ]
    unmeasured = make_score(math.nan, False, execution_id="hostile", reason="")
    texts = [answers(HOSTILE[0], 0), answers(HOSTILE[0], MARKED), answers(HOSTILE[5], 200)]
    sent = [*scores, unmeasured, *texts]
    facts = dict.fromkeys(("release", "environment", "tenant_id", "input_summary"), HOSTILE[0])
    many = [make_score(number / 100, execution_id="many") for number in range(150)]
    calls = [
        ("POST", "/executions", make_execution("hostile", **facts)),
        ("POST", "/events", json.dumps(sent + many).encode()),
        ("PATCH", "/executions/hostile", make_close()),
        ("PATCH", "/executions/many", make_close()),
        (
            "PUT",
            "/me/detector-thresholds/grounding_failure/per_evaluator_floors",
            {"value": {f"{name}:m": 0.5 for name in HOSTILE}, "reason": HOSTILE[2]},
        ),
    ]
    for method, path, content in calls:
        answer = site.server.send(method, path, content, key)
        assert answer.status == 200, answer.body
        assert answer.json.get("rejected", 0) == 0, answer.body
    return {"project": project, "empty": empty, "desk": desk, "key": key}


@pytest.fixture(scope="module")
def session(browser, site, places) -> dict:
    """The cookies of an admin, and a group that has come of the hostile text."""
    context = browser.new_context(base_url=site.url)
    page = context.new_page()
    page.goto(site.link())
    wait_for(page, f"/p/{places['project']}/groups?state=all", LONG)
    answer = site.server.send("GET", "/failure-groups?state=all", key=places["key"])
    groups = {group["evaluator_id"]: group["group_id"] for group in answer.json["failure_groups"]}
    wait_for(page, f"/p/{places['project']}/executions/hostile", "violated")
    desk_group = open_help_desk(page, places["desk"]).rpartition("/")[2]
    state = context.storage_state()
    context.close()
    return {"state": state, "group": groups[HOSTILE[0]], "desk_group": desk_group}


def visit(open_window, places, session, path, **options):
    """Open a page, signed in where it takes that."""
    if path not in OPEN:
        options["storage_state"] = session["state"]
    window = open_window(**options)
    address = path.format(**places, group=session["group"], desk_group=session["desk_group"])
    answer = window.goto(address)
    assert answer.status < 500
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return window


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", [*OPEN, *SIGNED_IN])
def test_axe_finds_nothing_to_complain_of(open_window, places, session, path, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    window = visit(open_window, places, session, path, color_scheme=scheme)

    found = axe.Axe().run(window).response["violations"]

    assert [(v["id"], node["html"][:200]) for v in found for node in v["nodes"]] == []


@pytest.mark.parametrize("path", [*OPEN, *SIGNED_IN])
def test_no_page_scrolls_sideways_on_a_phone(open_window, places, session, path):
    window = visit(open_window, places, session, path, **PHONE)

    assert not is_wider_than_the_window(window)
    header = window.locator("header.top").bounding_box()
    assert header["width"] <= PHONE["viewport"]["width"]


def test_row_headings_in_our_words_break_between_words_on_a_phone(open_window, places, session):
    window = visit(open_window, places, session, "/p/{desk}/groups/{desk_group}", **PHONE)
    for summary in window.locator("details:has(table.tight) > summary").all():
        summary.click()

    headings = window.locator("table.tight tbody th").filter(visible=True)

    assert "with an unmatched quantity" in headings.all_inner_texts()
    assert broken_words(headings) == []
    assert not is_wider_than_the_window(window)


@pytest.mark.parametrize("path", SIGNED_IN)
def test_every_link_of_a_page_leads_somewhere(open_window, places, session, path):
    window = visit(open_window, places, session, path)

    links = window.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")

    for link in dict.fromkeys(link for link in links if link.startswith("/")):
        assert window.request.get(link).status == 200, link


def test_hostile_text_is_there_to_read(open_window, places, session):
    window = visit(open_window, places, session, "/p/{project}/groups")

    text = window.locator("main").text_content()

    for name in HOSTILE[:5]:
        assert name in text


def test_two_hundred_passages_and_an_empty_answer_are_shown(open_window, places, session):
    window = visit(open_window, places, session, "/p/{project}/executions/hostile")

    assert LONG in window.locator("main").text_content()
    assert window.get_by_role("heading", level=1).is_visible()


def test_the_time_of_day_is_the_projects_and_utc_is_one_hover_away(open_window, places, session):
    window = visit(open_window, places, session, "/p/{project}/settings")
    window.get_by_label("Time zone").select_option("Pacific/Kiritimati")
    window.get_by_role("button", name="Save").click()

    window.goto(f"/p/{places['project']}/groups")
    shown = window.locator("time").first

    exact = shown.get_attribute("datetime")
    assert exact.endswith("Z")
    assert exact[:16].replace("T", " ") in shown.get_attribute("title").replace("T", " ")
    moved = (int(exact[11:13]) + 14) % 24
    assert f"{moved:02d}:{exact[14:16]}" in shown.inner_text()
