"""A judged evaluation against a real endpoint that speaks the chat protocol, well and badly."""

import json
import threading
from collections import Counter

import pytest

from evaluators import evaluate_saved, evaluation_summary
from evaluators.adapters import OpenAIChat, PriceTable
from evaluators.ledger import Budget
from tests.evaluators.chat_server import answer, serving
from tests.evaluators.judge import FAITHFUL, verdict
from tests.evaluators.records import assistant, captured, spec, user

BEHAVIOURS = {
    "right": ("met", "response_saved", None),
    "slow": ("unknown_outcome", "unknown_outcome", "TimedOutError"),
    "limited": ("unknown_outcome", "unknown_outcome", "RateLimitedError"),
    "failing": ("unknown_outcome", "unknown_outcome", "EndpointFailedError"),
    "huge": ("unknown_outcome", "unknown_outcome", "ReplyTooLargeError"),
    "no JSON": ("unknown_outcome", "unknown_outcome", "UnreadableReplyError"),
    "hung up": ("unknown_outcome", "unknown_outcome", "ConnectionFailedError"),
    "cut off": ("invalid", "response_saved", None),
    "prose": ("invalid", "response_saved", None),
    "refused": ("invalid", "response_saved", None),
    "right again": ("met", "response_saved", None),
}
"""What the endpoint does for an answer; then the result, the call and the error that is kept."""


def _respond(handler):
    payload = json.loads(handler.asked["messages"][1]["content"])
    good = verdict(payload)
    match payload["answer"]["text"]:
        case "slow":
            handler.server.stopping.wait(30)
        case "limited":
            handler.reply(429, b"{}", **{"Retry-After": "0"})
        case "failing":
            handler.reply(500, b"{}")
        case "huge":
            handler.reply(200, answer("x" * 3_000_000))
        case "no JSON":
            handler.reply(200, b"<html>")
        case "hung up":
            handler.close_connection = True
        case "cut off":
            handler.reply(200, answer(good, "length"))
        case "prose":
            handler.reply(200, answer(f"Sure! {good}"))
        case "refused":
            handler.reply(200, answer(None, refusal="I will not."))
        case _:
            handler.reply(200, answer(good))


def _judge(server, **options):
    return OpenAIChat(
        server.url,
        "model-7",
        timeout_s=1,
        prices=PriceTable(1_000_000, 2_000_000),
        max_output_tokens=500,
        max_input_bytes=50_000,
        max_reply_bytes=1_000_000,
        **options,
    )


@pytest.mark.parametrize("concurrency", [1, 4])
def test_every_kind_of_reply_has_its_result_and_none_is_asked_for_twice(tmp_path, concurrency):
    run = captured(tmp_path, [turn for text in BEHAVIOURS for turn in (user(), assistant(text))])
    with serving(_respond) as server:
        for _ in range(2):
            evaluate_saved(
                run,
                spec(FAITHFUL),
                judge=_judge(server),
                budget=Budget(100, 10_000_000),
                concurrency=concurrency,
            )
    details = evaluation_summary(run, details=True)

    calls = {call["id"]: call for call in details["calls"]}
    found = [
        (result["status"], call["status"], call["exception_type"])
        for result in details["results"]
        for call in [calls[result["call_id"]]]
    ]
    assert dict(zip(BEHAVIOURS, found, strict=True)) == BEHAVIOURS
    asked = Counter(body["messages"][1]["content"] for _, _, body in server.asked)
    assert asked == Counter(call["request"]["prompt"] for call in calls.values())
    assert set(asked.values()) == {1}
    # 100 tokens in and 20 out where the endpoint said so: 140 millionths a call.
    assert details["budget"]["known_actual_cost_micros"] == 5 * 140
    assert details["budget"]["calls_with_unknown_actual_cost"] == 6


def test_concurrent_calls_reach_the_endpoint_at_once(tmp_path):
    run = captured(
        tmp_path,
        [turn for number in range(8) for turn in (user(), assistant(f"Take {number} mg."))],
    )
    all_here = threading.Barrier(8, timeout=60)

    def respond(handler):
        all_here.wait()
        handler.reply(200, answer(verdict(json.loads(handler.asked["messages"][1]["content"]))))

    with serving(respond) as server:
        judge = OpenAIChat(server.url, "model-7", timeout_s=60)
        evaluate_saved(run, spec(FAITHFUL), judge=judge, budget=Budget(8), concurrency=8)

    assert evaluation_summary(run)["counts"] == {"met": 8}
