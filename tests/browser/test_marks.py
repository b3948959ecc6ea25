"""Marks and the suggested road, as a person uses them: with a mouse, by keyboard, without script, without colours."""

import pytest

from tests.browser.walking import PHONE, open_help_desk, wait_for

IS_SEEN = """id => {
    const box = document.getElementById(id).getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
}"""
TOPS = """() => [...document.querySelectorAll("#grounding, #members, #playbook, #scores, #state")]
    .map(one => [one.id, one.getBoundingClientRect().top])"""
STYLE = """one => {
    const sign = getComputedStyle(one, "::after").content;
    const style = getComputedStyle(one);
    return [style.textDecorationLine, style.textDecorationStyle, sign].join(" ");
}"""


@pytest.fixture(scope="module")
def desk(browser, site) -> dict:
    """The group of the demo's help desk, all of it assessed, and the cookies of who may see it."""
    project = site.command("create-project", "help desk")
    site.command("demo", "--project", project)
    context = browser.new_context(base_url=site.url)
    page = context.new_page()
    page.goto(site.link())
    address = open_help_desk(page, project)
    state = context.storage_state()
    context.close()
    return {"address": address, "state": state, "project": project}


def last_page(window, desk) -> None:
    """Turn to the page that has the first answers of the help desk."""
    window.goto(desk["address"])
    while window.get_by_role("link", name="Next page").count():
        window.get_by_role("link", name="Next page").click()


def test_a_mark_leads_to_its_support_and_back(open_window, desk):
    window = open_window(storage_state=desk["state"])
    last_page(window, desk)

    mark = window.get_by_role("link", name="125 ml: stands in passage 1").first
    own = mark.get_attribute("id")
    mark.click()

    there = window.url.rpartition("#")[2]
    assert window.evaluate(IS_SEEN, there)
    assert window.locator(f"#{there}").inner_text() == "125 ml"
    window.locator(f"#{there}").click()
    assert window.url.endswith(f"#{own}")
    assert window.evaluate(IS_SEEN, own)


def test_a_value_without_support_leads_to_the_line_that_says_so(open_window, desk):
    window = open_window(storage_state=desk["state"], java_script_enabled=False)
    last_page(window, desk)

    mark = window.get_by_role("link", name="3 months: stands in no passage")
    mark.first.click()

    line = window.locator(f"#{window.url.rpartition('#')[2]}")
    assert "3 months stands in no passage, nor in the question" in line.inner_text()


def test_marks_are_used_by_keyboard(open_window, desk):
    window = open_window(storage_state=desk["state"])
    last_page(window, desk)
    mark = window.get_by_role("link", name="125 ml: stands in passage 1").first

    mark.focus()
    window.keyboard.press("Shift+Tab")
    window.keyboard.press("Tab")
    focused = "document.activeElement.id"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert window.evaluate(focused) == mark.get_attribute("id")
    assert window.evaluate(outline) != "none"
    window.keyboard.press("Enter")

    assert window.evaluate(IS_SEEN, window.url.rpartition("#")[2])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_kind_of_mark_can_be_told_without_its_colour(open_window, desk, scheme):
    window = open_window(storage_state=desk["state"], color_scheme=scheme)
    window.goto(desk["address"])

    legend = window.locator(".legend .mark")

    styles = [legend.nth(place).evaluate(STYLE) for place in range(legend.count())]
    assert len(set(styles)) == 4
    assert all(style.startswith("underline ") for style in styles)


def test_the_group_says_what_is_wrong_and_where_to_look_first(open_window, desk):
    window = open_window(storage_state=desk["state"])
    window.goto(desk["address"])

    region = window.get_by_role("region", name="What grounding finds")
    text = region.inner_text()
    assert "68 % have an unmatched quantity, 14 % an unresolved citation" in text
    assert "9 % no readable evidence" in text
    road = region.get_by_role("note", name="Suggested road")
    assert "Look at the prompt first. 13 answers of 22" in road.inner_text()
    road.get_by_role("link", name="the playbook").click()
    assert window.locator("#playbook").is_visible()


def test_on_a_phone_the_findings_come_before_the_playbook(open_window, desk):
    window = open_window(storage_state=desk["state"], **PHONE)
    window.goto(desk["address"])

    found = window.evaluate(TOPS)

    # In the order of the source, which the keyboard goes by.
    assert [name for name, _ in found] == ["grounding", "members", "playbook", "scores", "state"]
    assert found == sorted(found, key=lambda one: one[1])


def test_on_a_laptop_the_playbook_stands_beside_the_findings(open_window, desk):
    window = open_window(storage_state=desk["state"])
    window.goto(desk["address"])

    tops = dict(window.evaluate(TOPS))

    assert abs(tops["playbook"] - tops["grounding"]) < 40
    assert tops["grounding"] < tops["members"] < tops["scores"] < tops["state"]


def test_the_executions_own_page_has_the_marks_too(open_window, desk):
    window = open_window(storage_state=desk["state"])
    last_page(window, desk)
    window.locator(".failure h3 a").last.click()

    wait_for(window, window.url, "Grounding")

    assert window.get_by_role("link", name="3 months: stands in no passage").first.is_visible()
