"""A group as a dataset: which answers it holds, in which form, and what it says of those that are missing."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from mesedi_server import downloads
from mesedi_server.app import DOWNLOADS
from mesedi_server.errors import UnavailableError
from mesedi_server.store import datasets
from tests.factories import make_event, make_score
from tests.server.api.test_labels import label, make_answer
from tests.server.examining import examine_all
from tests.server.pages.failing import fail, run
from tests.server.tenants import Caller


def read(tenant, group: str, query: str = "", name: str = "dataset"):
    """The response, its whole lines, and whether it ended as it should."""
    response = tenant.read.get(f"/failure-groups/{group}/{name}{query}")
    assert response.status_code == 200, response.json
    text = response.get_data(as_text=True)
    response.close()
    return response, [json.loads(line) for line in text.splitlines() if line]


def answers(records: list[dict]) -> list[dict]:
    return [record for record in records if record["role"] == "assistant"]


def cases(tenant, group: str, query: str = "") -> dict[str, str]:
    """Which answers a dataset holds, in its order, and as what."""
    found = answers(read(tenant, group, query)[1])
    kinds = {"failing", "passing"}
    return {one["case_id"]: kinds.intersection(one["tags"]).pop() for one in found}


def test_an_answer_is_a_question_an_answer_and_where_it_came_from(tenant, database):
    context = {"excerpts": [{"id": 7, "text": "Within 30 days."}], "other": [1.5, None, "ü"]}
    answer = make_answer(context=context)
    score = make_score(0.2, False, answer_id="ans-1")
    group = fail(tenant, database, "exec-1", answer, score, release="v1")

    _, records = read(tenant, group)

    event = next(
        one
        for one in tenant.read.get("/executions/exec-1").json["events"]
        if one["event_type"] == "answer"
    )
    assert records == [
        {
            "session_id": "exec-1/ans-1",
            "turn_index": 0,
            "role": "user",
            "text": "How long can I return it?",
        },
        {
            "session_id": "exec-1/ans-1",
            "turn_index": 1,
            "role": "assistant",
            "text": "Within 60 days.",
            "case_id": "exec-1/ans-1",
            "tags": [group, "failing", "v1", "ragas"],
            "metadata": {
                "context": context,
                "split_group": "exec-1",
                "provenance": {
                    "project": tenant.project.project_id,
                    "group": group,
                    "execution_id": "exec-1",
                    "answer_id": "ans-1",
                    "evaluator": "ragas",
                    "metric": "faithfulness",
                    "score": 0.2,
                    "passed": False,
                    "rule": "failed_verdict",
                    "received_at": event["received_at"],
                },
            },
        },
    ]


def test_passing_answers_are_as_many_as_failing_ones_the_newest_first(tenant, database):
    for number in range(4):
        run(tenant, f"good-{number}", make_score(0.9), make_answer())
    run(tenant, "bad-1", make_score(0.1), make_answer())
    group = fail(tenant, database, "bad-2", make_score(0.1), make_answer())

    assert cases(tenant, group) == {
        "bad-2/ans-1": "failing",
        "bad-1/ans-1": "failing",
        "good-3/ans-1": "passing",
        "good-2/ans-1": "passing",
    }


@pytest.mark.parametrize(("passing", "kept"), [(0, 0), (1, 1), (3, 3), (9, 4)])
def test_so_many_passing_answers_as_are_asked_for(tenant, database, passing, kept):
    for number in range(4):
        run(tenant, f"good-{number}", make_score(0.9), make_answer())
    group = fail(tenant, database, "bad", make_score(0.1), make_answer())

    kinds = list(cases(tenant, group, f"?passing={passing}").values())

    assert kinds == ["failing"] + ["passing"] * kept


def test_other_pairs_and_other_projects_are_no_contrast(tenant, database, make_tenant):
    run(tenant, "other-pair", make_score(0.9, pair="ragas/relevance"), make_answer())
    run(make_tenant(), "elsewhere", make_score(0.9), make_answer())
    run(tenant, "silent", make_score(0.9))
    group = fail(tenant, database, "bad", make_score(0.1), make_answer())

    assert cases(tenant, group, "?passing=10") == {"bad/ans-1": "failing"}


@pytest.mark.parametrize(
    ("scores", "failing"),
    [
        ([(0.2, None, None)], "abc"),
        ([(0.2, False, "a"), (0.9, True, "b")], "a"),
        ([(0.2, None, "a"), (0.3, None, "b")], "ab"),
        ([(0.2, False, "a"), (0.1, False, None)], "a"),
        ([(0.2, False, "gone")], "abc"),
    ],
)
def test_the_failing_answers_are_those_that_the_evaluator_means(tenant, database, scores, failing):
    events = [make_answer(name) for name in "abc"]
    events += [
        make_score(score, passed, **({"answer_id": name} if name else {}))
        for score, passed, name in scores
    ]
    group = fail(tenant, database, "exec-1", *events)

    assert list(cases(tenant, group)) == [f"exec-1/{name}" for name in failing]


def test_an_answer_carries_its_own_worst_score(tenant, database):
    events = [make_answer("a"), make_answer("b"), make_answer("c")]
    events += [make_score(score, answer_id="a") for score in (0.4, 0.1, 0.3)]
    events += [make_score(0.2, answer_id="b"), make_score(0.05)]
    group = fail(tenant, database, "exec-1", *events)

    _, records = read(tenant, group)

    scores = {one["case_id"]: one["metadata"]["provenance"]["score"] for one in answers(records)}
    assert scores == {"exec-1/a": 0.1, "exec-1/b": 0.2}


def test_the_last_version_of_an_answer_counts(tenant, database):
    events = [make_answer("a", "first"), make_answer("a", "second"), make_score(0.1)]
    group = fail(tenant, database, "exec-1", *events)

    assert [one["text"] for one in answers(read(tenant, group)[1])] == ["second"]


def test_case_ids_stay_apart_and_stay_the_same(tenant, database):
    run(tenant, "a/b", make_answer("c"), make_score(0.1))
    run(tenant, "   ", make_answer("ü %2F"), make_score(0.1))
    group = fail(tenant, database, "a", make_answer("b/c"), make_answer("a"), make_score(0.1))

    first, again = cases(tenant, group), cases(tenant, group)

    names = {"a/b%2Fc", "a/a", "a%2Fb/c", "%20%20%20/%C3%BC%20%252F"}
    assert set(first) == names
    assert list(first) == list(again)


@pytest.mark.parametrize("context", [None, "text", ["a"], 5])
def test_a_context_that_is_no_object_is_none(tenant, database, context):
    group = fail(tenant, database, "exec-1", make_answer(context=context), make_score(0.1))

    (found,) = answers(read(tenant, group)[1])

    assert found["metadata"]["context"] is None


def test_an_answer_without_question_or_text_is_there(tenant, database):
    bare = make_event(event_type="answer", payload={"answer_id": "a"})
    nothing = make_event(event_type="answer", payload=None)
    blank = make_event(event_type="answer", payload={"answer_id": ""})
    group = fail(tenant, database, "exec-1", bare, nothing, blank, make_score(0.1))

    _, records = read(tenant, group)

    assert [(one["case_id"], one["text"]) for one in records] == [("exec-1/a", ""), ("exec-1/", "")]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"answer": None}, "the answer is not text"),
        ({"answer": ["a"]}, "the answer is not text"),
        ({"question": 5}, "the question is not text"),
        ({"question": None}, None),
    ],
)
def test_an_answer_that_nobody_can_judge_says_why_and_has_no_evidence(
    tenant, database, payload, words
):
    group = fail(tenant, database, "exec-1", make_answer(**payload), make_score(0.1))

    (found,) = answers(read(tenant, group)[1])

    assert found["metadata"]["provenance"].get("malformed") == words
    assert (found["metadata"]["context"] is None) == (words is not None)


def test_executions_without_an_answer_are_counted_beside_the_dataset(tenant, database):
    for number in range(3):
        run(tenant, f"silent-{number}", make_score(0.1))
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1))

    response, records = read(tenant, group)
    limited, _ = read(tenant, group, "?limit=1")

    assert len(answers(records)) == 1
    assert response.headers["Mesedi-Executions"] == "4"
    assert response.headers["Mesedi-Executions-Without-Answer"] == "3"
    assert response.headers["Mesedi-Executions-Beyond-Limit"] == "0"
    assert limited.headers["Mesedi-Executions-Beyond-Limit"] == "3"
    assert limited.headers["Mesedi-Executions-Without-Answer"] == "0"


def test_the_limit_keeps_the_newest_executions(tenant, database):
    for number in range(3):
        run(tenant, f"bad-{number}", make_answer(), make_score(0.1))
    group = fail(tenant, database, "bad-3", make_answer(), make_score(0.1))

    assert list(cases(tenant, group, "?limit=2&passing=0")) == ["bad-3/ans-1", "bad-2/ans-1"]


@pytest.mark.parametrize("query", ["limit=0", "limit=100001", "limit=x", "passing=-1", "passing=a"])
def test_a_wish_out_of_range_is_refused(tenant, database, query):
    group = fail(tenant, database)

    response = tenant.read.get(f"/failure-groups/{group}/dataset?{query}")

    assert response.status_code == 400
    assert query.partition("=")[0] in response.json["error"]


def test_a_dataset_ends_with_an_empty_line(tenant, database):
    empty = fail(tenant, database, "silent")
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1, pair="other/m"))

    assert read(tenant, empty, "?passing=0")[0].get_data() == b"\n"
    assert read(tenant, group)[0].get_data().endswith(b"}\n\n")


def test_groups_of_other_classes_have_failing_answers_alone(tenant, database):
    check = {"name": "schema", "passed": False, "message": "no price"}
    failed = make_event(event_type="validator_result", payload=check)
    run(tenant, "good", make_score(0.9), make_answer())
    group = fail(tenant, database, "exec-1", make_answer(), failed)

    _, records = read(tenant, group)

    (found,) = answers(records)
    assert found["tags"] == [group, "failing"]
    provenance = found["metadata"]["provenance"]
    assert (provenance["evaluator"], provenance["score"]) == (None, None)
    assert provenance["rule"] == "failed_check"


def test_many_executions_are_read_in_steps_and_none_twice(tenant, database):
    count = 2 * datasets.MEMBERS + 7
    for number in range(count):
        same_time = {"started_at": "2026-12-01T12:00:00Z"}
        run(tenant, f"bad-{number}", make_answer(), make_score(0.1), **same_time)
        run(tenant, f"good-{number}", make_answer(), make_score(0.9))
    examine_all(database)
    (group,) = [
        one["group_id"] for one in tenant.read.get("/failure-groups").json["failure_groups"]
    ]

    found = cases(tenant, group)

    wanted = {f"bad-{number}/ans-1": "failing" for number in range(count)}
    assert found == wanted | {f"good-{number}/ans-1": "passing" for number in range(count)}


def test_large_answers_are_read_a_few_at_a_time(tenant, database):
    # Random text, since what is compressed counts as it is stored.
    texts = ["".join(f"{(n * k * 2654435761) % 2**32:08x}" for k in range(4000)) for n in (3, 5, 7)]
    events = [make_answer(f"a{number}", text) for number, text in enumerate(texts)]
    group = fail(tenant, database, "exec-1", *events, make_score(0.1))

    assert [one["text"] for one in answers(read(tenant, group)[1])] == texts


def test_a_dataset_needs_a_reading_key_of_the_project(tenant, database, make_tenant):
    group = fail(tenant, database)

    for name in ("dataset", "annotations"):
        address = f"/failure-groups/{group}/{name}"
        assert tenant.ingest.get(address).status_code == 403
        assert make_tenant().read.get(address).status_code == 404


def test_labels_are_review_annotations(tenant, database):
    group = fail(tenant, database, "exec-1", make_answer(), make_answer("b"), make_score(0.1))
    first = label(tenant, note="30, not 60", by="Ann").json["label_id"]
    other = label(tenant, "b", "correct", by="Ann").json["label_id"]
    second = label(tenant, said="evaluator_wrong", note="it is a new law", by="Ann").json[
        "label_id"
    ]

    _, found = read(tenant, group, name="annotations")

    digest = sha256(b"Within 60 days.").hexdigest()
    assert {one["answer_sha256"] for one in found} == {digest}
    assert [one["case_id"] for one in found] == ["exec-1/ans-1", "exec-1/b", "exec-1/ans-1"]
    assert [one["label"] for one in found] == ["wrong", "correct", "evaluator_wrong"]
    plain = {"reviewer": "Ann", "role": "adjudication", "provenance": "human"}
    assert [one["annotation"] for one in found] == [
        plain
        | {
            "id": first,
            "outcome": "violated",
            "rationale": "Labelled wrong. 30, not 60",
            "supersedes": None,
        },
        plain
        | {"id": other, "outcome": "met", "rationale": "Labelled correct.", "supersedes": None},
        plain
        | {
            "id": second,
            "outcome": "met",
            "rationale": "Labelled correct: the evaluator is wrong. it is a new law",
            "supersedes": first,
        },
    ]


def test_a_label_of_an_earlier_text_is_not_corrected_by_one_of_the_next(tenant, database):
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1))
    label(tenant)
    tenant.ingest.post("/events", [make_answer(text="Within 30 days.")])
    label(tenant, said="correct")

    _, found = read(tenant, group, name="annotations")

    assert [one["annotation"]["supersedes"] for one in found] == [None, None]
    assert len({one["answer_sha256"] for one in found}) == 2


def test_what_a_key_says_itself_is_a_programs_opinion_and_decides_nothing(app, tenant, database):
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1))
    made = tenant.admin.post("/api-keys", {"name": "nightly check", "role": "admin"}).json
    label(replace(tenant, admin=Caller(app, made["raw_key"])))
    by_person = label(tenant, said="correct", by="Ann").json["label_id"]
    unnamed = label(tenant).json["label_id"]
    label(tenant, said="wrong", by="Bea")
    label(tenant, said="correct")

    _, found = read(tenant, group, name="annotations")

    keys = {key["name"]: key["key_id"] for key in tenant.read.get("/api-keys").json["api_keys"]}
    said = [one["annotation"] for one in found]
    assert said[0]["reviewer"] == f"nightly check (key {keys['nightly check']})"
    assert [(one["role"], one["provenance"]) for one in said] == [
        ("opinion", "model"),
        ("adjudication", "human"),
        ("opinion", "model"),
        ("adjudication", "human"),
        ("opinion", "model"),
    ]
    assert [one["supersedes"] for one in said] == [None, None, None, by_person, unnamed]
    assert said[2]["reviewer"].startswith("key key-")


def test_annotations_are_of_answers_that_the_dataset_can_hold(tenant, database, monkeypatch):
    run(tenant, "good", make_answer(), make_score(0.9))
    run(tenant, "unrelated", make_answer(), make_score(0.9, pair="other/m"))
    group = fail(tenant, database, "bad", make_answer(), make_score(0.1))
    for name in ("good", "unrelated", "bad"):
        label(tenant, execution_id=name)
    monkeypatch.setattr("mesedi_server.store.labels.LOOKED_AT", 1)

    _, found = read(tenant, group, name="annotations")

    assert [one["case_id"] for one in found] == ["good/ans-1", "bad/ans-1"]


def test_an_execution_that_leaves_the_group_meanwhile_is_not_there_twice(
    tenant, database, monkeypatch
):
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1))
    look = datasets.carriers

    def leave(connection, *place):
        connection.exec_driver_sql("DELETE FROM occurrences")
        return look(connection, *place)

    monkeypatch.setattr(datasets, "carriers", leave)

    assert cases(tenant, group) == {"exec-1/ans-1": "failing"}


def test_a_process_makes_few_downloads_at_a_time(app, tenant, database):
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1))
    address = f"/failure-groups/{group}/dataset"
    headers = {"Authorization": f"Bearer {tenant.read.key}"}
    held = [app.test_client().open(address, headers=headers) for _ in range(DOWNLOADS)]

    refused = tenant.read.get(address)
    for response in held:
        response.close()

    assert [response.status_code for response in held] == [200] * DOWNLOADS
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    for _ in range(2 * DOWNLOADS):
        read(tenant, group)


def test_a_download_that_takes_too_long_is_broken_off(tenant, database, monkeypatch):
    group = fail(tenant, database, "exec-1", make_answer(), make_score(0.1))
    monkeypatch.setattr(downloads, "LONGEST_S", -1.0)

    with pytest.raises(UnavailableError):
        tenant.read.get(f"/failure-groups/{group}/dataset")
