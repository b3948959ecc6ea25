"""promptfoo's results: which records go out for which object."""

import mesedi
import pytest

CORE = "promptfoo/promptfoo_0.123.1_core.json"


def by_row(server):
    """Each execution's scores as (metric, score, passed)."""
    assert mesedi.flush(5) == 0
    rows = {}
    for event in server.of_type("eval_score"):
        payload = event["payload"]
        record = (payload["metric_type"], payload["score"], payload.get("passed"))
        rows.setdefault(event["execution_id"], []).append(record)
    return list(rows.values())


EXPECTED_CORE = [
    [
        ("equals", 1, True),
        ("Accuracy", 1, True),
        ("Accuracy", 1, True),
        ("Tone", 1, True),
        ("regex", 1, True),
        ("starts-with", 1, True),
        ("Length", 1, True),
        ("test", 1, True),
    ],
    [
        ("Accuracy", 0, False),
        ("Accuracy", 1, True),
        ("Tone", 0, False),
        ("test", 0.3333333333333333, False),
    ],
    # The test passes by its own threshold while one assertion fails: two separate verdicts.
    [("contains", 0, False), ("contains#2", 1, True), ("test", 0.75, True)],
    [
        ("is-json", 1, True),
        ("contains-json", 1, True),
        ("NotJson", 0, False),
        ("levenshtein", 1, True),
        ("rouge-n", 0, False),
        ("latency", 1, True),
        ("cost", 1, True),
        ("test", 0.7142857142857143, False),
    ],
    [
        ("javascript", 1, True),
        ("JsNumber", 0.35, True),
        ("JsNumberNoThreshold", 0.35, True),
        ("JsObject", 0.7, True),
        ("sub_a", 0.1, None),
        ("sub_b", 0.9, None),
        ("test", 0.6000000000000001, True),
    ],
    # The set once, as its own metric, and each of its parts once.
    [
        ("SetMetric", 0.5, True),
        ("InSet", 1, True),
        ("InSet", 0, False),
        ("contains", 1, True),
        ("test", 0.6, True),
    ],
    # Weight 0: failed for information only, the verdict stays the tool's.
    [("InfoOnly", 0, True), ("contains", 1, True), ("test", 1, True)],
    [("InfoOnly", 1, True), ("test", 0, True)],
    [
        ("PyObject", 0.75, True),
        ("PyObject#2", 0.5, True),
        ("PyObject#3", 0.1, False),
        ("PyBool", 0, False),
        ("PyInline", 0.11, True),
        ("py_fluency", 0.6, None),
        ("test", 0.2866666666666667, False),
    ],
    # No assertions, provider error, provider exception: nothing was measured.
    [("test", None, None)],
    [("test", None, None)],
    [("test", None, None)],
    [("Accuracy", 0, False), ("test", 0, False)],
    [("test", None, None)],
    [("is-json", 1, True), ("Confidence", 0.82, True), ("test", 0.9099999999999999, True)],
    [("PyBoom", 0, False), ("test", 0, False)],
    [("JsBoom", 0, False), ("test", 0, False)],
]


def test_the_core_suite_of_0_123_1_goes_out_right(client, server, fixture_json):
    count = mesedi.emit_promptfoo(fixture_json(CORE))

    assert by_row(server) == EXPECTED_CORE
    assert count == len(server.scores)
    assert {score["evaluator_id"] for score in server.scores} == {"promptfoo"}
    assert all(score["higher_is_better"] for score in server.scores)


def test_reasons_and_causes_travel(client, server, fixture_json):
    mesedi.emit_promptfoo(fixture_json(CORE))

    mesedi.flush(5)
    tests = [score for score in server.scores if score["metric_type"] == "test"]
    told = {score["reason"].partition("\n")[0]: score.get("status") for score in tests}
    assert told["API error: 503 Service Unavailable"] == "error"
    assert told["Error: socket hang up"] == "error"
    assert told["No output"] == "error"
    assert told["No assertions"] == "not_scored"


def test_only_thresholds_on_the_score_s_own_scale_are_thresholds(client, server, fixture_json):
    mesedi.emit_promptfoo(fixture_json(CORE))

    mesedi.flush(5)
    limits = {
        score["metric_type"]: (
            score.get("threshold"),
            score.get("metadata", {}).get("threshold"),
        )
        for score in server.scores
        if score["metric_type"] in ("rouge-n", "levenshtein", "latency", "cost", "JsNumber")
    }
    assert limits == {
        "rouge-n": (0.6, None),
        "levenshtein": (None, 3.0),
        "latency": (None, 5000.0),
        "cost": (None, 0.001),
        "JsNumber": (0.3, None),
    }


def test_every_shape_of_one_run_says_the_same(client, server, fixture_json):
    file = fixture_json(CORE)

    for shape in (file, file["results"], file["results"]["results"]):
        mesedi.emit_promptfoo(shape)
    for row in file["results"]["results"]:
        mesedi.emit_promptfoo(row)

    rows = by_row(server)
    assert rows == EXPECTED_CORE * 4


@pytest.mark.parametrize(
    ("grading", "records"),
    [
        ({"pass": True, "score": 0.8, "reason": "r"}, [("assertion", 0.8, True)]),
        ({"pass_": False, "score": "0.2", "reason": "r"}, [("assertion", 0.2, False)]),
        ({"pass": "true", "score": "0.9", "reason": "r"}, [("assertion", 0.9, True)]),
        ({"pass": "false", "score": None, "reason": "r"}, [("assertion", None, False)]),
        (
            {"pass": True, "score": 0.8, "reason": "r", "named_scores": {"fluency": 0.6}},
            [("fluency", 0.6, None), ("assertion", 0.8, True)],
        ),
        (
            {
                "pass": True,
                "score": 0.5,
                "reason": "r",
                "component_results": [
                    {"pass": True, "score": 1, "reason": "a"},
                    {"pass": False, "score": 0, "reason": "b"},
                ],
            },
            [("assertion", 1, True), ("assertion#2", 0, False), ("test", 0.5, True)],
        ),
    ],
)
def test_a_bare_grading_result_is_read(client, server, grading, records):
    mesedi.emit_promptfoo(grading)

    assert by_row(server) == [records]


def test_user_content_stays_here_unless_asked_for(client, server, fixture_json):
    mesedi.emit_promptfoo(fixture_json(CORE))
    mesedi.flush(5)
    assert not server.of_type("answer")

    mesedi.emit_promptfoo(fixture_json(CORE), answers=True)
    mesedi.flush(5)

    first = server.of_type("answer")[0]["payload"]
    assert (first["question"], first["answer"]) == (
        "Q: capital of France",
        "Paris is the capital of France.",
    )


def test_a_run_with_an_id_is_stored_once_whatever_the_order_of_its_rows(
    client, server, fixture_json
):
    rows = fixture_json(CORE)["results"]["results"]

    mesedi.emit_promptfoo(rows, run_id="eval-1")
    mesedi.emit_promptfoo(list(reversed(rows)), run_id="eval-1")
    mesedi.flush(5)

    assert len(server.executions) == len(rows)
    assert len(server.scores) == sum(len(row) for row in EXPECTED_CORE)


def test_rows_without_any_id_are_two_events(client, server):
    row = {"success": True, "score": 1, "gradingResult": {"componentResults": [{"pass": True}]}}

    mesedi.emit_promptfoo(row)
    mesedi.emit_promptfoo(row)

    assert mesedi.flush(5) == 0
    assert len([s for s in server.scores if s["metric_type"] == "test"]) == 2


def test_a_judge_that_failed_is_no_failed_answer_in_any_version(client, server, fixture_json):
    for version in ("0.114.7", "0.123.1"):
        mesedi.emit_promptfoo(fixture_json(f"promptfoo/promptfoo_{version}_graded.json"))

    mesedi.flush(5)
    down = [score for score in server.scores if score["metric_type"] == "GraderDown"]
    told = {(score["score"], score.get("passed"), score["status"]) for score in down}
    assert len(down) == 6
    assert told == {(None, None, "error")}


def test_a_cell_of_a_results_table_is_read(client, server):
    cell = {"pass": False, "score": 0.2, "text": "the output", "gradingResult": None}

    mesedi.emit_promptfoo({"table": {"body": [{"outputs": [cell, cell]}]}}, answers=True)

    assert by_row(server) == [[("test", None, None)]] * 2
    assert server.of_type("answer")[0]["payload"]["answer"] == "the output"


def test_a_bare_grading_result_goes_by_the_name_it_is_given(client, server):
    mesedi.emit_promptfoo({"pass": False, "score": 0.2, "reason": "rude"}, metric="tone")

    assert by_row(server) == [[("tone", 0.2, False)]]


@pytest.mark.parametrize(
    ("template", "named", "metric"),
    [
        ("{{topic}}", {"geo": 1}, "geo"),
        ("about {{ topic }}", {"about geo": 1, "other": 1}, "about geo"),
        ("{{topic}}", {"geo": 1, "other": 1}, "{{topic}}"),
    ],
)
def test_a_templated_name_is_the_rendered_one_where_exactly_one_fits(
    client, server, template, named, metric
):
    component = {"pass": True, "score": 1, "assertion": {"type": "equals", "metric": template}}
    row = {
        "success": True,
        "score": 1,
        "namedScores": named,
        "gradingResult": {"pass": True, "score": 1, "componentResults": [component]},
    }

    mesedi.emit_promptfoo(row)

    assert by_row(server)[0][0] == (metric, 1, True)


@pytest.mark.parametrize(
    "broken",
    [
        {"success": True, "gradingResult": "odd"},
        {"success": True, "gradingResult": {"componentResults": [7]}},
        {"success": True, "testCase": {"assert": [None]}},
    ],
)
def test_a_row_that_cannot_be_read_is_counted_and_its_neighbours_go_on(client, server, broken):
    good = {"success": False, "score": 0, "gradingResult": {"componentResults": [{"pass": False}]}}

    mesedi.emit_promptfoo([good, broken, good])

    assert mesedi.flush(5) == 0
    assert len([score for score in server.scores if score["metric_type"] == "test"]) == 2
    assert mesedi.stats().dropped == {"unreadable row": 1}


def graded(*components):
    return {
        "success": False,
        "score": 0,
        "failureReason": 1,
        "gradingResult": {
            "pass": False,
            "score": 0,
            "reason": "no judge",
            "componentResults": list(components),
        },
    }


NO_JUDGE = {
    "pass": False,
    "score": 0,
    "reason": "API call error: 500",
    "assertion": {"type": "llm-rubric", "value": "polite"},
    "metadata": {"graderError": True},
}
CONTAINS = {"score": 0, "reason": "no 'x'", "assertion": {"type": "contains", "value": "x"}}


@pytest.mark.parametrize(
    ("others", "passed", "status"),
    [
        ([], None, "error"),
        ([{**CONTAINS, "pass": True, "score": 1}], None, "error"),
        ([{**CONTAINS, "pass": False}], False, None),
    ],
)
def test_a_row_that_only_its_grader_failed_is_unmeasured(server, client, others, passed, status):
    mesedi.emit_promptfoo(graded(NO_JUDGE, *others))

    assert mesedi.flush(5) == 0
    (test,) = [score for score in server.scores if score["metric_type"] == "test"]
    assert (test.get("passed"), test.get("status")) == (passed, status)
    assert test["reason"] == ("API call error: 500" if status else "no judge")
