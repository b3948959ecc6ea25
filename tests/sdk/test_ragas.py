"""Ragas' results: which records go out for which object."""

import math
import sys
from types import SimpleNamespace

import mesedi
import pytest
from mesedi._ragas_metrics import canonical, higher_is_better, is_known

JUDGED = "ragas/ragas_0.4.3_judged.json"


def by_row(server):
    """The scores of each execution, as (metric, score) pairs."""
    assert mesedi.flush(5) == 0
    rows = {}
    for event in server.of_type("eval_score"):
        payload = event["payload"]
        rows.setdefault(event["execution_id"], []).append(
            (payload["metric_type"], payload["score"])
        )
    return list(rows.values())


def test_the_judged_run_of_0_4_3_goes_out_right(client, server, fixture_json):
    count = mesedi.emit_ragas(fixture_json(JUDGED))

    rows = by_row(server)
    assert count == 48
    assert len(rows) == len(server.executions) == 6
    assert rows[0] == [
        ("faithfulness", 0.5),
        ("answer_relevancy", 1.0),
        ("context_precision", 0.9999999999),
        ("context_precision", 0.9999999999),
        ("context_recall", 0.5),
        ("factual_correctness.f1", 0.5),
        ("noise_sensitivity.relevant", 0.0),
        ("answer_similarity", 0.9332122362373938),
    ]
    timed_out = [score for metric, score in rows[3] if metric != "answer_similarity"]
    assert timed_out == [None] * 7
    assert {score["evaluator_id"] for score in server.scores} == {"ragas"}
    assert not any("passed" in score for score in server.scores)
    for score in server.scores:
        rising = score["metric_type"] != "noise_sensitivity.relevant"
        assert score["higher_is_better"] is rising
        assert (score.get("status") == "not_scored") is (score["score"] is None)


def test_each_row_s_answer_travels_and_its_scores_name_it(client, server, fixture_json):
    mesedi.emit_ragas(fixture_json(JUDGED))

    assert mesedi.flush(5) == 0
    answers = {event["execution_id"]: event["payload"] for event in server.of_type("answer")}
    assert len(answers) == 6
    for event in server.of_type("eval_score"):
        assert event["payload"]["answer_id"] == answers[event["execution_id"]]["answer_id"]
    first = next(iter(answers.values()))
    assert first["question"] == "What is the capital of France?"
    assert first["context"] == {
        "excerpts": ["Paris is the capital of France.", "Lyon is a city in France."]
    }


def test_a_threshold_gives_a_verdict_and_nothing_else_does(client, server, fixture_json):
    mesedi.emit_ragas(
        fixture_json(JUDGED),
        thresholds={
            "faithfulness": 0.7,
            "llm_context_precision_with_reference": 1.0,
            "noise_sensitivity.relevant": 0.1,
            "answer_similarity": 0.9,
        },
    )

    assert mesedi.flush(5) == 0
    verdicts = {}
    for score in server.scores:
        name = score.get("metadata", {}).get("ragas_metric", score["metric_type"])
        verdicts.setdefault(name, []).append(score.get("passed"))
    assert verdicts["faithfulness"] == [False, False, False, None, None, None]
    assert verdicts["llm_context_precision_with_reference"] == [True, True, True, None, None, True]
    assert verdicts["llm_context_precision_without_reference"] == [None] * 6
    assert verdicts["noise_sensitivity(mode=relevant)"] == [True, True, True, None, None, True]
    assert verdicts["semantic_similarity"] == [True, False, None, False, False, False]


class EvaluationResult:
    """As unwieldy as the real one: rows by number fail, so does everything that iterates."""

    def __init__(self, scores, dataset=()):
        self.scores = scores
        self.dataset = dataset
        self.run_id = None

    def __getitem__(self, name):
        if name == 0:
            raise KeyError(0)
        return [row[name] for row in self.scores]

    __hash__ = None


class OldResult(dict):
    """Of 0.1: a dict of means, with the rows behind `.scores`."""

    scores = ({"faithfulness": 0.5}, {"faithfulness": 0.7})
    dataset = ({"question": "q1", "answer": "a1", "contexts": ["c"]}, {"question": "q2"})


class MetricResult:
    """Fails on what the real one fails on: bool, copy and pickle."""

    def __init__(self, value, reason=None):
        self._value, self.reason, self.traces = value, reason, None

    value = property(lambda self: self._value)

    def __len__(self):
        raise TypeError

    def __iter__(self):
        return iter(())

    def __getattr__(self, name):
        return getattr(self._value, name)


class Frame:
    columns = ("id", "faithfulness", "response")

    def to_dict(self, orient):
        assert orient == "records"
        return [{"id": 7, "faithfulness": 0.4, "response": "a"}]


SAMPLE = SimpleNamespace(user_input="q", response="a", retrieved_contexts=[])


@pytest.mark.parametrize(
    ("result", "options", "rows"),
    [
        (EvaluationResult([{"faithfulness": 0.4}], [SAMPLE]), {}, [[("faithfulness", 0.4)]]),
        (OldResult(faithfulness=0.6), {}, [[("faithfulness", 0.5)], [("faithfulness", 0.7)]]),
        (MetricResult(0.4), {"metric": "faithfulness"}, [[("faithfulness", 0.4)]]),
        (MetricResult("pass"), {"metric": "tone"}, [[("tone", 1.0)]]),
        (MetricResult(["b", "a"]), {"metric": "order"}, [[("order", None)]]),
        (Frame(), {}, [[("faithfulness", 0.4)]]),
        ({"faithfulness": 0.4, "id": 3}, {}, [[("faithfulness", 0.4)]]),
        ([{"faithfulness": 0.4}, {"id": 1}], {}, [[("faithfulness", 0.4)]]),
        ([{"my_metric": 0.4}], {"metrics": ["my_metric"]}, [[("my_metric", 0.4)]]),
        (iter([{"faithfulness": MetricResult(0.4)}]), {}, [[("faithfulness", 0.4)]]),
        (
            [MetricResult(0.4), MetricResult(None, "the judge fell silent")],
            {"metric": "tone"},
            [[("tone", 0.4)], [("tone", None)]],
        ),
        ({"tone": MetricResult(0.4), "id": 1}, {}, [[("tone", 0.4)]]),
        ({"value": 0.4, "reason": "r"}, {"metric": "tone"}, [[("tone", 0.4)]]),
        (
            [{"faithfulness": math.nan, "answer_relevancy": 0.9}],
            {},
            [[("faithfulness", None), ("answer_relevancy", 0.9)]],
        ),
        (
            [{"answer_relevancy": -0.0000004}, {"answer_relevancy": -0.0015}],
            {},
            [[("answer_relevancy", 0.0)], [("answer_relevancy", -0.0015)]],
        ),
    ],
)
def test_every_shape_is_known(client, server, result, options, rows):
    mesedi.emit_ragas(result, **options)

    assert by_row(server) == rows


def test_a_metric_object_brings_its_name_and_its_scale(client, server):
    stars = SimpleNamespace(name="stars", allowed_values=(0, 10))

    mesedi.emit_ragas(MetricResult(7.5, "rather good"), metric=stars)

    assert by_row(server) == [[("stars", 7.5)]]
    (score,) = server.scores
    assert (score["scale"], score["reason"]) == ([0, 10], "rather good")


def test_the_judge_s_words_are_the_reason_where_the_traces_tell(client, server):
    statements = [
        SimpleNamespace(statement="Paris is the capital.", reason="stated", verdict=1),
        SimpleNamespace(statement="It has ten million people.", reason="not there", verdict=0),
    ]
    result = EvaluationResult(
        [{"faithfulness": 0.5, "noise_sensitivity(mode=relevant)": 0.0, "tone": 1}], [SAMPLE]
    )
    result.traces = [
        {
            "faithfulness": {"nli": {"output": SimpleNamespace(statements=statements)}},
            "noise_sensitivity": {"x": {"output": [SimpleNamespace(reason="no noise")]}},
            "tone": {"critic": {"output": SimpleNamespace(feedback="friendly")}, "odd": None},
        }
    ]

    mesedi.emit_ragas(result)

    assert mesedi.flush(5) == 0
    reasons = {score["metric_type"]: score["reason"] for score in server.scores}
    assert reasons == {
        "faithfulness": "not supported: It has ten million people. (not there)",
        "noise_sensitivity.relevant": "no noise",
        "tone": "friendly",
    }


def test_a_row_on_which_everything_failed_is_an_error(client, server):
    nan = math.nan
    rows = [
        {"faithfulness": nan, "answer_relevancy": nan},
        {"faithfulness": nan, "answer_relevancy": 0.9},
        {"faithfulness": nan},
    ]

    mesedi.emit_ragas(rows)

    assert mesedi.flush(5) == 0
    told = [score.get("status") for score in server.scores]
    assert told == ["error", "error", "not_scored", None, "not_scored"]


def test_a_conversation_s_last_question_and_answer_travel(client, server):
    turns = [
        SimpleNamespace(type="human", content="weather?"),
        SimpleNamespace(type="tool", content="3 C"),
        {"type": "ai", "content": "It is 3 C."},
    ]

    mesedi.emit_ragas([{"user_input": turns, "tool_call_accuracy": 1.0}])

    assert mesedi.flush(5) == 0
    (answer,) = server.of_type("answer")
    assert (answer["payload"]["question"], answer["payload"]["answer"]) == (
        "weather?",
        "It is 3 C.",
    )


def test_rows_of_an_experiment_keep_their_ids_in_whatever_order_they_come(client, server):
    rows = [
        {"id": 1, "response": "no", "tone": "fail"},
        {"id": 0, "response": "yes", "tone": "pass"},
    ]

    for order in (rows, rows[::-1]):
        mesedi.emit_ragas(order, metrics=["tone"], run_id="exp-1")

    assert mesedi.flush(5) == 0
    assert [score["passed"] for score in server.scores] == [False, True]


@pytest.mark.parametrize(
    ("row", "context"),
    [
        ({"user_input": "q", "response": "a", "retrieved_contexts": ["c"]}, {"excerpts": ["c"]}),
        ({"question": "q", "answer": "a", "contexts": ["c"]}, {"excerpts": ["c"]}),
        ({"question": "q", "answer": "a", "contexts": []}, {"excerpts": []}),
        ({"question": "q", "answer": "a", "contexts": None}, None),
        ({"question": "q", "answer": "a"}, None),
    ],
)
def test_the_columns_of_every_version_are_known(client, server, row, context):
    mesedi.emit_ragas([{**row, "faithfulness": 0.5}])

    assert mesedi.flush(5) == 0
    (answer,) = server.of_type("answer")
    assert (answer["payload"]["question"], answer["payload"]["answer"]) == ("q", "a")
    assert answer["payload"]["context"] == context


def test_answers_can_stay_here(client, server, fixture_json):
    mesedi.emit_ragas(fixture_json(JUDGED), answers=False)

    assert mesedi.flush(5) == 0
    assert len(server.scores) == 48
    assert not server.of_type("answer")
    assert "capital" not in str([request.body for request in server.requests])


def test_rows_go_to_the_executions_that_made_them(client, server):
    rows = [{"faithfulness": 0.1, "response": "a"}, {"faithfulness": 0.2}]

    mesedi.emit_ragas(rows, execution_ids=["exec-1", "exec-2"])

    assert mesedi.flush(5) == 0
    where = [(event["execution_id"], event["event_type"]) for event in server.events]
    assert where == [("exec-1", "answer"), ("exec-1", "eval_score"), ("exec-2", "eval_score")]
    assert not server.executions


def test_inside_an_execution_all_rows_belong_to_it_and_keep_their_answers_apart(client, server):
    rows = [{"faithfulness": 0.1, "response": "a1"}, {"faithfulness": 0.2, "response": "a2"}]

    with mesedi.execution() as run:
        mesedi.emit_ragas(rows)

    assert mesedi.flush(5) == 0
    assert {event["execution_id"] for event in server.events} == {run.id}
    judged = {event["payload"]["answer_id"] for event in server.of_type("eval_score")}
    recorded = {event["payload"]["answer_id"] for event in server.of_type("answer")}
    assert len(judged) == 2
    assert judged == recorded


def test_a_run_with_an_id_is_stored_once_however_often_it_is_sent(client, server, fixture_json):
    for _ in range(2):
        mesedi.emit_ragas(fixture_json(JUDGED), run_id="nightly-7")
    mesedi.emit_ragas(fixture_json(JUDGED), run_id="nightly-8")
    mesedi.flush(5)

    assert len(server.scores) == 2 * 48
    assert len(server.of_type("answer")) == 2 * 6
    assert len(server.executions) == 2 * 6


def test_rows_sent_one_by_one_under_one_run_id_stay_apart(client, server):
    for answer in ("one", "two"):
        mesedi.emit_ragas([{"faithfulness": 0.5, "response": answer}], run_id="nightly")

    assert mesedi.flush(5) == 0
    assert len(server.scores) == 2


def test_what_holds_no_scores_is_counted_and_said(client, caplog):
    assert mesedi.emit_ragas([{"id": 1}]) == 0

    assert mesedi.stats().dropped == {"no scores found": 1}
    assert "found no scores" in caplog.text


def test_nothing_of_ragas_is_imported(client, fixture_json):
    mesedi.emit_ragas(fixture_json(JUDGED))

    assert "ragas" not in sys.modules


@pytest.mark.parametrize(
    ("name", "metric", "rising"),
    [
        (" faithfulness", "faithfulness", True),
        ("context_ relevancy", "context_relevance", True),
        ("rouge_score(mode=fmeasure)", "rouge_score.fmeasure", True),
        ("noise_sensitivity(mode=irrelevant)", "noise_sensitivity.irrelevant", False),
        ("noise_sensitivity_relevant", "noise_sensitivity.relevant", False),
        ("response_relevancy", "answer_relevancy", True),
        ("nv_accuracy", "answer_accuracy", True),
        ("harmfulness", "harmfulness", False),
        ("semantic_similarity", "answer_similarity", True),
    ],
)
def test_a_metric_has_one_name_and_one_direction(name, metric, rising):
    assert canonical(name) == metric
    assert higher_is_better(metric) is rising
    assert is_known(name)


@pytest.mark.parametrize("name", ["id", "user_input", "tokens", "cost", "reference"])
def test_a_numeric_column_is_no_metric_by_itself(name):
    assert not is_known(name)


class Unreadable:
    """An object that raises whatever it is asked."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


def test_a_row_that_cannot_be_read_holds_up_no_other(client, server):
    rows = [
        {"faithfulness": 0.1},
        {"faithfulness": Unreadable(), "user_input": [Unreadable()]},
        {"faithfulness": 0.3},
    ]

    mesedi.emit_ragas(rows)

    assert mesedi.flush(5) == 0
    assert [score["score"] for score in server.scores] == [0.1, 0.3]
    assert mesedi.stats().dropped == {"unreadable row": 1}
