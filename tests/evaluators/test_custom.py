"""Registered deterministic evaluators."""

import math
import sys
from dataclasses import replace

import pytest

from evaluators import custom, rubric
from evaluators.custom import Evaluator
from evaluators.errors import FactoryError
from evaluators.metrics import Descriptor, Totals
from evaluators.prompts import Turn

METRIC = Descriptor("words.count", "Words of the answer.", "mean", "words", "neutral")
CONVERSATION = [Turn("turn:0", "user", "Say two words."), Turn("turn:1", "assistant", "Two words.")]
CONTEXT = {"passages": ["Two."]}
GOOD = {
    "outcome": "met",
    "rationale": "There are two.",
    "evidence": [{"source_id": "answer", "quote": "Two"}],
    "metrics": {"words.count": {"numerator": 2, "denominator": 1}},
}


def evaluator(function=lambda **_: GOOD, **changed):
    fields = {"id": "words", "revision": "v1", "metrics": (METRIC,), "function": function}
    return Evaluator(**{**fields, **changed})


def run(asked, *, allow_not_applicable=True, context=CONTEXT, config=None):
    return custom.run(
        asked,
        "Two words.",
        conversation=CONVERSATION,
        context=context,
        config=config or {},
        sources=rubric.sources("Two words.", context, CONVERSATION),
        allow_not_applicable=allow_not_applicable,
    )


@pytest.mark.parametrize("outcome", ["met", "violated", "not_applicable", "needs_review"])
def test_what_a_function_says_is_kept(outcome):
    returned = GOOD | {"outcome": outcome}

    result = run(evaluator(lambda **_: returned))

    assert (result.outcome, result.reason) == (outcome, None)
    assert result.content() == returned
    assert result.samples() == {"words.count": {"numerator": 2, "denominator": 1}}


def test_a_function_is_shown_everything_that_was_saved():
    seen = {}

    def look(**given):
        seen.update(given)
        return GOOD

    run(evaluator(look), config={"least": 2})

    assert seen == {
        "answer": "Two words.",
        "conversation": tuple(CONVERSATION),
        "context": CONTEXT,
        "config": {"least": 2},
        "sources": {
            "turn:0": "Say two words.",
            "turn:1": "Two words.",
            "context": '{"passages":["Two."]}',
            "answer": "Two words.",
        },
    }


def test_a_function_cannot_change_what_the_next_one_sees():
    def spoil(*, context, config, sources, **_):
        context["passages"].clear()
        config["least"].append(1)
        sources.clear()
        return GOOD

    context, config = {"passages": ["Two."]}, {"least": []}
    result = run(evaluator(spoil), context=context, config=config)

    assert result.outcome == "met"
    assert (context, config) == ({"passages": ["Two."]}, {"least": []})


def test_an_evaluator_may_measure_nothing():
    returned = GOOD | {"metrics": {}, "evidence": []}

    result = run(evaluator(lambda **_: returned, metrics=()))

    assert (result.outcome, result.samples()) == ("met", {})


SAMPLE = {"numerator": 2, "denominator": 1}


@pytest.mark.parametrize(
    "returned",
    [
        None,
        "met",
        '{"outcome": "met"}',
        [GOOD],
        {},
        *[{key: value for key, value in GOOD.items() if key != name} for name in GOOD],
        GOOD | {"extra": 1},
        *[GOOD | {"outcome": value} for value in ("Met", "invalid", "", None, True)],
        *[GOOD | {"rationale": value} for value in ("", " ", None, 5, "\ud800")],
        *[GOOD | {"evidence": value} for value in (None, ["Two"], [{"source_id": "answer"}])],
        GOOD | {"evidence": [{"source_id": "answer", "quote": "two"}]},
        GOOD | {"evidence": [{"source_id": "passage:1", "quote": "Two"}]},
        *[GOOD | {"metrics": value} for value in (None, {}, [], {"count": SAMPLE})],
        GOOD | {"metrics": {"words.count": SAMPLE, "words.more": SAMPLE}},
        *[
            GOOD | {"metrics": {"words.count": value}}
            for value in (
                None,
                2,
                {"numerator": 2},
                {"denominator": 1},
                SAMPLE | {"value": 2},
                *[
                    SAMPLE | {"numerator": amount}
                    for amount in (None, "2", True, math.nan, math.inf, 10**400, 2**53 + 1, 1e300)
                ],
                *[
                    SAMPLE | {"denominator": amount}
                    for amount in (None, "1", True, 1.0, -1, 10**400)
                ],
            )
        ],
    ],
)
def test_a_broken_rule_is_invalid_and_only_the_class_is_told(returned):
    result = run(evaluator(lambda **_: returned))

    assert (result.outcome, result.reason) == ("invalid", "InvalidVerdictError")
    assert (result.content(), result.samples()) == ({}, {})


@pytest.mark.parametrize(
    "error", [ValueError("secret"), KeyError("secret"), RecursionError(), SystemExit(3)]
)
def test_an_exception_is_invalid_and_only_the_class_is_told(error):
    def fail(**_):
        raise error

    result = run(evaluator(fail))

    assert (result.outcome, result.reason) == ("invalid", type(error).__name__)


def test_an_interruption_is_no_result():
    def interrupt(**_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(evaluator(interrupt))


def test_not_applicable_has_to_be_allowed_by_the_criterion():
    asked = evaluator(lambda **_: GOOD | {"outcome": "not_applicable"})

    assert run(asked).outcome == "not_applicable"
    assert run(asked, allow_not_applicable=False).outcome == "invalid"


def test_fractions_add_up():
    returned = GOOD | {"metrics": {"words.count": {"numerator": 0.25, "denominator": 1}}}
    totals = Totals([METRIC])

    for _ in range(2):
        totals.add(run(evaluator(lambda **_: returned)).samples())

    assert totals.entries()["words.count"]["value"] == 0.25


@pytest.mark.parametrize(
    "changed",
    [
        *[{"id": name} for name in ("rubric", "grounding", "faithfulness", "evaluation")],
        *[{"id": name} for name in ("", " ", "a.b", "a b", "a\n", None, 5)],
        *[{"revision": value} for value in ("", " ", None, 1, "\ud800")],
        {"function": None},
        {"function": "module:function"},
        *[
            {"configuration_digest": value}
            for value in ("abc", "F" * 64, 5, int("1" * 64), None, 0)
        ],
        *[{"metrics": value} for value in (None, {METRIC}, "words", ["words.count"])],
        {"metrics": (METRIC, METRIC)},
        *[
            {"metrics": (replace(METRIC, **{name: value}),)}
            for name, values in {
                "id": (
                    "count",
                    "other.count",
                    "words.",
                    "words.a.b",
                    "grounding.citation_resolution",
                ),
                "aggregation": ("sum", None),
                "direction": ("up", ""),
                "unit": ("", None),
                "description": (" ", 5),
                "revision": ("", 1),
            }.items()
            for value in values
        ],
    ],
    ids=str,
)
def test_an_evaluator_that_breaks_a_rule_is_refused(changed):
    with pytest.raises(FactoryError):
        evaluator(**changed)


def test_a_digest_is_filled_in_and_depends_on_the_id():
    assert (
        evaluator(metrics=()).configuration_digest
        != evaluator(id="w", metrics=()).configuration_digest
    )
    assert evaluator(configuration_digest="0" * 64).configuration_digest == "0" * 64


def test_two_evaluators_with_one_id_are_refused():
    assert list(custom.registry([evaluator(), evaluator(id="b", metrics=())])) == ["words", "b"]
    with pytest.raises(FactoryError, match="'words'"):
        custom.registry([evaluator(), evaluator()])


def test_a_factory_gives_an_evaluator():
    made = evaluator()

    assert custom.build(lambda: made) is made


@pytest.mark.parametrize("factory", [lambda: None, lambda: Evaluator, lambda: 1 / 0, sys.intern])
def test_a_factory_that_gives_something_else_is_refused(factory):
    with pytest.raises(FactoryError):
        custom.build(factory)
