"""The HTML report of an evaluation, as a file on a phone."""

import subprocess
import sys

import pytest

from tests.browser.walking import PHONE, is_wider_than_the_window
from tests.evaluators.records import assistant, captured, user

LONG = "W" * 200
SPEC = """
id: support_answers
revision: r1
qualification: reviewed
criteria:
  - {id: traceability_of_all_quantities_and_citations, revision: v1, evaluator: grounding}
"""

POLICY = """
id: release
revision: r1
metric_gates:
  - id: each_quantity_of_an_answer_is_traced
    metric: grounding.quantity_traceability
    operator: at_least
    threshold: 1
"""


@pytest.fixture
def report(tmp_path) -> str:
    """The address of a report of texts and ids that have no blank."""
    answers = [
        assistant(f"Take 9 mg {LONG} [7].", tags=[LONG]),
        assistant("5 mg", persona_id="a careful pharmacist"),
    ]
    run = captured(tmp_path, [turn for answer in answers for turn in (user(LONG), answer)])
    spec, policy = tmp_path / "spec.yaml", tmp_path / "policy.yaml"
    spec.write_text(SPEC)
    policy.write_text(POLICY)
    for words in (
        ("evaluate", run, "--spec", spec),
        ("check", run, "--policy", policy, "--out", tmp_path / "out"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "evaluators", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 2, 3}, done.stderr
    return (tmp_path / "out" / "index.html").as_uri()


def test_a_report_does_not_scroll_sideways_on_a_phone(browser, report):
    context = browser.new_context(**PHONE)
    window = context.new_page()
    window.goto(report)
    window.get_by_text("By group").click()

    tables = window.locator("table").all_inner_texts()
    is_wider = is_wider_than_the_window(window)
    context.close()

    assert not is_wider
    assert [text.split("\n")[0] for text in tables] == [
        "Release gates",
        "Metrics",
        "Criteria, streams, tags, personas",
    ]
