"""HHEM's results: which records go out for which object. The shapes of fixtures: test_golden."""

import json
import math
import struct
from types import SimpleNamespace

import mesedi
import pytest

from tests.sdk.conftest import FIXTURES


def scores_of(server):
    assert mesedi.flush(5) == 0
    return [(score["score"], score.get("passed")) for score in server.scores]


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def label(name, score):
    return {"label": name, "score": score}


class Tensor:
    """As unwieldy as torch's on a GPU: no truth, no JSON, no float but for a single value."""

    def __init__(self, values):
        self._values = values

    def __bool__(self):
        if isinstance(self._values, list):
            raise RuntimeError("Boolean value of Tensor is ambiguous")  # noqa: TRY004 - as torch does
        return bool(self._values)

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        return (Tensor(value) for value in self._values)

    def __array__(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def item(self):
        if isinstance(self._values, list) and len(self._values) != 1:
            raise RuntimeError("a Tensor with 7 elements cannot be converted to Scalar")
        return self._values

    def tolist(self):
        return self._values


class Document:
    def __init__(self, page_content, **metadata):
        self.page_content = page_content
        self.metadata = metadata


class SearchResult:
    """A frozen object of an SDK, with attributes instead of keys."""

    text = "On Fridays pets may come along."
    score = 0.91
    document_id = "handbook"


class QueryFullResponse:
    summary = "Pets are allowed on Fridays [1]."
    search_results = (SearchResult(),)
    factual_consistency_score = 0.97


class EvaluateFactualConsistencyResponse:
    score = 0.23
    p_consistent = 0.12


class HallucinationMetric:
    """DeepEval's: the share of contradictions."""

    score = 0.9
    threshold = 0.5


LANGCHAIN = [(Document("p1"), 0.9), (Document("the answer", summary=True, fcs=(0.97,)), 0.0)]
UNSCORED = [(Document("p1"), 0.9), (Document("the answer", fcs=(None,)), 0.0)]


@pytest.mark.parametrize(
    ("result", "scores"),
    [
        (0.4, [(0.4, False)]),
        (0.5, [(0.5, True)]),
        ("0.9", [(0.9, True)]),
        (None, [(None, None)]),
        ("N/A", [(None, None)]),
        (math.nan, [(None, None)]),
        ([0.1, 0.6], [(0.1, False), (0.6, True)]),
        (Tensor([float32(0.1), float32(0.6)]), [(float32(0.1), False), (float32(0.6), True)]),
        (Tensor([0.7]), [(0.7, True)]),
        (Tensor(0.7), [(0.7, True)]),
        (Tensor([math.nan, 0.7]), [(None, None), (0.7, True)]),
        ([Tensor(0.1), Tensor(0.7)], [(0.1, False), (0.7, True)]),
        (label("hallucinated", 0.75), [(0.25, False)]),
        ([label("LABEL_1", 0.75)], [(0.75, True)]),
        ([label("consistent", 0.25), label("hallucinated", 0.75)], [(0.25, False)]),
        ([label("consistent", 0.75), label("hallucinated", 0.75)], [(0.75, True), (0.25, False)]),
        ([label("something else", 0.75)], [(None, None)]),
        (QueryFullResponse(), [(0.97, True)]),
        (EvaluateFactualConsistencyResponse(), [(0.23, False)]),
        (LANGCHAIN, [(0.97, True)]),
        (UNSCORED, [(None, None)]),
        (SimpleNamespace(response="Pets.", metadata={"fcs": 0.4}), [(0.4, False)]),
        ({"answer-1": {"score": 0.4}, "answer-2": {"score": 0.8}}, [(0.4, False), (0.8, True)]),
    ],
)  # fmt: skip
def test_the_consistency_is_found_in_every_shape(client, server, result, scores):
    mesedi.emit_hhem(result)

    assert scores_of(server) == scores


@pytest.mark.parametrize(
    "result",
    [
        HallucinationMetric(),
        {"latency": 0.4, "tokens": 1},
        {"search_results": [{"text": "p", "score": 0.9}]},
        [{"text": "p", "score": 0.9, "document_id": "d"}],
        [],
    ],
)
def test_no_other_number_is_taken_for_a_consistency(client, server, result):
    mesedi.emit_hhem(result)

    assert all(score is None for score, _ in scores_of(server))


def test_it_goes_by_one_name_and_one_direction(client, server):
    mesedi.emit_hhem(0.4, model="HHEM-2.1-Open")

    mesedi.flush(5)
    (score,) = server.scores
    assert (score["evaluator_id"], score["metric_type"]) == ("hhem", "factual_consistency")
    assert score["higher_is_better"] is True
    assert score["threshold"] == 0.5
    assert score["metadata"] == {"model": "HHEM-2.1-Open"}


@pytest.mark.parametrize(("threshold", "passed"), [(0.4, True), (0.57, False), (None, None)])
def test_the_threshold_is_the_caller_s(client, server, threshold, passed):
    mesedi.emit_hhem(0.5, threshold=threshold)

    assert scores_of(server) == [(0.5, passed)]


def test_the_answer_and_its_passages_travel_unless_they_are_to_stay(client, server):
    mesedi.emit_hhem(QueryFullResponse())
    mesedi.emit_hhem(QueryFullResponse(), answers=False)

    mesedi.flush(5)
    (answer,) = server.of_type("answer")
    assert answer["payload"]["answer"] == "Pets are allowed on Fridays [1]."
    assert answer["payload"]["context"] == {
        "excerpts": [{"id": "handbook", "text": "On Fridays pets may come along."}]
    }


def test_the_pairs_that_were_judged_travel_with_their_scores(client, server):
    mesedi.emit_hhem([0.1, 0.9], pairs=[("the source", "a lie"), ("the source", "the truth")])

    mesedi.flush(5)
    answers = {
        event["payload"]["answer_id"]: event["payload"] for event in server.of_type("answer")
    }
    judged = {answers[score["answer_id"]]["answer"]: score["score"] for score in server.scores}
    assert judged == {"a lie": 0.1, "the truth": 0.9}
    assert {answer["context"]["excerpts"][0] for answer in answers.values()} == {"the source"}


def test_an_error_is_no_bad_score(client, server):
    mesedi.emit_hhem({"error": "Model is loading", "estimated_time": 20.0})

    mesedi.flush(5)
    (score,) = server.scores
    assert (score["score"], score["status"], score["reason"]) == (None, "error", "Model is loading")
    assert "passed" not in score


def test_the_same_result_under_one_run_id_is_stored_once(client, server):
    bodies = json.loads((FIXTURES / "hhem" / "hhem_http_bodies.json").read_text("utf-8"))

    for _ in range(2):
        mesedi.emit_hhem(list(bodies.values())[:3], run_id="nightly")

    mesedi.flush(5)
    assert len(server.scores) == 3
