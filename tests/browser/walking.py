"""What a person does on the pages."""

import time

PATIENCE_S = 30.0
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
"""What a window is like on a phone."""


def sign_in(window, link: str) -> None:
    """Open a link that signs in."""
    window.goto(link)


def wait_for(window, address: str, text: str) -> None:
    """Reload a page, as a person would, until it says something."""
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        window.goto(address)
        if text in window.locator("main").inner_text():
            return
        window.wait_for_timeout(100)
    raise AssertionError(f"{address} never says {text!r}: {window.locator('main').inner_text()}")


def open_help_desk(window, project: str) -> str:
    """Open the group of the demo's help desk when all its answers are assessed; return its address."""
    wait_for(window, f"/p/{project}/groups", "desk-judge")
    window.get_by_role("link", name="desk-judge").first.click()
    wait_for(window, window.url, "Of the latest 22 failing answers")
    return window.url


def is_in_sight(window, selector: str) -> bool:
    """Whether the whole of an element is in the window, as it is scrolled now."""
    return window.locator(selector).evaluate(
        "one => one.getBoundingClientRect().top >= 0"
        " && one.getBoundingClientRect().bottom <= window.innerHeight"
    )


def is_wider_than_the_window(window) -> bool:
    """Whether the page scrolls sideways."""
    return window.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )


def broken_words(elements) -> list[str]:
    """The words that go over the end of a line."""
    return elements.evaluate_all("""all => all.flatMap(one => {
        const broken = [], texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(texts.currentNode, word.index);
            range.setEnd(texts.currentNode, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(line => line.top)).size > 1) broken.push(word[0]);
        }
        return broken;
    })""")
