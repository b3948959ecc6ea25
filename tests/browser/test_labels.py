"""A person reads a failing answer, says what it is, and makes a capture of the group."""

import json

import pytest

from tests.browser.test_main_path import FOCUSED, GROUP, press, send, tab_to
from tests.browser.walking import is_in_sight, wait_for


@pytest.fixture(scope="module")
def group(site, browser) -> str:
    """The address of a group with one failing answer, in a project of its own."""
    project = site.command("create-project", "labels")
    key = site.command("create-key", "--project", project, "--scopes", "admin")
    send(site, key, "exec-1")
    context = browser.new_context(base_url=site.url)
    window = context.new_page()
    window.goto(site.link())
    wait_for(window, f"/p/{project}/groups", GROUP)
    context.close()
    (found,) = site.server.send("GET", "/failure-groups", key=key).json["failure_groups"]
    return f"/p/{project}/groups/{found['group_id']}"


def test_a_label_is_given_and_corrected_without_script(open_window, site, group):
    window = open_window(java_script_enabled=False)
    window.goto(site.link())
    window.goto(group)

    window.get_by_text("Label this answer").click()
    window.get_by_label("The answer is").select_option("wrong")
    window.get_by_label("Note", exact=True).first.fill("The passage says 330 m.")
    window.get_by_role("button", name="Save the label").click()
    assert "wrong says" in window.locator(".labelled").inner_text()
    assert is_in_sight(window, ".labelled")
    assert is_in_sight(window, ".answer .assessed")

    window.get_by_text("Correct the label").click()
    window.get_by_label("The answer is").select_option("evaluator_wrong")
    window.get_by_role("button", name="Save the label").click()
    text = window.locator(".labelled").inner_text()
    assert "evaluator wrong says" in text
    assert "1 earlier label" in text
    assert "The passage says 330 m." in window.locator(".history").inner_text()


def test_a_label_is_given_by_keyboard_on_the_executions_page(window, site, group):
    window.goto(site.link())
    window.goto(group)
    window.get_by_role("link", name="exec-1").first.click()

    tab_to(window, "Correct the label")
    window.keyboard.press("Enter")
    tab_to(window, "The answer is")
    window.keyboard.type("correct")
    assert "correct" in window.evaluate(FOCUSED)
    tab_to(window, "Save the label")
    press(window)

    assert window.locator(".labelled .badge").inner_text() == "correct"


def test_the_dataset_is_a_button_away_without_script(open_window, site, group):
    window = open_window(java_script_enabled=False, accept_downloads=True)
    window.goto(site.link())
    window.goto(group)

    window.get_by_text("Make a capture").click()
    command = window.get_by_label("Command").inner_text()
    with window.expect_download() as downloading:
        window.get_by_role("button", name="Download the dataset").click()

    name = group.rpartition("/")[2]
    assert command == f"mesedi-eval capture --from-group {name} --server {site.url}"
    assert downloading.value.suggested_filename == f"{name}.jsonl"
    lines = downloading.value.path().read_text().splitlines()
    records = [json.loads(line) for line in lines if line]
    assert [record["text"] for record in records] == ["How tall is it?", "It is 350 m tall."]
