"""When an evaluator is offered as over-strict."""

import pytest

from mesedi_server.quality import of_pair
from mesedi_server.store.agreement import Agreement


def said(right: int, wrong: int) -> Agreement:
    """A judge's word on failing answers, with some others that passed."""
    return Agreement(
        both_fail=wrong, both_pass=100, only_evaluator_fails=right, only_judge_fails=50
    )


@pytest.mark.parametrize(
    ("people", "grounding", "is_offered", "is_too_early"),
    [
        ((5, 0), (20, 0), True, False),
        ((4, 0), (20, 0), False, True),
        ((5, 0), (19, 0), False, True),
        ((0, 0), (90, 0), False, True),
        ((90, 0), (0, 0), False, True),
        # Three in four.
        ((6, 2), (20, 0), True, False),
        ((5, 2), (20, 0), False, False),
        # Half.
        ((5, 0), (10, 10), True, False),
        ((5, 0), (10, 11), False, False),
    ],
)
def test_people_and_grounding_must_both_find_its_failing_answers_right(
    people, grounding, is_offered, is_too_early
):
    quality = of_pair("ragas", {"people": said(*people), "grounding": said(*grounding)})

    assert quality.is_over_strict == is_offered
    assert quality.is_too_early == is_too_early


def test_faithfulness_has_no_say():
    quality = of_pair("ragas", {"people": said(9, 0), "faithfulness": said(90, 0)})

    assert not quality.is_over_strict


@pytest.mark.parametrize("judge", ["grounding", "faithfulness"])
def test_a_judge_is_not_compared_with_itself(judge):
    judges = {"grounding": said(30, 0), "faithfulness": said(30, 0), "people": said(9, 0)}

    quality = of_pair(f"mesedi/{judge}", judges)

    assert quality.judges.keys() == judges.keys() - {judge}


def test_a_judge_without_a_common_answer_is_left_out():
    assert of_pair("ragas", {"people": Agreement()}).judges == {}


def test_numbers_go_both_ways():
    agreement = Agreement(both_fail=3, both_pass=4, only_evaluator_fails=2, only_judge_fails=1)

    assert (agreement.answers, agreement.agreed, agreement.failing) == (10, 7, 5)
