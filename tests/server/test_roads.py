"""Which road a group's numbers point to."""

import pytest

from mesedi_server.roads import MIN_ANSWERS, suggest
from mesedi_server.store.assessments import GroupCounts


def counts(answers: int, **some: int) -> GroupCounts:
    names = set(GroupCounts.__struct_fields__) - {"answers"}
    return GroupCounts(answers=answers, **(dict.fromkeys(names, 0) | some))


@pytest.mark.parametrize(
    ("found", "road"),
    [
        ({"violated": 50}, "prompt"),
        ({"missing_evidence": 50}, "retrieval"),
        ({"met": 50}, "evaluator"),
        # Nothing of the answer stands in the passages: they speak of something else.
        ({"violated": 60, "untraced": 60}, "retrieval"),
        ({"violated": 80, "untraced": 39}, "prompt"),
        ({"violated": 80, "untraced": 40}, "retrieval"),
        ({"violated": 40, "untraced": 20, "missing_evidence": 15}, "retrieval"),
        # Without a passage there was nothing to lean on, whatever was found or not.
        ({"violated": 50, "violated_without_passages": 50, "without_passages": 50}, "retrieval"),
        ({"met": 50, "met_without_passages": 50, "without_passages": 50}, "retrieval"),
        ({"not_applicable": 50, "without_passages": 50}, "retrieval"),
        ({"violated": 80, "violated_without_passages": 39, "without_passages": 39}, "prompt"),
        # Level: what the others would hide goes first.
        ({"violated": 40, "met": 40}, "prompt"),
        ({"violated": 40, "missing_evidence": 40}, "retrieval"),
        # A third is enough, less is not.
        ({"violated": 34}, "prompt"),
        ({"violated": 33}, None),
        ({"violated": 30, "missing_evidence": 30, "met": 30}, None),
        ({"needs_review": 100}, None),
        ({"not_applicable": 90, "invalid": 10}, None),
        ({}, None),
    ],
)
def test_the_road_that_most_answers_point_to_is_suggested(found, road):
    assert suggest(counts(100, **found)).likeliest == road


def test_a_third_is_counted_exactly():
    assert suggest(counts(30, met=10)).likeliest == "evaluator"
    assert suggest(counts(31, met=10)).likeliest is None


@pytest.mark.parametrize(("answers", "road"), [(MIN_ANSWERS - 1, None), (MIN_ANSWERS, "prompt")])
def test_a_few_answers_suggest_nothing(answers, road):
    suggestion = suggest(counts(answers, violated=answers))

    assert suggestion.likeliest == road
    assert suggestion.is_too_early == (road is None)


def test_a_suggestion_says_from_which_numbers():
    suggestion = suggest(counts(214, violated=131, untraced=11, missing_evidence=43, met=30))

    assert suggestion.pointing == {"retrieval": 54, "prompt": 120, "evaluator": 30}
