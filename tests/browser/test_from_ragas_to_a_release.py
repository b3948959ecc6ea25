"""Rows of Ragas in; marks on the page, a capture and its evaluation out: with the same outcomes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.walking import wait_for

RAGAS = Path(__file__).parents[1] / "fixtures" / "ragas" / "ragas_0.4.3_judged.json"
PASSAGES = ["The tower is 330 m tall.", "Its lift takes 2 minutes to the top."]
OWN = [
    "It is 350 m tall [1].",
    "It is 330 m tall [1], and the lift takes 120 seconds [2].",
    "It is about 330 m tall.",
    "It is 330 m tall [3].",
    "It is very tall.",
]
SPEC = """
id: checks
revision: r1
criteria:
  - {id: traceability, revision: v1, evaluator: grounding}
"""
SENDING = """
import json
rows = json.load(open({path!r}))
names = [f"row-{{number}}" for number in range(len(rows))]
mesedi.emit_ragas(rows, thresholds={{"faithfulness": 0.7}}, execution_ids=names)
for name in names:
    with mesedi.execution(name, release="v1"):
        pass
"""


@pytest.fixture
def rows() -> list[dict]:
    """Rows as Ragas returned them, texts included, and more of the same columns with quantities in them."""
    made = json.loads(RAGAS.read_text())["to_pandas"]["to_json_records"]
    own = {"user_input": "How tall is it?", "retrieved_contexts": PASSAGES, "faithfulness": 0.2}
    return made + [{**own, "response": text} for text in OWN]


def on_the_page(window) -> dict[str, str]:
    """Turn through a group's page; return the outcome that it shows of each execution's answer."""
    found = {}
    while True:
        for card in window.locator("article.failure").all():
            shown = card.locator(".outcome").first.get_attribute("class").split()[-1]
            found[card.locator("h3").inner_text()] = shown
        following = window.get_by_role("link", name="Next page")
        if not following.count():
            return found
        following.first.click()


def evaluated(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "evaluators", *command],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in {0, 2, 3}, done.stderr
    return done.stdout


def test_the_page_and_the_capture_say_the_same_of_every_answer(window, site, tmp_path, rows):
    project = site.command("create-project", "from ragas")
    key = site.command("create-key", "--project", project, "--scopes", "ingest,read").split()[-1]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    # A row that Ragas could not measure is no failure.
    failing = sum(row["faithfulness"] is not None and row["faithfulness"] < 0.7 for row in rows)

    site.pipeline(key, SENDING.format(path=str(path)))
    window.goto(site.link())
    wait_for(window, f"/p/{project}/groups", "ragas · faithfulness")
    window.locator("a", has_text="faithfulness").first.click()
    group = window.url
    wait_for(window, group, f"Of the latest {failing} failing answers")
    shown = on_the_page(window)

    name = group.rpartition("/")[2]
    from_group = ["capture", "--from-group", name, "--server", site.url, "--passing", "0"]
    run = evaluated([*from_group, "--out", str(tmp_path / "runs")], MESEDI_API_KEY=key).strip()
    (tmp_path / "spec.yaml").write_text(SPEC)
    evaluated(["evaluate", run, "--spec", str(tmp_path / "spec.yaml")])
    details = json.loads(evaluated(["evaluation-status", run, "--details"]))
    sessions = {one["key"]: one["split_group"] for one in details["inputs"]}
    offline = {sessions[one["input_key"]]: one["status"] for one in details["results"]}

    assert len(shown) == failing
    assert shown == offline
    assert set(shown.values()) >= {"met", "violated", "needs_review", "not_applicable"}
