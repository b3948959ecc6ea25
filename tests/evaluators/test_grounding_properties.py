"""What must hold of any text: nothing raises, quotes are exact, evidence is a set of places."""
# ruff: noqa: RUF001 (marks that look alike are what is tested)

import random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators import grounding, quantities
from evaluators.evidence import Bundle, Source

PIECES = (
    *("5", "10", "0.5", ".5", "1e3", "½", "1,000", "1.2.3", "٥", "９", "10³", "9" * 50),
    *(" mg", " g", " kg", " °C", " °F", " K", " min", " minutes", "%", " cups", "m", " degrees "),
    *(" ", "\n", "\r\n", "\t", "\u00a0", "\u2029", "\x00", "\ud800", "\ufeff", "\u200b"),
    *("-", "–", "—", "−", "+", "/", "±", "~", "<", ">", "=", "≥", ".", ",", ":", "^", "×", "·"),
    *(" to ", " and ", " or ", " per ", " than ", "between ", "about ", "at least ", "more than "),
    *("not ", "no ", "never ", "max ", "up to ", "or more", "²", "⁻¹", "/kg", "word", "COVID-19"),
    *("[1]", "[1,", "[2, 3]", "]", "[", "(", ")", "*", "_", "<b>", "</b>", "n't ", "at most."),
)

fragments = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
texts = st.one_of(fragments, st.text(max_size=200), st.tuples(fragments, st.text()).map("".join))


def bundle_of(*passages, question="What should I do?"):
    sources = [Source(f"passage:{number}", text) for number, text in enumerate(passages, 1)]
    return Bundle(Source("turn:0", question), tuple(sources))


def statuses(answer, bundle):
    return [finding.status for finding in grounding.assess(answer, bundle).quantities]


@settings(max_examples=500, deadline=None)
@given(texts)
def test_quotes_are_pieces_of_the_answer_in_order_and_without_overlap(text):
    assessment = grounding.assess(text, bundle_of(text))

    position = 0
    for finding in assessment.quantities:
        position = text.index(finding.quote, position) + len(finding.quote)
    assert all(finding.quote in text for finding in assessment.citations)


@settings(max_examples=500, deadline=None)
@given(texts)
def test_a_text_supports_each_exact_quantity_of_itself(text):
    assessment = grounding.assess(text, bundle_of(text))

    assert {finding.status for finding in assessment.quantities} <= {"source", "ambiguous"}
    for finding in assessment.quantities:
        if finding.evidence:
            assert finding.evidence.quote in text


@settings(max_examples=300, deadline=None)
@given(texts, st.lists(texts, max_size=5), st.randoms(use_true_random=False))
def test_order_and_repetition_of_passages_change_no_status(answer, passages, chance):
    shuffled = passages * 2
    chance.shuffle(shuffled)

    before = statuses(answer, bundle_of(*passages))
    after = statuses(answer, bundle_of(*shuffled))

    assert before == after


@settings(max_examples=300, deadline=None)
@given(texts, st.lists(texts, max_size=5))
def test_order_of_passages_changes_no_outcome_without_citations(answer, passages):
    answer = answer.replace("[", "(")

    before = grounding.assess(answer, bundle_of(*passages)).outcome
    after = grounding.assess(answer, bundle_of(*reversed(passages))).outcome

    assert before == after


@settings(max_examples=300, deadline=None)
@given(texts, st.lists(texts, max_size=3), st.text(alphabet=" \n\r\t\u00a0\u2029", max_size=5))
def test_trailing_white_space_changes_no_status(answer, passages, space):
    before = statuses(answer, bundle_of(*passages))
    after = statuses(answer + space, bundle_of(*(passage + space for passage in passages)))

    assert before == after


def test_two_million_characters_of_pieces_are_read_without_an_error():
    chance = random.Random(5)
    characters = 0

    while characters < 2_000_000:
        text = "".join(chance.choices(PIECES, k=chance.choice((20, 200, 2_000))))
        characters += len(text)
        assert all(quantity.quote in text for quantity in quantities.read(text))


HARD = (
    *("1,", "1 ", "5 mg ", "5 - ", "-5", "5 mg and ", "5 mg - ", "9", "0.", "[1,", "[1]", "[", "~"),
    *(
        "at least ",
        "no more than ",
        "not ",
        "> ",
        "5 mg >",
        "<b>",
        "a",
        "a-",
        " ",
        "\n",
        "1/",
        "½ ",
    ),
    *("5 mg/", "5 mg/(", "5 mg per 1 ", "5 ° ", "5 degrees ", "×10^", "10^3 ", "1.2", "5e", "±5"),
    *("between 5 mg and ", "5 mg or ", "5 mg at ", "1 000 ", "n't ", "=", "\x00", "0.9 °F ", "٥"),
    *("5 mg " + " " * 50, "9" * 4_200 + " °F ", "0." + "9" * 4_200 + " °F "),
)


def _cpu_seconds(text):
    bundle = bundle_of()
    seconds = []
    for _ in range(3):
        start = process_time()
        grounding.assess(text, bundle).content()
        seconds.append(process_time() - start)
    return min(seconds)


@pytest.mark.parametrize("piece", HARD, ids=lambda piece: repr(piece[:20]))
@pytest.mark.parametrize("end", ["x", " mg]"])
def test_time_grows_with_the_length_alone(piece, end):
    short, long = (_cpu_seconds((piece * size)[:size] + end) for size in (20_000, 80_000))

    assert short < 0.1  # 20 ms on an idle machine; a quadratic text would take seconds
    assert long < 4 * max(short, 0.004) * 3


def test_growth_is_seen_by_the_measure():
    """The measure above must be able to fail: the same text, searched once a character."""
    text = "1," * 10_000

    start = process_time()
    for position in range(0, 2_000, 20):
        quantities.read(text[position:])

    assert process_time() - start > _cpu_seconds(text) * 4 * 3
