"""What people say of answers, on the pages that show them, and the capture that a group's page offers."""

import json

import pytest

from tests.factories import make_score
from tests.server.api.test_labels import label, make_answer
from tests.server.pages.failing import fail, run

BUTTON = "Save the label"


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def group(tenant, database) -> str:
    """The id of a group whose one execution has one answer."""
    return fail(tenant, database, "exec-1", make_answer(), make_score(0.1), release="v1")


@pytest.fixture(params=["groups/{group}", "executions/exec-1"])
def address(request, project, group) -> str:
    """Each page that shows answers."""
    return f"{project}/{request.param.format(group=group)}"


def taken(browser, address: str):
    """A file, read to its end."""
    response = browser.call("GET", address)
    response.get_data()
    response.close()
    return response


def say(browser, address: str, said: str, note: str = ""):
    return browser.send(browser.open(address).form_with(BUTTON), BUTTON, label=said, note=note)


def test_a_member_labels_an_answer_and_stays_where_it_was_read(member, address):
    page = say(member, address, "wrong", "The passage says 30 days.")

    assert "Your label is saved" in page.text
    assert "wrong says member" in page.text
    assert "The passage says 30 days." in page.text
    assert "The passage says 30 days." in member.open(address).text


def test_after_a_label_the_browser_comes_back_to_the_answer(member, tenant, database, project):
    group = fail(tenant, database, "a b/é", make_answer("one"), make_answer("two"), make_score(0.1))
    for address in (f"{project}/groups/{group}", f"{project}/executions/a%20b/%C3%A9"):
        page = member.open(address)
        forms = [form for form in page.forms if BUTTON in form.buttons]
        leads_to = [
            member.call("POST", form.action, data=dict(form.fields) | {"label": "wrong"}).location
            for form in forms
        ]
        labels = [of["id"] for tag, of in page.elements if of.get("class") == "label"]

        assert leads_to == [f"{address}?said=labelled#{label}" for label in labels]
        assert len(set(labels)) == 2


def test_a_correction_counts_and_tells_of_the_earlier_label(member, address):
    say(member, address, "wrong")

    page = say(member, address, "evaluator_wrong")

    assert "evaluator wrong says member" in page.text
    assert "(1 earlier label)" in page.text
    assert "wrong says" not in page.text.replace("evaluator wrong says", "")


def test_a_persons_word_stands_before_what_a_key_says_after_it(member, tenant, address):
    content = {"answer_id": "ans-1", "label": "wrong"}
    path = "/executions/exec-1/labels"
    tenant.admin.post(path, content | {"by": "Ann"})
    passed_on = member.open(address).text
    tenant.admin.post(path, content | {"label": "correct"})

    assert "wrong says Ann through key key-" in passed_on
    assert "wrong says Ann through key key-" in member.open(address).text


def test_a_viewer_reads_labels_and_has_no_form(viewer, member, address):
    say(member, address, "correct")

    page = viewer.open(address)

    assert "correct says member" in page.text
    assert not page.has_button(BUTTON)


def test_a_viewer_may_not_label(viewer, member, project, group):
    form = member.open(f"{project}/groups/{group}").form_with(BUTTON)
    token = viewer.open(f"{project}/groups/{group}").form_with("Sign out").fields
    sent = dict(form.fields) | dict(token) | {"label": "wrong"}

    assert viewer.call("POST", form.action, data=sent).status_code == 403
    assert "wrong says" not in viewer.open(f"{project}/groups/{group}").text


def test_a_label_without_the_sessions_token_is_refused(member, project, group):
    form = member.open(f"{project}/groups/{group}").form_with(BUTTON)
    sent = dict(form.fields) | {"label": "wrong", "csrf_token": ""}

    assert member.call("POST", form.action, data=sent).status_code == 403
    assert "wrong says" not in member.open(f"{project}/groups/{group}").text


def test_a_label_is_in_the_history_of_the_group(member, project, group):
    page = say(member, f"{project}/groups/{group}", "wrong", "30 days")

    assert "Answer labelled by member" in page.text
    assert "wrong: ans-1 of exec-1. 30 days" in page.text


def test_a_label_of_an_earlier_version_says_so(member, tenant, address):
    say(member, address, "wrong")
    tenant.ingest.post("/events", [make_answer(text="Within 30 days.")])

    page = member.open(address)

    assert "of an earlier version of this answer" in page.text
    assert "Label this answer" in page.text


def test_the_form_leads_to_no_other_site_and_no_other_project(member, project, group):
    form = member.open(f"{project}/groups/{group}").form_with(BUTTON)

    for back in ("https://elsewhere.example/", "//elsewhere.example", "/p/other/groups", ""):
        sent = dict(form.fields) | {"label": "correct", "back": back}
        answered = member.call("POST", form.action, data=sent)
        assert answered.location.startswith(f"{project}/groups?")


def test_hostile_ids_are_labelled(member, tenant, database, project):
    answer_id = '"><b>&%2F\r\nx'
    run(tenant, "exec-1", make_answer(answer_id))

    page = say(member, f"{project}/executions/exec-1", "correct")

    assert "correct says member" in page.text
    (found,) = tenant.read.get("/executions/exec-1/labels").json["labels"]
    assert found["answer_id"] == answer_id


def test_an_unknown_answer_or_label_is_an_error_page(member, project, group):
    form = member.open(f"{project}/groups/{group}").form_with(BUTTON)

    gone = dict(form.fields) | {"label": "wrong", "answer": "gone"}
    odd = dict(form.fields) | {"label": "great"}

    assert member.call("POST", form.action, data=gone).status_code == 404
    assert member.call("POST", form.action, data=odd).status_code == 400


def test_the_page_after_a_refused_form_can_still_be_labelled_from(member, project, group):
    page = member.open(f"{project}/groups/{group}")
    refused = member.send(page.form_with("Comment"), "Comment", comment=" ")

    page = member.send(refused.form_with(BUTTON), BUTTON, label="correct")

    assert page.status == 200
    assert "correct says member" in page.text


def test_the_group_offers_the_command_and_the_file(viewer, tenant, project, group):
    run(tenant, "good", make_answer(), make_score(0.9))
    page = viewer.open(f"{project}/groups/{group}")

    assert f"mesedi-eval capture --from-group {group} --server http://localhost" in page.text
    form = page.form_with("Download the dataset")
    response = taken(viewer, f"{form.action}?passing=&limit=")
    assert response.headers["Content-Disposition"] == f'attachment; filename="{group}.jsonl"'
    assert response.headers["Mesedi-Executions"] == "1"
    with tenant.read.get(f"/failure-groups/{group}/dataset") as api:
        assert response.get_data() == api.get_data()
    assert len(response.get_data().splitlines()) == 3


def test_a_download_goes_by_what_the_form_says(viewer, tenant, database, project, group):
    fail(tenant, database, "exec-2", make_answer(), make_score(0.1))
    address = f"{project}/groups/{group}/dataset"

    lines = taken(viewer, f"{address}?limit=1&passing=0").get_data().splitlines()

    assert [json.loads(line)["session_id"] for line in lines if line] == ["exec-2/ans-1"] * 2
    assert viewer.call("GET", f"{address}?limit=0").status_code == 400


def test_what_people_said_can_be_taken_away(viewer, tenant, project, group):
    label(tenant)
    page = viewer.open(f"{project}/groups/{group}")

    response = taken(viewer, page.links["What people said of these answers"])

    with tenant.read.get(f"/failure-groups/{group}/annotations") as api:
        assert response.get_data() == api.get_data() != b""


def test_files_are_for_people_of_the_project(staff, other, project, group):
    for name in ("dataset", "annotations"):
        address = f"{project}/groups/{group}/{name}"
        assert staff.browser(None).call("GET", address).status_code == 404
        foreign = address.replace(project, f"/p/{other.project.project_id}")
        assert staff.browser("viewer").call("GET", foreign).status_code == 404


@pytest.mark.parametrize(("answer_id", "has_form"), [("é" * 128, True), ("é" * 129, False)])
def test_no_form_is_offered_that_would_be_refused(
    member, tenant, database, project, answer_id, has_form
):
    fail(tenant, database, "exec-1", make_answer(answer_id), make_score(0.1))

    page = member.open(f"{project}/executions/exec-1")

    assert page.has_button(BUTTON) == has_form
    assert ("Its id is too long for a label." in page.text) != has_form
