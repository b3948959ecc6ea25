"""What happens to an event on its way out: the hook, the size, the sampling."""

import json

import mesedi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mesedi._fitting import CUT, fitted, json_bytes

from tests.sdk.conftest import configure
from tests.sdk.ingest import Reply


@pytest.mark.parametrize(
    "payload",
    [
        {"a": "x" * 10_000},
        {"a": {"b": [{"c": "x" * 10_000}, "y" * 9_000]}, "n": 1},
        {"a": "\n" * 5_000, "b": "日本" * 3_000, "c": "\ud800" * 5_000},
        {"numbers": list(range(5_000)), "name": "kept"},
        {f"key {n}": "v" for n in range(2_000)},
        {"k" * 9_000: 1, "name": "kept"},
        ["x" * 3_000, "y" * 3_000],
        "x" * 9_000,
        {"just": "x" * 4_096},
    ],
)
def test_a_payload_never_takes_more_than_it_may(payload):
    smaller = fitted(payload, 4_096)

    assert json_bytes(smaller) <= 4_096
    assert smaller["_truncated"] is True
    assert smaller["_original_payload_bytes"] == json_bytes(payload)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9).map(lambda t: t * 400),
        lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(), inner, max_size=9),
        max_leaves=30,
    )
)
@settings(max_examples=60, deadline=None)
def test_whatever_a_payload_holds_it_fits_afterwards(payload):
    assert json_bytes(fitted(payload, 4_096)) <= 4_096


def test_what_fits_is_left_as_it_is():
    payload = {"a": "x" * 4_086}

    assert json_bytes(payload) == 4_094
    assert fitted(payload, 4_094) is payload
    assert fitted(payload, 4_093) is not payload


def test_the_longest_texts_are_cut_and_the_others_kept_whole():
    payload = {"name": "n" * 200, "deep": [{"long": "x" * 20_000, "longer": "y" * 40_000}]}

    smaller = fitted(payload, 32_768)

    assert smaller["name"] == payload["name"]
    (deep,) = smaller["deep"]
    assert deep["long"].endswith("x" + CUT)
    assert deep["longer"].endswith("y" + CUT)
    assert len(deep["long"]) == len(deep["longer"]) > 15_000
    assert smaller["_truncated_fields"] == ["deep.0.long", "deep.0.longer"]


def test_only_as_much_is_cut_as_has_to_be():
    smaller = fitted({"a": "x" * 100_000, "b": "y" * 10_000}, 32_768)

    assert smaller["b"] == "y" * 10_000
    assert 31_000 < json_bytes(smaller) <= 32_768


def test_events_are_cut_to_the_wire_s_bound_and_answers_may_be_long(client, server):
    with mesedi.execution():
        mesedi.checkpoint("much", nested={"text": "x" * 100_000})
        mesedi.record_answer("q", "a" * 100_000)

    assert mesedi.flush(5) == 0
    (much,) = server.of_type("checkpoint")
    (answer,) = server.of_type("answer")
    assert len(json.dumps(much["payload"])) <= 32_768
    assert much["payload"]["metadata"]["nested"]["text"].endswith(CUT)
    assert len(answer["payload"]["answer"]) == 100_000
    assert mesedi.stats().complete


def test_an_answer_has_a_bound_of_its_own(server):
    configure(server.url, max_answer_bytes=10_000)

    mesedi.record_answer("q", "a", ["p" * 50_000, "short"])

    assert mesedi.flush(5) == 0
    (answer,) = server.of_type("answer")
    first, second = answer["payload"]["context"]["excerpts"]
    assert first.endswith(CUT)
    assert second == "short"


# before_send


def test_the_hook_sees_events_as_they_leave_and_may_change_their_payload(server):
    seen = []

    def redact(event):
        seen.append(dict(event))
        event["payload"]["reason"] = event["payload"]["reason"].replace("Ann", "[name]")
        event["execution_id"] = "exec-other"
        return event

    configure(server.url, before_send=redact)
    mesedi.emit_eval_score("judge", "tone", 0.2, reason="Ann is rude", execution_id="exec-known")

    assert mesedi.flush(5) == 0
    (event,) = server.events
    assert event["payload"]["reason"] == "[name] is rude"
    assert event["execution_id"] == "exec-known"
    assert seen[0]["event_id"] == event["event_id"]
    assert seen[0]["payload"]["evaluator_id"] == "judge"


def test_an_event_that_the_hook_keeps_stays_here_and_is_not_lost(server):
    configure(server.url, before_send=lambda _event: None)
    mesedi.emit_eval_score("judge", "tone", 0.2, execution_id="exec-known")

    assert mesedi.flush(5) == 0
    stats = mesedi.stats()
    assert not server.events
    assert (stats.dropped, stats.lost, stats.sent) == ({"before_send": 1}, 0, 0)
    assert stats.complete


def test_a_hook_that_fails_lets_nothing_through(server, caplog):
    def broken(event):
        raise KeyError("secret of the payload")

    configure(server.url, before_send=broken)
    mesedi.emit_eval_score("judge", "tone", 0.2, reason="Ann", execution_id="exec-known")

    assert mesedi.flush(5) == 0
    assert not server.events
    assert mesedi.stats().dropped == {"before_send failed": 1}
    assert mesedi.stats().lost == 1
    assert "before_send failed (KeyError)" in caplog.text
    assert "secret" not in caplog.text


def test_the_hook_meets_the_whole_text_and_again_the_same_when_tried_again(server):
    lengths = []

    def mark(event):
        lengths.append(len(event["payload"]["nested"]["text"]))
        event["payload"]["nested"]["text"] += "!"
        return event

    configure(server.url, before_send=mark)
    answers = iter([Reply(503), Reply(503)])
    server.rule = lambda _request: next(answers, None)
    mesedi.emit_event("custom", {"nested": {"text": "x" * 60_000}}, execution_id="exec-known")

    assert mesedi.flush(5) == 0
    assert lengths == [60_000] * 3
    assert len(server.events) == 1


def test_what_the_hook_puts_in_becomes_plain(server):
    configure(
        server.url, before_send=lambda _event: {"payload": {"odd": object(), "nan": float("nan")}}
    )

    mesedi.emit_event("custom", {"a": 1}, execution_id="exec-known")

    assert mesedi.flush(5) == 0
    (event,) = server.events
    assert event["payload"] == {"odd": "<builtins.object>", "nan": None}


# Sampling


def test_a_share_of_an_evaluator_s_executions_is_sent_and_says_the_rate(server):
    configure(server.url, sample_rates={"ragas": 0.25})

    for place in range(400):
        for metric in ("faithfulness", "answer_relevancy"):
            mesedi.emit_eval_score("ragas", metric, 0.5, execution_id=f"exec-{place}")
        mesedi.emit_eval_score("judge", "tone", 0.5, execution_id=f"exec-{place}")

    assert mesedi.flush(10) == 0
    sampled = [event for event in server.events if event["payload"]["evaluator_id"] == "ragas"]
    assert len(server.events) - len(sampled) == 400
    assert 120 < len(sampled) < 280
    assert len(sampled) == 2 * len({event["execution_id"] for event in sampled})
    assert {event["payload"]["sample_rate"] for event in sampled} == {0.25}
    stats = mesedi.stats()
    assert stats.dropped == {"sampled out": 800 - len(sampled)}
    assert stats.complete


def test_the_same_result_is_sampled_the_same_each_time(server):
    configure(server.url, sample_rates={"ragas": 0.5})
    rows = [{"faithfulness": 0.5, "response": f"answer {place}"} for place in range(40)]

    for _ in range(2):
        mesedi.emit_ragas(rows, run_id="nightly")

    assert mesedi.flush(10) == 0
    assert 5 < len(server.scores) < 35
    assert len(server.of_type("answer")) == len(server.scores) == len(server.executions)


@pytest.mark.parametrize(("rate", "count"), [(0, 0), (1, 20)])
def test_the_ends_of_the_scale_are_none_and_all(server, rate, count):
    configure(server.url, sample_rates={"judge": rate})

    for _ in range(20):
        mesedi.emit_eval_score("judge", "tone", 0.5)

    assert mesedi.flush(5) == 0
    assert len(server.scores) == count
    assert not any("sample_rate" in score for score in server.scores)
