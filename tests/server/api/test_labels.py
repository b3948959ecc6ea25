"""What people say of answers, over the API."""

import pytest

from tests.factories import make_event, make_score
from tests.server.pages.failing import fail


def make_answer(answer_id="ans-1", text="Within 60 days.", **payload) -> dict:
    plain = {
        "answer_id": answer_id,
        "question": "How long can I return it?",
        "answer": text,
        "context": {"excerpts": ["Within 30 days."]},
    }
    return make_event(event_type="answer", payload=plain | payload)


@pytest.fixture
def group(tenant, database) -> str:
    """The address of a group whose one execution has two answers."""
    events = make_score(0.2), make_answer(), make_answer("ans-2")
    return f"/failure-groups/{fail(tenant, database, 'exec-1', *events)}"


def label(tenant, answer_id="ans-1", said="wrong", execution_id="exec-1", **more):
    content = {"answer_id": answer_id, "label": said} | more
    return tenant.admin.post(f"/executions/{execution_id}/labels", content)


def test_a_label_is_kept_with_who_and_why(tenant, group):
    answered = label(tenant, note="The passage says 30.")

    (found,) = tenant.read.get("/executions/exec-1/labels").json["labels"]
    assert answered.status_code == 200
    assert found["label_id"] == answered.json["label_id"]
    assert (found["answer_id"], found["label"]) == ("ans-1", "wrong")
    assert found["note"] == "The passage says 30."
    assert found["actor"].startswith("key key-")
    assert found["by"] is None


def test_a_key_can_pass_on_a_persons_word(tenant, group):
    answered = label(tenant, by=" Ann ")

    (found,) = tenant.read.get("/executions/exec-1/labels").json["labels"]
    assert (answered.json["by"], found["by"]) == ("Ann", "Ann")
    assert found["actor"].startswith("key key-")
    line = tenant.read.get(f"{group}/history").json["history"][0]
    assert line["note"] == "wrong: ans-1 of exec-1, says Ann"
    assert tenant.admin.get("/audit-log").json["events"][0]["details"]["by"] == "Ann"


@pytest.mark.parametrize("by", ["", "  ", "x" * 201, "a\0b", 7, "key key-0123"])
def test_a_person_has_a_name(tenant, group, by):
    refused = label(tenant, by=by)

    assert refused.status_code == 400
    assert "by: " in refused.json["error"]
    assert tenant.read.get("/executions/exec-1/labels").json["labels"] == []


def test_a_correction_is_added_and_comes_first(tenant, group):
    label(tenant)
    label(tenant, said="evaluator_wrong")

    page = tenant.read.get("/executions/exec-1/labels?limit=1").json
    rest = tenant.read.get(f"/executions/exec-1/labels?cursor={page['next_cursor']}").json

    assert [one["label"] for one in page["labels"] + rest["labels"]] == ["evaluator_wrong", "wrong"]


def test_the_group_and_the_audit_log_remember_a_label(tenant, group):
    label(tenant, note="30 it is")

    line = tenant.read.get(f"{group}/history").json["history"][0]
    assert (line["kind"], line["note"]) == ("labelled", "wrong: ans-1 of exec-1. 30 it is")
    noted = tenant.admin.get("/audit-log").json["events"][0]
    assert (noted["action"], noted["subject"]) == ("answer.labelled", "exec-1")
    assert noted["details"]["note"] == "30 it is"
    assert noted["details"]["answer_id"] == "ans-1"


def test_an_answer_without_an_id_is_labelled_by_an_empty_one(tenant, database):
    answer = make_answer()
    del answer["payload"]["answer_id"]
    fail(tenant, database, "exec-1", make_score(0.2), answer)

    assert label(tenant, "").status_code == 200


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({"answer_id": "ans-1", "label": "great"}, 400),
        ({"answer_id": "ans-1"}, 400),
        ({"label": "wrong"}, 400),
        ({"answer_id": 1, "label": "wrong"}, 400),
        ({"answer_id": "a" * 257, "label": "wrong"}, 400),
        ({"answer_id": "ans-1", "label": "wrong", "note": 5}, 400),
        ({"answer_id": "nobody", "label": "wrong"}, 404),
        ({"answer_id": "ans-1\x00", "label": "wrong"}, 404),
        ([], 400),
    ],
)
def test_what_is_no_label_is_refused(tenant, group, content, status):
    answered = tenant.admin.post("/executions/exec-1/labels", content)

    assert answered.status_code == status, answered.json
    assert tenant.read.get("/executions/exec-1/labels").json["labels"] == []


def test_labels_need_an_admin_key_and_the_own_project(tenant, group, make_tenant):
    other = make_tenant()
    content = {"answer_id": "ans-1", "label": "wrong"}

    assert tenant.read.post("/executions/exec-1/labels", content).status_code == 403
    assert tenant.ingest.get("/executions/exec-1/labels").status_code == 403
    assert other.admin.post("/executions/exec-1/labels", content).status_code == 404
    assert other.read.get("/executions/exec-1/labels").status_code == 404
    assert tenant.read.get("/executions/exec-1/labels").json["labels"] == []


def test_an_id_with_slashes_and_blanks_is_labelled(tenant, database):
    name, answer_id = "run 1/step/2", "a/b c\n"
    events = [make_score(0.2), make_answer(answer_id)]
    fail(tenant, database, name, *events)

    assert label(tenant, answer_id, execution_id="run%201/step/2").status_code == 200
    (found,) = tenant.read.get("/executions/run%201/step/2/labels").json["labels"]
    assert found["answer_id"] == answer_id
