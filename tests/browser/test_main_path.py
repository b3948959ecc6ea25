"""From the first start to a regression, as a person walks it: in a window, without script, and by keyboard."""

import re
from itertools import count

import pytest

from tests.browser.walking import wait_for

_numbers = count(1)

GROUP = "my-judge"
FAILING = """
with mesedi.execution({name!r}, release={release!r}):
    mesedi.record_answer("How tall is it?", "It is 350 m tall.", ["It measures 330 m."])
    mesedi.emit_eval_score("my-judge", "faithfulness", {score}, reason="no passage says 350 m")
"""


def send(site, key: str, name: str, score: float = 0.31, release: str = "v1") -> None:
    site.pipeline(key, FAILING.format(name=name, score=score, release=release))


def settings_link(window) -> None:
    window.get_by_role("link", name="Settings").click()


def make_key(window, name: str, *scopes: str) -> str:
    """Create a key on the page, and copy it."""
    settings_link(window)
    window.get_by_role("link", name="API keys").click()
    window.get_by_label("Name").fill(name)
    for scope in scopes:
        window.get_by_role("checkbox", name=scope).check()
    window.get_by_role("button", name="Create key").click()
    return re.search(r"mesedi_sk_[\w-]{40,}", window.locator("main").inner_text()).group()


def project_id(site, name: str) -> str:
    return site.command("create-project", name)


def test_the_whole_path_in_a_window(window, site):
    project = f"{site.url}/p/{project_id(site, 'whole path')}"

    # The printed link leads to an empty project, which tells how to begin, with its own address.
    window.goto(site.link())
    window.goto(f"{project}/groups")
    assert site.url in window.locator("main").inner_text()
    key = make_key(window, "pipeline")

    # A score is sent, and its group appears with the reason and the answer.
    send(site, key, "exec-1")
    wait_for(window, f"{project}/groups", GROUP)
    window.get_by_role("link", name=GROUP).first.click()
    text = window.locator("main").inner_text()
    assert re.search(r"mean \W*faithfulness\W* 0\.31 over 1 score, floor 0\.50 \(default\)", text)
    assert "no passage says 350 m" in text
    assert "It is 350 m tall." in text
    assert "It measures 330 m." in text
    assert "Discovery" in text
    group = window.url

    # The floor is tuned, with a preview first; the next execution is judged by it.
    window.goto(f"{project}/thresholds/grounding_failure")
    window.get_by_label("mean_floor", exact=True).fill("0.3")
    window.get_by_role("button", name="Preview").click()
    preview = window.get_by_role("region", name="Preview").or_(window.locator(".preview")).first
    assert "1 would stop" in preview.inner_text()
    assert window.get_by_role("link", name="exec-1").first.is_visible()
    window.get_by_label("Why the change").fill("too strict for us")
    window.get_by_role("button", name="Save").click()
    assert "Saved" in window.locator("main").inner_text()
    assert "too strict for us" in window.locator("main").inner_text()
    send(site, key, "exec-2")
    wait_for(window, f"{project}/executions/exec-2", "faithfulness")
    wait_for(window, f"{project}/executions/exec-2", "0.31")
    assert window.get_by_role("link", name=GROUP).count() == 0

    # The group is resolved, and comes back as a regression.
    window.goto(group)
    window.get_by_role("button", name="Resolve", exact=True).first.click()
    wait_for(window, group, "resolved")
    send(site, key, "exec-3", score=0.1, release="v2")
    wait_for(window, group, "regressed")
    assert "v2" in window.locator("main").inner_text()


@pytest.fixture
def failing(site) -> str:
    """The address of a project with a failing execution and a person who has a password."""
    project = project_id(site, f"failing {next(_numbers)}")
    key = site.command("create-key", "--project", project, "--scopes", "ingest")
    person = f"Mira of {project}"
    site.command("create-user", person, "--project", project, "--role", "member")
    site.command("set-password", person, given="correct horse battery\n")
    send(site, key, "exec-1")
    return f"{site.url}/p/{project}"


def person_of(failing: str) -> str:
    return f"Mira of {failing.rpartition('/')[2]}"


def test_everything_works_without_script(open_window, failing):
    window = open_window(java_script_enabled=False)

    window.goto(f"{failing}/groups")
    window.get_by_label("Name").fill(person_of(failing))
    window.get_by_label("Password", exact=True).fill("correct horse battery")
    window.get_by_role("button", name="Sign in").click()
    wait_for(window, f"{failing}/groups?evaluator=my-judge", GROUP)
    window.get_by_role("link", name=GROUP).first.click()
    window.get_by_role("button", name="Acknowledge", exact=True).first.click()
    assert "acknowledged" in window.locator("main").inner_text()
    window.get_by_role("link", name="Thresholds", exact=True).click()
    window.get_by_role("link", name="grounding_failure").click()
    window.get_by_label("mean_floor", exact=True).fill("0.3")
    window.get_by_role("button", name="Preview").click()
    assert "1 would stop" in window.locator("main").inner_text()
    window.get_by_role("button", name="Save").click()
    assert "Saved" in window.locator("main").inner_text()
    window.get_by_role("button", name="Sign out").click()
    assert window.get_by_role("heading", name="Sign in").is_visible()


FOCUSED = """() => {
    const one = document.activeElement;
    const label = one.labels && one.labels[0] ? one.labels[0].innerText : "";
    return [one.getAttribute("aria-label"), one.innerText, label, one.name, one.value]
        .filter(Boolean).map(text => text.trim());
}"""


def tab_to(window, name: str) -> None:
    """Press Tab until what has this name has the focus, and can be seen to have it."""
    for _ in range(150):
        window.keyboard.press("Tab")
        if any(text.startswith(name) for text in window.evaluate(FOCUSED)):
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert window.evaluate(outline) != "none", f"the focus on {name} cannot be seen"
            return
    raise AssertionError(f"Tab never reaches {name!r} on {window.url}")


def press(window, key: str = "Enter") -> None:
    """Press a key that leads to another page."""
    with window.expect_navigation():
        window.keyboard.press(key)


def test_everything_works_by_keyboard_alone(window, failing):
    wait = window.context.new_page()
    window.goto(f"{failing}/groups")

    tab_to(window, "Name")
    window.keyboard.type(person_of(failing))
    tab_to(window, "Password")
    window.keyboard.type("correct horse battery")
    press(window)
    wait_for(wait, f"{failing}/groups", GROUP)
    window.reload()

    window.keyboard.press("Tab")
    assert "Skip to the content" in window.evaluate(FOCUSED)
    window.keyboard.press("Enter")
    tab_to(window, GROUP)
    press(window)
    tab_to(window, "Resolve")
    press(window, "Space")
    assert "resolved" in window.locator("main").inner_text()
    tab_to(window, "Thresholds")
    press(window)
    tab_to(window, "grounding_failure")
    press(window)
    tab_to(window, "mean_floor")
    window.keyboard.type("0.3")
    tab_to(window, "Preview")
    press(window)
    assert "1 would stop" in window.locator("main").inner_text()
    tab_to(window, "Save")
    press(window)
    assert "Saved" in window.locator("main").inner_text()
    tab_to(window, "Project")
    window.keyboard.press("Enter")
    tab_to(window, "failing")
    press(window)
    tab_to(window, "Sign out")
    press(window)
    assert window.get_by_role("heading", name="Sign in").is_visible()
