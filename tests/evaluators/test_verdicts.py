"""What is read as a verdict at all: the raw text of a judge, whatever it is."""

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluators import faithfulness, rubric, verdicts
from evaluators.judges import JudgeReply
from evaluators.verdicts import InvalidVerdictError
from tests.evaluators import verdict_samples as samples

GOOD = json.dumps(samples.faithful())
MEGABYTES = 10_000_000


def reason_of(reply, read=None):
    """The reason for which a reply is invalid."""
    with pytest.raises(InvalidVerdictError) as caught:
        (read or read_faithful)(reply)
    return caught.value.reason


def read_faithful(reply):
    return faithfulness.read_verdict(reply, samples.ANSWER, samples.BUNDLE)


def read_rubric(reply):
    quotable = rubric.sources(samples.ANSWER, None, [])
    return rubric.read_verdict(reply, quotable, allow_not_applicable=False)


BAD_TEXTS = {
    "": "is empty",
    " \n\t": "is empty",
    "Sorry, I cannot do that.": "is not one JSON object and nothing else: Expecting value",
    f"Here it is: {GOOD}": "Expecting value at character 1",
    f"{GOOD} I hope this helps.": "Extra data",
    f"```json\n{GOOD}\n```": "Expecting value at character 1",
    f"{GOOD}{GOOD}": "Extra data",
    f"{GOOD}\n{GOOD}": "Extra data",
    f"[{GOOD}]": "is not a JSON object",
    f"\ufeff{GOOD}": "BOM",
    f"\u00a0{GOOD}": "Expecting value at character 1",
    GOOD[:-1]: "is not one JSON object and nothing else",
    GOOD.replace("}", ",}"): "is not one JSON object and nothing else",
    GOOD.replace('"', "'"): "is not one JSON object and nothing else",
    f"// yes\n{GOOD}": "is not one JSON object and nothing else",
    GOOD.replace("It is so.", "It\nis so."): "Invalid control character",
    json.dumps(GOOD): "is not a JSON object",
    "null": "is not a JSON object",
    "true": "is not a JSON object",
    "9": "is not a JSON object",
    GOOD.replace("9,", "NaN,"): "not finite, or too long",
    GOOD.replace("9,", "Infinity,"): "not finite, or too long",
    GOOD.replace("9,", "-Infinity,"): "not finite, or too long",
    GOOD.replace("9,", "1e999,"): "not finite, or too long",
    GOOD.replace("9,", "9" * 5_000 + ","): "not finite, or too long",
    GOOD.replace("It is so.", r"\ud800"): "half of a surrogate pair",
    GOOD.replace("It is so.", "\udc00"): "half of a surrogate pair",
    GOOD.replace("reasoning", r"\ud800"): "half of a surrogate pair",
    "[" * 100_000: "is nested too deeply",
    '{"a":' * 100_000: "is nested too deeply",
    '{"claims":' + "[" * 100_000: "is nested too deeply",
    "a" * MEGABYTES: "Expecting value",
    " " * MEGABYTES: "is empty",
    '"' + "a" * MEGABYTES + '"': "is not a JSON object",
    "[" + "1," * MEGABYTES + "1]": "is not a JSON object",
    json.dumps({"a" * MEGABYTES: 1}): "aaa…' is not a known field",
    json.dumps(samples.faithful(claims=[samples.claim("a" * MEGABYTES)])): "is not in the answer",
    json.dumps(samples.faithful(correctness="9" * MEGABYTES)): "correctness must be an integer",
}


@pytest.mark.parametrize(
    ("reply", "reason"), BAD_TEXTS.items(), ids=lambda text: text[:30].encode("ascii", "replace")
)
def test_a_text_that_is_no_verdict_is_invalid_for_a_short_reason(reply, reason):
    begin = time.process_time()

    found = reason_of(reply)

    assert reason in found
    assert len(found) < 200
    assert time.process_time() - begin < 10


REPEATS = {
    "a field": GOOD.replace('"correctness"', '"correctness": 1, "correctness"'),
    "the same value": GOOD.replace('"correctness"', '"correctness": 9, "correctness"'),
    "an escaped name": GOOD.replace('"correctness"', '"\\u0063orrectness": 9, "correctness"'),
    "a claim's field": GOOD.replace('"status"', '"status": "supported", "status"'),
    "a quote's field": GOOD.replace('"quote"', '"quote": "Drink 2 L", "quote"'),
    "inside an unknown field": GOOD.replace("{", '{"note": [{"a": 1, "a": 2}], ', 1),
    "schema_version": GOOD.replace("{", '{"schema_version": 1, "schema_version": 1, ', 1),
}


@pytest.mark.parametrize("reply", REPEATS.values(), ids=REPEATS)
def test_a_repeated_name_is_invalid_at_any_depth(reply):
    assert reason_of(reply) == "repeats a field"


@pytest.mark.parametrize(
    "reply", [GOOD, f" \r\n\t{GOOD}\n\n", json.dumps(json.loads(GOOD), indent=9)]
)
def test_white_space_around_and_inside_is_fine(reply):
    assert read_faithful(reply).correctness == 9


@pytest.mark.parametrize(
    "reply", [None, 5, True, [], [samples.faithful()], {1: 2}, {"claims": {1}}, object()]
)
def test_what_is_no_object_of_json_values_is_invalid(reply):
    assert reason_of(reply)
    assert reason_of(reply, read_rubric)


@pytest.mark.parametrize("finish_reason", ["length", "refusal", "other"])
def test_a_reply_that_did_not_come_to_its_end_is_invalid(finish_reason):
    assert finish_reason in reason_of(JudgeReply(GOOD, finish_reason), verdicts.whole_text)


def test_a_whole_reply_has_its_text():
    assert verdicts.whole_text(JudgeReply(GOOD)) == GOOD


def test_a_verdict_of_ten_megabytes_is_read_in_seconds():
    quotes = [samples.QUOTE, {"source_id": "turn:0", "quote": "3 L"}] * 50
    words = [str(number) for number in range(2_500)]
    verdict = samples.faithful(claims=[samples.claim(word, evidence=quotes) for word in words])
    reply = json.dumps(verdict)
    begin = time.perf_counter()

    read = faithfulness.read_verdict(reply, " ".join(words), samples.BUNDLE)

    assert len(reply) > MEGABYTES
    assert len(read.claims) == 2_500
    assert time.perf_counter() - begin < 20


def test_a_hundred_thousand_different_quotes_are_looked_up_in_seconds():
    numbers = [str(number) for number in range(100_000)]
    source = "x" * 1_000_000 + " ".join(numbers)
    quotes = [{"source_id": "answer", "quote": number} for number in numbers]
    begin = time.perf_counter()

    read = rubric.read_verdict(
        samples.rubric(evidence=quotes), {"answer": source}, allow_not_applicable=False
    )

    assert len(read.evidence) == 100_000
    assert time.perf_counter() - begin < 20


@given(st.text("ab", max_size=300), st.lists(st.text("ab", min_size=1, max_size=9)))
@example("ab" * 200 + "a", [f"{n:09b}".translate({48: "a", 49: "b"}) for n in range(200)])
@example("".join(f"{n:09b}" for n in range(512)), [f"{n:09b}" for n in range(512)])
@example("".join(f"{n:09b}" for n in range(1, 512)), [f"{n:09b}" for n in range(512)])
def test_many_pieces_are_found_as_each_one_is(source, pieces):
    missing = [piece for piece in pieces if piece not in source]

    assert verdicts.absent(pieces, source) in (missing or [None])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=20,
)
PLACES = st.sampled_from(sorted(samples.faithful()))
MANY = st.text(st.characters(), max_size=30)


@given(st.one_of(MANY, JSON, JSON.map(json.dumps)))
@example("{}")
def test_nothing_but_an_invalid_verdict_is_ever_raised(reply):
    for read in (read_faithful, read_rubric):
        assert reason_of(reply, read)


@given(PLACES, JSON)
def test_a_field_that_holds_anything_is_read_or_invalid(name, value):
    verdict = samples.faithful(**{name: value})

    try:
        read = read_faithful(verdict)
    except InvalidVerdictError:
        assert len(reason_of(verdict)) < 200
    else:
        assert read.content() == verdict
        assert read_faithful(json.dumps(verdict)) == read


@given(st.data())
def test_every_piece_of_a_text_is_a_quote_of_it(data):
    begin = data.draw(st.integers(0, len(samples.ANSWER) - 1))
    piece = samples.ANSWER[begin : data.draw(st.integers(begin + 1, len(samples.ANSWER)))]
    verdict = samples.rubric(evidence=[{"source_id": "answer", "quote": piece}])

    if piece.strip():
        assert read_rubric(verdict).evidence == (("answer", piece),)
    else:
        assert "not blank" in reason_of(verdict, read_rubric)


@given(MANY)
def test_a_quote_that_is_read_stands_in_its_source(words):
    verdict = samples.rubric(evidence=[{"source_id": "answer", "quote": words}])

    try:
        read_rubric(verdict)
    except InvalidVerdictError:
        assert words not in samples.ANSWER or not words.strip()
    else:
        assert words in samples.ANSWER


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ("[]", "the verdict is not a JSON object"),
        ("", "the verdict is empty"),
        (
            GOOD.replace('"correctness": 9', '"correctness": 11'),
            "the verdict cannot be used: correctness must be",
        ),
    ],
)
def test_the_reason_can_be_said_in_a_sentence(reply, sentence):
    with pytest.raises(InvalidVerdictError) as caught:
        read_faithful(reply)

    assert caught.value.sentence.startswith(sentence)
