"""Troubles that people reported of other clients, by the number of the list they were read in.

Those with tests of their own elsewhere: 21, 22, 27, 32 and 35 in test_shipping, 33 in test_process.
"""

import asyncio
import math
import signal
import struct
import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import mesedi
import pytest

from tests.sdk.conftest import KEY
from tests.sdk.test_process import SDK, run


def scores(server):
    assert mesedi.flush(5) == 0
    return server.scores


def test_1_one_nan_does_not_take_its_neighbour_along(client, server):
    mesedi.emit_ragas([{"faithfulness": math.nan, "answer_relevancy": 0.9}])

    lost, kept = scores(server)
    assert (lost["score"], lost["status"], kept["score"]) == (None, "not_scored", 0.9)


def test_2_a_nan_is_no_failed_test(client, server):
    rows = [{"faithfulness": score} for score in (0.8, 0.9, math.nan)]

    mesedi.emit_ragas(rows, thresholds={"faithfulness": 0.5})

    assert [score.get("passed") for score in scores(server)] == [True, True, None]


def test_3_what_was_not_measured_is_sent_and_says_so(client, server):
    mesedi.emit_ragas([{"faithfulness": score} for score in [1.0, *[math.nan] * 9]])

    told = [score.get("status") for score in scores(server)]
    assert told == [None, *["not_scored"] * 9]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None])
def test_5_6_8_no_number_is_null_with_a_status_among_good_neighbours(client, server, score):
    with mesedi.execution():
        for place in range(20):
            mesedi.emit_eval_score("judge", f"good {place}", 0.5)
        mesedi.emit_eval_score("judge", "bad", score)

    *good, bad = scores(server)
    assert len(good) == 20
    assert (bad["score"], bad["status"]) == (None, "not_scored")
    assert mesedi.stats().complete


class Float32:
    """numpy.float32: no Python float, not taken by json."""

    def __init__(self, value):
        (self._value,) = struct.unpack("f", struct.pack("f", value))

    def item(self):
        return self._value

    def __float__(self):
        return self._value


class Array(list):
    """numpy.ndarray of float32."""

    def tolist(self):
        return [value.item() for value in self]


def test_10_numbers_of_numpy_are_numbers(client, server):
    mesedi.emit_hhem(Float32(0.42))
    mesedi.emit_hhem(Array([Float32(0.1)]))
    mesedi.emit_eval_score("judge", "tone", Float32(0.42))

    told = [round(score["score"], 6) for score in scores(server)]
    assert told == [0.42, 0.1, 0.42]


def test_11_an_object_that_carries_the_score_is_read(client, server):
    mesedi.emit_eval_score("deepeval", "relevancy", SimpleNamespace(score=1.0, threshold=0.5))
    mesedi.emit_eval_score("deepeval", "relevancy", None)

    assert [score["score"] for score in scores(server)] == [1.0, None]


def test_12_scores_just_outside_the_scale_are_not_refused(client, server):
    mesedi.emit_ragas([{"answer_relevancy": -0.0015}, {"answer_relevancy": 1.0000000000000002}])

    assert [score["score"] for score in scores(server)] == [-0.0015, 1.0]


def test_14_a_score_of_another_scale_is_kept_raw_and_says_its_scale(client, server):
    mesedi.emit_eval_score("judge", "quality", 8)
    mesedi.emit_eval_score("judge", "quality", 8, scale=(0, 10))

    told = [(score["score"], score.get("scale")) for score in scores(server)]
    assert told == [(8, None), (8, [0, 10])]


def test_15_16_renamed_metrics_stay_one_series(client, server):
    names = ("answer_relevancy", "response_relevancy", "context_ relevancy", " faithfulness")

    mesedi.emit_ragas([dict.fromkeys((*names, "rouge_score(mode=fmeasure)"), 0.5)])

    told = [score["metric_type"] for score in scores(server)]
    assert told == [
        "answer_relevancy",
        "answer_relevancy",
        "context_relevance",
        "faithfulness",
        "rouge_score.fmeasure",
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "answer": "a", "contexts": ["c"]},
        {"user_input": "q", "response": "a", "retrieved_contexts": []},
        {"user_input": "q", "response": "a", "retrieved_contexts": None},
        {"user_input": "q", "response": "a"},
        {},
    ],
)
def test_17_18_columns_that_are_missing_or_renamed_hold_up_no_score(client, server, row):
    mesedi.emit_ragas([{**row, "faithfulness": 0.5}])

    assert [score["score"] for score in scores(server)] == [0.5]


def test_20_a_running_loop_is_neither_patched_nor_joined_by_another(client, server):
    async def main():
        loop = asyncio.get_running_loop()
        run_forever = loop.run_forever
        mesedi.emit_ragas([{"faithfulness": 0.5}])
        assert asyncio.get_running_loop() is loop
        assert loop.run_forever == run_forever

    asyncio.run(main())

    assert len(scores(server)) == 1


def test_24_a_cancelled_task_does_not_keep_the_process_from_ending(server):
    done, took = run(
        """
        import asyncio
        import mesedi

        async def work():
            async with mesedi.execution("exec-1"):
                mesedi.emit_eval_score("judge", "tone", 0.5)
                await asyncio.sleep(60)

        async def main():
            task = asyncio.ensure_future(work())
            await asyncio.sleep(0)
            task.cancel()

        asyncio.run(main())
        """,
        server.url,
    )

    assert done.returncode == 0, done.stderr
    assert took < 5
    assert len(server.scores) == 1
    assert server.executions["exec-1"]["PATCH"]["status"] == "halted"


def test_25_a_sum_of_named_scores_is_not_taken_for_a_score(client, server):
    part = {"pass": True, "score": 1, "assertion": {"type": "equals", "metric": "Accuracy"}}
    row = {
        "success": True,
        "score": 1,
        "namedScores": {"Accuracy": 2},
        "gradingResult": {"pass": True, "score": 1, "componentResults": [part, part]},
    }

    mesedi.emit_promptfoo(row)
    mesedi.emit_promptfoo({"pass": True, "score": 1, "named_scores": {"fluency": 0.6}})

    told = [(score["metric_type"], score["score"]) for score in scores(server)]
    assert told[:2] == [("Accuracy", 1), ("Accuracy", 1)]
    assert ("fluency", 0.6) in told


def test_31_a_process_that_is_stopped_sends_once_when_it_goes_on(server):
    script = """
        import sys
        import mesedi
        mesedi.configure(flush_interval_ms=1000)
        mesedi.emit_eval_score("judge", "tone", 0.5, execution_id="exec-known")
        print("emitted", flush=True)
        sys.stdin.read()
    """
    environment = {"PYTHONPATH": str(SDK), "MESEDI_API_KEY": KEY, "MESEDI_BASE_URL": server.url}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        threading.Event().wait(1.2)  # longer than its flush interval
        assert not server.scores
        process.send_signal(signal.SIGCONT)
        server.wait_for(lambda: server.scores)
        process.stdin.close()
        assert process.wait(10) == 0

    assert len(server.scores) == 1
    assert not server.duplicates


@pytest.mark.parametrize("event_id", [None, ""])
def test_37_a_score_without_an_id_gets_one(client, server, event_id):
    for _ in range(2):
        mesedi.emit_eval_score("judge", "tone", 0.5, event_id=event_id)

    assert len(scores(server)) == 2


def test_38_rows_without_any_id_are_two_events(client, server):
    for _ in range(2):
        mesedi.emit_ragas([{"faithfulness": 0.5}])
        mesedi.emit_promptfoo({"pass": True, "score": 1})

    assert len(scores(server)) == 4


def test_41_what_the_server_refuses_of_a_batch_is_told_from_what_it_takes(client, server):
    server.refuse = lambda event: "too old" if event["payload"]["metric_type"] == "old" else None

    with mesedi.execution():
        for metric in ["fresh", "old"] * 5:
            mesedi.emit_eval_score("judge", metric, 0.5)

    assert mesedi.flush(5) == 0
    stats = mesedi.stats()
    assert (stats.sent, stats.refused) == (5, {"too old": 5})


@pytest.mark.parametrize(
    ("label", "score", "passed"),
    [("pass", 1.0, True), ("fail", 0.0, False), ("B", None, None), (True, 1.0, None), ("0.9", 0.9, None)],
)  # fmt: skip
def test_42_labels_can_be_sent(client, server, label, score, passed):
    mesedi.emit_eval_score("judge", "tone", label)

    (told,) = scores(server)
    assert (told["score"], told.get("passed")) == (score, passed)
    if score is None:
        assert told["metadata"]["label"] == label
