"""From a group of a live server to a run, its evaluation, and what people said of its answers."""

import json
import subprocess
import sys
from http.client import IncompleteRead
from urllib.parse import quote

import pytest

from mesedi_server import assessing
from mesedi_server.config import Settings
from mesedi_server.store import projects
from mesedi_server.store.database import Database
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.live import web_process

SPEC = """
id: checks
revision: r1
qualification: reviewed
criteria:
  - {id: traceability, revision: v1, evaluator: grounding}
"""
ANSWERS = {
    "bad-1": ("It is 350 m tall [1].", 0.1),
    "bad-2": ("It is 330 m tall [1].", 0.2),
    "good-1": ("It is 330 m tall [1].", 0.9),
    "good-2": ("It is 330 m tall [2].", 0.9),
}


@pytest.fixture(scope="module")
def place(servers, template, broker_url):
    """A live server, a key for each scope, and the group of two failing executions."""
    with servers.fresh_database(template) as url:
        settings = Settings(database_url=url, broker_url=broker_url)
        database = Database(url, connections=2)
        with database.transaction() as connection:
            project = projects.create(connection, "captures")
            admin, read = (projects.create_key(connection, project, [s]) for s in ("admin", "read"))
        with web_process(settings) as server:
            fill(server, admin)
            examine_all(database)
            found = server.send("GET", "/failure-groups", key=read).json["failure_groups"]
            yield {
                "server": server,
                "admin": admin,
                "read": read,
                "group": found[0]["group_id"],
                "database": database,
            }
        database.close()


def fill(server, key: str) -> None:
    for execution_id, (text, score) in ANSWERS.items():
        answer = {
            "answer_id": "a",
            "question": "How tall is it?",
            "answer": text,
            "context": {"excerpts": ["It measures 330 m."]},
        }
        events = [
            make_event(execution_id, "answer", payload=answer),
            make_score(score, execution_id=execution_id, answer_id="a"),
        ]
        server.send("POST", "/executions", make_execution(execution_id, release="v1"), key)
        assert server.send("POST", "/events", events, key).json["accepted"] == 2
        server.send("PATCH", f"/executions/{execution_id}", make_close(), key)


def evaluator(place, *words: str, code: int = 0) -> str:
    """Run `mesedi-eval` in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "evaluators", *map(str, words)],
        env={"MESEDI_API_KEY": place["read"], "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def capture(place, out) -> str:
    group, url = place["group"], place["server"].url
    return evaluator(place, "capture", "--from-group", group, "--server", url, "--out", out).strip()


def label(place, execution_id: str, said: str, note: str) -> None:
    content = {"answer_id": "a", "label": said, "note": note, "by": "Mira"}
    path = f"/executions/{execution_id}/labels"
    assert place["server"].send("POST", path, content, place["admin"]).status == 200


def test_a_group_is_captured_evaluated_and_qualified_by_what_people_said(place, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    run = capture(place, tmp_path)

    evaluator(place, "evaluate", run, "--spec", spec, code=2)
    details = json.loads(evaluator(place, "evaluation-status", run, "--details"))
    inputs = {one["key"]: one for one in details["inputs"]}
    outcomes = {inputs[r["input_key"]]["case_id"]: r["status"] for r in details["results"]}
    assert outcomes == {
        "bad-1/a": "violated",
        "bad-2/a": "met",
        "good-1/a": "met",
        "good-2/a": "violated",
    }
    tags = {one["case_id"]: one["tags"] for one in details["inputs"]}
    assert tags["bad-1/a"] == sorted([place["group"], "failing", "ragas", "v1"])
    assert tags["good-1/a"] == sorted([place["group"], "passing", "ragas", "v1"])

    # People agree on three answers; the fourth they find correct, though its citation leads nowhere.
    label(place, "bad-1", "correct", "by mistake")
    label(place, "bad-1", "wrong", "the passage says 330")
    label(place, "bad-2", "evaluator_wrong", "it is supported")
    label(place, "good-1", "correct", "")
    label(place, "good-2", "correct", "only the citation is odd")
    answered = place["server"].send(
        "GET", f"/failure-groups/{place['group']}/annotations", key=place["read"]
    )
    labels = tmp_path / "labels.jsonl"
    labels.write_bytes(answered.body)
    told = evaluator(place, "review-import", run, labels, "--labels")
    assert told.startswith("5 added, 0 known, 0 ")
    assert evaluator(place, "review-import", run, labels, "--labels").startswith("0 added, 5 known")

    report = json.loads(evaluator(place, "qualify", run, "--json", code=2))
    assert (report["compared"], report["agreed"]) == (4, 3)
    assert [one["case_id"] for one in report["false_failures"]] == ["good-2/a"]
    assert report["false_passes"] == []


def test_the_cases_of_two_downloads_can_be_compared(place, tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    runs = [capture(place, tmp_path) for _ in range(2)]
    for run in runs:
        evaluator(place, "evaluate", run, "--spec", spec, code=2)

    compared = json.loads(evaluator(place, "compare", *runs, "--json", code=2))

    assert (compared["added"], compared["removed"], compared["mismatched"]) == ([], [], [])


def test_a_dataset_whose_database_fails_in_the_middle_is_no_capture(place, tmp_path):
    move = "ALTER TABLE events RENAME COLUMN {} TO {}"
    with place["database"].transaction() as connection:
        connection.exec_driver_sql(move.format("higher_is_better", "away"))
    try:
        path = f"/failure-groups/{place['group']}/dataset"
        with pytest.raises(IncompleteRead):
            place["server"].send("GET", path, key=place["read"])
        words = ["capture", "--from-group", place["group"], "--server", place["server"].url]
        evaluator(place, *words, "--out", tmp_path / "runs", code=1)
    finally:
        with place["database"].transaction() as connection:
            connection.exec_driver_sql(move.format("away", "higher_is_better"))

    assert list((tmp_path / "runs").iterdir()) == []


ODD = {
    "no context": {"context": None},
    "a list": {"context": ["It measures 330 m."]},
    "a blank passage": {"context": {"excerpts": ["It measures 330 m.", " "]}},
    "no passages": {"context": {"excerpts": []}},
    "objects": {"context": {"documents": [{"id": 7, "content": "It measures 330 m."}]}},
    "no question": {"question": None},
    "nothing to trace": {"answer": "It is tall."},
    "ambiguous": {"answer": "It is about 330 m tall."},
    "from the question": {"question": "Is it 350 m tall?", "answer": "It is 350 m tall."},
    "empty": {"answer": ""},
    "500 passages": {"context": {"excerpts": ["It measures 330 m."] * 500}},
}


def test_offline_outcomes_are_those_of_the_server_answer_by_answer(place, tmp_path):
    server, admin = place["server"], place["admin"]
    plain = {
        "answer_id": "a",
        "question": "How tall is it?",
        "answer": "It is 350 m tall [1].",
        "context": {"excerpts": ["It measures 330 m."]},
    }
    for name, changes in ODD.items():
        answer = make_event(name, "answer", payload=plain | changes)
        events = [answer, make_score(0.1, execution_id=name)]
        assert server.send("POST", "/events", events, admin).json["accepted"] == 2
        server.send("PATCH", f"/executions/{quote(name)}", make_close(), admin)
    examine_all(place["database"])
    while assessing.assess_due(place["database"]):
        pass
    with place["database"].transaction() as connection:
        rows = connection.exec_driver_sql(
            "SELECT execution_id, outcome FROM assessments JOIN executions x ON x.pk = execution_pk"
            " WHERE evaluator = 'grounding'"
        )
        said = {f"{quote(execution_id)}/a": outcome for execution_id, outcome in rows}
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)

    run = capture(place, tmp_path)
    evaluator(place, "evaluate", run, "--spec", spec, code=2)
    details = json.loads(evaluator(place, "evaluation-status", run, "--details"))

    cases = {one["key"]: one["case_id"] for one in details["inputs"]}
    outcomes = {cases[one["input_key"]]: one["status"] for one in details["results"]}
    assert {f"{quote(name)}/a" for name in ODD} <= said.keys()
    assert {name: outcomes[name] for name in said} == said
