"""Ready-made judges, against a real local server."""

import re
import socket
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluators import judges
from evaluators.adapters import OpenAIChat, PriceTable, from_environment, from_function, posting
from evaluators.adapters import errors as told
from evaluators.errors import FactoryError
from evaluators.factories import load
from evaluators.judges import JudgeReply, JudgeRequest
from tests.evaluators.chat_server import VERDICT, answer, serving

REQUEST = JudgeRequest("Be a judge.", '{"answer":"é"}')
KEY = "sk-4f1c0a9be27d4c55"
PRICES = PriceTable(2_500_000, 10_000_000)


def ask(server, request=REQUEST, **options):
    return OpenAIChat(server.url, "model-7", **options).evaluate(request)


def test_a_request_and_its_reply_are_those_of_the_protocol():
    with serving(answer()) as server:
        reply = ask(server, api_key=KEY, max_output_tokens=500, parameters={"seed": 5})

    ((path, headers, body),) = server.asked
    assert path == "/v1/chat/completions"
    assert headers["Host"] == server.url.split("/")[2]
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    assert body == {
        "model": "model-7",
        "messages": [
            {"role": "system", "content": "Be a judge."},
            {"role": "user", "content": '{"answer":"é"}'},
        ],
        "temperature": 0,
        "response_format": {"type": "json_object"},
        "max_tokens": 500,
        "seed": 5,
        "stream": False,
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    assert judges.checked(reply) == JudgeReply(VERDICT, "stop", usage, None)


def test_what_is_switched_off_is_not_sent():
    with serving(answer()) as server:
        ask(server, json_mode=False, temperature=None)

    ((_, headers, body),) = server.asked
    assert set(body) == {"model", "messages", "stream"}
    assert "Authorization" not in headers


def test_the_limit_has_the_name_that_the_endpoint_wants():
    with serving(answer()) as server:
        ask(server, max_output_tokens=9, output_tokens_field="max_completion_tokens")

    assert server.asked[0][2]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.asked[0][2]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "refusal"),
        ("tool_calls", "other"),
        ("", "other"),
        (None, "other"),
        (5, "other"),
        (["stop"], "other"),
    ],
)
def test_why_a_reply_ended_is_kept(given, kept):
    with serving(answer(finish_reason=given)) as server:
        assert ask(server).finish_reason == kept


def test_a_refusal_is_a_reply():
    with serving(answer(None, refusal="I will not.")) as server:
        reply = ask(server)

    assert (reply.text, reply.finish_reason) == ("I will not.", "refusal")


def test_a_reply_without_text_is_empty():
    with serving(answer(None)) as server:
        assert ask(server).text == ""


def test_half_a_surrogate_pair_can_be_stored_as_it_was_written():
    with serving(answer("a\ud800b")) as server:
        assert ask(server).text == "a\\ud800b"


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}, 12_500_000),
        ({"prompt_tokens": 1, "completion_tokens": 0}, 3),
        ({"prompt_tokens": 0, "completion_tokens": 0}, 0),
        ({"prompt_tokens": 1}, None),
        ({"prompt_tokens": 1.0, "completion_tokens": 1}, None),
        ({"prompt_tokens": True, "completion_tokens": 1}, None),
        ({"prompt_tokens": -1, "completion_tokens": 1}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 1}, None),
    ],
)
def test_a_cost_is_known_when_the_tokens_are(usage, cost):
    with serving(answer(usage=usage)) as server:
        reply = ask(server, prices=PRICES)

    assert reply.actual_cost_micros == cost
    assert reply.usage == usage


def test_usage_that_is_no_json_object_is_left_out():
    for given in (b"5", b'{"n": 1e999}', b'{"\\ud800": 1}'):
        body = answer(usage={"here": 1}).replace(b'{"here": 1}', given)
        with serving(body) as server:
            reply = ask(server, prices=PRICES)
        assert (reply.usage, reply.actual_cost_micros) == (None, None)


def test_the_most_that_a_call_can_cost_is_declared_when_it_is_known():
    known = {"prices": PRICES, "max_output_tokens": 1_000, "max_input_bytes": 99_000}

    def bound(**options):
        return OpenAIChat("http://h", "m", **options).contract.max_cost_micros_per_call

    assert bound(**known) == 100_000 * 2.5 + 1_000 * 10
    for name in known:
        assert bound(**{key: value for key, value in known.items() if key != name}) is None


def test_a_prompt_over_the_declared_most_is_not_sent():
    size = len(REQUEST.system.encode()) + len(REQUEST.prompt.encode())

    with serving(answer()) as server:
        ask(server, max_input_bytes=size)
        with pytest.raises(told.PromptTooLargeError):
            ask(server, max_input_bytes=size - 1)

    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, told.RateLimitedError),
        (400, told.RequestRefusedError),
        (401, told.RequestRefusedError),
        (500, told.EndpointFailedError),
        (503, told.EndpointFailedError),
        (204, told.EndpointFailedError),
    ],
)
def test_another_status_is_raised_and_nothing_is_asked_twice(status, kind):
    def respond(handler):
        handler.reply(status, answer() if status != 204 else b"", **{"Retry-After": "0"})

    with serving(respond) as server:
        with pytest.raises(kind, match=str(status)):
            ask(server)
        time.sleep(0.05)  # a retry would come at once

    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    with serving(answer()) as other:

        def respond(handler):
            handler.reply(status, b"", Location=f"{other.url}/chat/completions")

        with serving(respond) as server, pytest.raises(told.RedirectedError):
            ask(server, api_key=KEY)

    assert (len(server.asked), len(other.asked)) == (1, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        answer()[:-1],
        answer() + b"x",
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}',
        b'{"choices": [{"message": {"content": ["t"]}, "finish_reason": "stop"}]}',
        b'{"error": {"message": "overloaded"}}',
        b"\xff",
        b"[" * 100_000,
        b'{"n": ' + b"9" * 5_000 + b"}",
        b"data: {}\n\n",
    ],
)
def test_what_is_not_of_the_protocol_is_raised(body):
    with serving(body) as server:
        with pytest.raises(told.UnreadableReplyError):
            ask(server)

        assert len(server.asked) == 1


def test_what_is_not_http_is_raised():
    def respond(handler):
        handler.wfile.write(b"nonsense\r\n\r\n")
        handler.close_connection = True

    with serving(respond) as server, pytest.raises(told.UnreadableReplyError):
        ask(server)


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_reply_of_too_many_bytes_is_not_taken(is_announced):
    body = answer("a" * 1_000)

    def respond(handler):
        if is_announced:
            handler.reply(200, body)
        else:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(body)
            handler.close_connection = True

    with serving(respond) as server:
        assert ask(server, max_reply_bytes=len(body)).text == "a" * 1_000
        with pytest.raises(told.ReplyTooLargeError):
            ask(server, max_reply_bytes=len(body) - 1)


def test_an_endpoint_may_end_the_connection_with_its_reply():
    def respond(handler):
        handler.reply(200, answer(), Connection="close")

    with serving(respond) as server:
        assert ask(server).text == VERDICT


def test_an_endless_reply_is_not_read_to_its_end():
    def respond(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while not handler.server.stopping.is_set():
            handler.wfile.write(b"1000\r\n" + b" " * 4096 + b"\r\n")

    with serving(respond) as server, pytest.raises(told.ReplyTooLargeError):
        ask(server, max_reply_bytes=1_000_000)


def test_a_reply_that_breaks_off_is_raised():
    def respond(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(answer()) + 1))
        handler.end_headers()
        handler.wfile.write(answer())
        handler.close_connection = True

    with serving(respond) as server, pytest.raises(told.ConnectionFailedError):
        ask(server)


@pytest.mark.parametrize("where", ["nothing", "head", "headers", "body", "chunks"])
def test_a_reply_that_dribbles_ends_with_the_whole_timeout(where):
    beginnings = {
        "nothing": b"",
        "head": b"HTTP/1.1 200 O",
        "headers": b"HTTP/1.1 200 OK\r\nX-Slow: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n",
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    }

    def respond(handler):
        handler.wfile.write(beginnings[where])
        while not handler.server.stopping.wait(0.02):
            if where != "nothing":
                handler.wfile.write(b"1\r\na\r\n" if where == "chunks" else b"a")

    with serving(respond) as server:
        begin = time.perf_counter()
        with pytest.raises(told.TimedOutError):
            ask(server, timeout_s=0.3)
        took = time.perf_counter() - begin

    assert 0.25 < took < 2
    assert len(server.asked) == 1


def test_an_endpoint_that_does_not_read_ends_with_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        judge = OpenAIChat(f"http://127.0.0.1:{deaf.getsockname()[1]}", "m", timeout_s=0.3)

        with pytest.raises(told.TimedOutError):
            judge.evaluate(JudgeRequest("s", "a" * 20_000_000))


def test_a_handshake_without_an_answer_ends_with_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        judge = OpenAIChat(f"https://127.0.0.1:{deaf.getsockname()[1]}", "m", timeout_s=0.3)

        with pytest.raises(told.TimedOutError) as raised:
            judge.evaluate(REQUEST)

    assert not raised.value.was_sent


def test_an_endpoint_that_is_not_there_is_raised():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"

    with pytest.raises(told.NotConnectedError) as raised:
        OpenAIChat(url, "m").evaluate(REQUEST)

    assert isinstance(raised.value, told.ConnectionFailedError)
    assert not raised.value.was_sent


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_a_public_judge_is_never_asked_at_a_private_address(host):
    with serving(answer()) as server:
        url = f"http://{host}:{server.server_port}/v1"
        with pytest.raises(told.PrivateAddressError):
            OpenAIChat(url, "m", is_public=True).evaluate(REQUEST)

    assert server.asked == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%eth0", "fd00::1",
        "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "no address",
    ],
)  # fmt: skip
def test_these_addresses_are_not_public(address):
    assert not posting.is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"])
def test_these_addresses_are_public(address):
    assert posting.is_public(address)


def test_plain_text_on_a_secure_port_is_raised():
    with serving(answer()) as server, pytest.raises(told.JudgeCallError):
        OpenAIChat(server.url.replace("http:", "https:"), "m").evaluate(REQUEST)

    assert server.asked == []


def test_many_threads_get_each_their_own_reply():
    gate = threading.Barrier(8)

    def respond(handler):
        gate.wait(10)
        handler.reply(200, answer(handler.asked["messages"][1]["content"]))

    asked = [JudgeRequest("s", str(number)) for number in range(16)]
    with serving(respond) as server, ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(OpenAIChat(server.url, "m").evaluate, asked))

    assert [reply.text for reply in replies] == [request.prompt for request in asked]
    assert len(server.asked) == 16


def test_the_key_is_shown_nowhere():
    judges_ = [OpenAIChat("http://h", "m", api_key=key) for key in (None, KEY, KEY[::-1])]

    assert len({judge.contract.configuration_digest for judge in judges_}) == 1
    assert KEY not in f"{judges_[1]!r} {judges_[1].contract!r}"


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_reply_that_repeats_the_key_is_not_kept(status):
    def respond(handler):
        handler.reply(status, answer(f"wrong key {KEY}"))

    with serving(respond) as server, pytest.raises(told.JudgeCallError) as caught:
        ask(server, api_key=KEY)

    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_short_key_is_a_word_that_a_reply_may_hold():
    with serving(answer("ollama")) as server:
        assert ask(server, api_key="ollama").text == "ollama"


@pytest.mark.parametrize("key", ["", "a b", f"{KEY}\n", f"{KEY}\r\nX: y", "schlüssel", 5])
def test_a_key_that_is_no_header_is_refused_unseen(key):
    with pytest.raises(FactoryError) as caught:
        OpenAIChat("http://h", "m", api_key=key)

    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h/v1",
        "ftp://h",
        "file:///etc/passwd",
        "http://",
        "http://h:99999",
        "http://h:x",
        "http://[::1",
        "http://user:secret@h",
        "http://h?key=secret",
        "http://h#secret",
        "http://h/a b",
        "http://h/é",
        None,
    ],
)
def test_a_url_that_is_none_is_refused_unseen(url):
    with pytest.raises(FactoryError) as caught:
        OpenAIChat(url, "m")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        *[{"timeout_s": value} for value in (0, -1, float("inf"), float("nan"), None, "60", True)],
        *[{"max_output_tokens": value} for value in (0, -1, 1.5, True, "9")],
        *[{"max_input_bytes": value} for value in (0, "9")],
        *[{"max_reply_bytes": value} for value in (0, None)],
        *[
            {"parameters": {name: 1}}
            for name in ("model", "messages", "stream", "n", "temperature")
        ],
        {"parameters": {"seed": b"x"}},
        {"parameters": {"seed": float("nan")}},
        {"temperature": float("nan")},
        {"api_key_variable": "MESEDI_TEST_NO_SUCH_KEY"},
    ],
    ids=str,
)
def test_an_option_that_is_wrong_is_refused(options):
    with pytest.raises(FactoryError):
        OpenAIChat("http://h", "m", **options)


@pytest.mark.parametrize("prices", [(-1, 0), (0, 1.5), (True, 0), ("1", 1), (None, 1)])
def test_a_price_is_an_integer(prices):
    with pytest.raises(FactoryError):
        PriceTable(*prices)


def test_the_digest_covers_what_shapes_a_verdict_and_nothing_else():
    def digest(url="http://h/v1", model="m", **options):
        return OpenAIChat(url, model, **options).contract.configuration_digest

    different = [
        digest(),
        digest("http://h/v2"),
        digest("https://h/v1"),
        digest("http://h:81/v1"),
        digest(model="n"),
        digest(temperature=1),
        digest(json_mode=False),
        digest(max_output_tokens=5),
        digest(parameters={"seed": 1}),
    ]
    same = [
        digest("http://h:80/v1/"),
        digest(timeout_s=5),
        digest(max_reply_bytes=5),
        digest(prices=PRICES),
        digest(api_key=KEY),
    ]

    assert len(set(different)) == len(different)
    assert set(same) == {digest()}


@pytest.fixture
def environment(monkeypatch):
    def put(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"MESEDI_JUDGE_{name}", value)

    return put


def test_variables_describe_a_judge(environment):
    with serving(answer()) as server:
        environment(
            URL=server.url,
            MODEL="llama3",
            KEY=KEY,
            JSON_MODE="0",
            TEMPERATURE="none",
            MAX_OUTPUT_TOKENS="100",
            OUTPUT_TOKENS_FIELD="max_completion_tokens",
            MAX_INPUT_BYTES="9000",
            INPUT_MICROS_PER_MILLION="2500000",
            OUTPUT_MICROS_PER_MILLION="10000000",
            TIMEOUT_S="2.5",
        )
        judge = judges.build(load("evaluators.adapters:from_environment"))
        reply = judge.evaluate(REQUEST)

    ((_, headers, body),) = server.asked
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert set(body) == {"model", "messages", "stream", "max_completion_tokens"}
    assert judge.contract.model == "llama3"
    assert judge.contract.max_cost_micros_per_call == 26_000
    assert reply.actual_cost_micros == 450


def test_an_address_and_a_model_are_enough(environment):
    environment(URL="http://localhost:11434/v1", MODEL="llama3", KEY="", TIMEOUT_S="")

    assert from_environment().contract.model == "llama3"


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"MODEL": "m"}, "MESEDI_JUDGE_URL is not set"),
        ({"URL": "http://h"}, "MESEDI_JUDGE_MODEL is not set"),
        ({"URL": "http://h", "MODEL": "m", "TIMEOUT_S": "soon"}, "MESEDI_JUDGE_TIMEOUT_S"),
        ({"URL": "http://h", "MODEL": "m", "JSON_MODE": "maybe"}, "MESEDI_JUDGE_JSON_MODE"),
        (
            {"URL": "http://h", "MODEL": "m", "INPUT_MICROS_PER_MILLION": "5"},
            "MESEDI_JUDGE_OUTPUT_MICROS_PER_MILLION is not set",
        ),
    ],
)
def test_a_variable_that_is_missing_or_wrong_is_named(environment, variables, named):
    environment(**variables)

    with pytest.raises(FactoryError, match=named):
        from_environment()


def test_every_variable_is_documented():
    root = Path(__file__).parents[2]
    source = (root / "evaluators" / "adapters" / "environment.py").read_text(encoding="utf-8")
    page = (root / "docs" / "evaluators.md").read_text(encoding="utf-8")

    names = set(re.findall(r'"(MESEDI_JUDGE_[A-Z_]+)"', source))

    assert len(names) == 11
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_a_function_is_a_judge():
    seen = []

    def ask_model(system, prompt):
        seen.append((system, prompt))
        return VERDICT

    judge = judges.build(lambda: from_function(ask_model, "mine", max_cost_micros_per_call=7))

    assert judge.evaluate(REQUEST) == JudgeReply(VERDICT)
    assert seen == [(REQUEST.system, REQUEST.prompt)]
    assert (judge.contract.model, judge.contract.max_cost_micros_per_call) == ("mine", 7)


def test_a_function_may_say_what_it_cost():
    reply = JudgeReply("text", "length", {"tokens": 5}, 12)

    assert from_function(lambda *_: reply, "mine").evaluate(REQUEST) is reply


def test_a_functions_digest_is_given_or_made_of_its_name():
    given = from_function(print, "m", "0" * 64).contract.configuration_digest
    made = [
        from_function(each, "m").contract.configuration_digest
        for each in (print, max, PRICES.cost_micros)
    ]

    assert given == "0" * 64
    assert len(set(made)) == 3


@pytest.mark.parametrize(
    "wrong", [(None, "m"), (print, ""), (print, "m", "abc"), (print, "m", None, -1)]
)
def test_a_function_judge_that_breaks_the_contract_is_refused(wrong):
    with pytest.raises(FactoryError):
        from_function(*wrong)


def test_what_a_function_raises_is_not_hidden():
    def fail(*_):
        raise RuntimeError("no model")

    with pytest.raises(RuntimeError):
        from_function(fail, "m").evaluate(REQUEST)
