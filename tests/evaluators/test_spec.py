import pytest

from evaluators import Criterion, EvaluationSpec
from evaluators.errors import SpecError
from evaluators.spec import from_json, load

GROUNDING = {"id": "g", "revision": "v1", "evaluator": "grounding"}


def whole(**changes):
    return {"id": "s", "revision": "r", "criteria": [GROUNDING], **changes}


@pytest.mark.parametrize(
    ("evaluator", "requirement", "not_applicable", "least"),
    [
        ("rubric", "conversation", False, None),
        ("grounding", "context", True, None),
        ("faithfulness", "context", True, 7),
        ("house_style", "conversation", False, None),
    ],
)
def test_defaults_are_those_of_the_evaluator(evaluator, requirement, not_applicable, least):
    rubric = "Be kind." if evaluator == "rubric" else None

    criterion = Criterion(id="c", revision="v1", evaluator=evaluator, rubric=rubric)

    assert criterion.evidence_requirement == requirement
    assert criterion.allow_not_applicable is not_applicable
    assert criterion.min_correctness == least


@pytest.mark.parametrize(
    "fields",
    [
        {"evaluator": "rubric", "rubric": "x", "evidence_requirement": "context"},
        {"evaluator": "rubric", "rubric": "x", "allow_not_applicable": True},
        {"evaluator": "grounding", "evidence_requirement": "complete_context"},
        {"evaluator": "faithfulness", "min_correctness": 0},
        {"evaluator": "faithfulness", "min_correctness": 10, "rubric": "x"},
        {"evaluator": "house_style", "config": {"words": ["a", 1, None]}},
        {"evaluator": "house_style", "evidence_requirement": "context"},
        {"evaluator": "grounding", "schema_version": 1},
    ],
)
def test_what_an_evaluator_allows_is_accepted(fields):
    assert from_json(whole(criteria=[{"id": "c", "revision": "v1", **fields}]))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "a rubric is required"),
        ({"rubric": " "}, "not blank"),
        ({"rubric": "x", "min_correctness": 7}, "takes no min_correctness"),
        ({"rubric": "x", "config": {"a": 1}}, "takes no config"),
        ({"rubric": "x", "evidence_requirement": "everything"}, "evidence_requirement must be"),
        ({"rubric": "x", "allow_not_applicable": 1}, "must be true or false"),
        ({"evaluator": "grounding", "rubric": "x"}, "no judge that could read a rubric"),
        ({"evaluator": "grounding", "evidence_requirement": "conversation"}, "needs the context"),
        ({"evaluator": "grounding", "allow_not_applicable": False}, "does not apply to every"),
        ({"evaluator": "grounding", "min_correctness": 7}, "takes no min_correctness"),
        ({"evaluator": "grounding", "config": {"a": 1}}, "takes no config"),
        ({"evaluator": "faithfulness", "min_correctness": 11}, "0 to 10"),
        ({"evaluator": "faithfulness", "min_correctness": -1}, "0 to 10"),
        ({"evaluator": "faithfulness", "min_correctness": True}, "0 to 10"),
        ({"evaluator": "faithfulness", "min_correctness": 7.0}, "0 to 10"),
        ({"evaluator": "faithfulness", "evidence_requirement": "conversation"}, "needs the"),
        ({"evaluator": "faithfulness", "allow_not_applicable": False}, "does not apply to every"),
        ({"evaluator": "house_style", "rubric": "x"}, "no judge"),
        ({"evaluator": "house_style", "config": {"a": float("nan")}}, "config is not JSON"),
        ({"evaluator": "house_style", "config": [1]}, "config must be an object"),
        ({"evaluator": 3}, "evaluator must be text"),
        ({"evaluator": "grounding", "revision": 1}, "revision must be text"),
        ({"evaluator": "grounding", "schema_version": 2}, "schema_version must be 1"),
        ({"evaluator": "grounding", "schema_version": True}, "schema_version must be 1"),
        ({"evaluator": "grounding", "weight": 2}, "unknown field weight"),
    ],
)
def test_what_an_evaluator_does_not_allow_is_refused(fields, reason):
    with pytest.raises(SpecError, match=reason):
        from_json(whole(criteria=[{"id": "c", "revision": "v1", **fields}]))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"criteria": []}, "at least one"),
        ({"criteria": {}}, "must be a list"),
        ({"criteria": [GROUNDING, GROUNDING]}, "'g' occurs more than once"),
        ({"criteria": ["grounding"]}, "criterion 1: must be an object"),
        ({"criteria": [{"id": "g"}]}, "criterion 1: revision is missing"),
        ({"id": ""}, "id must be text"),
        ({"revision": 1}, "revision must be text"),
        ({"qualification": "final"}, "draft or reviewed"),
        ({"scope": "session"}, "scope must be turn"),
        ({"streams": []}, "at least one"),
        ({"streams": "primary"}, "must be a list"),
        ({"streams": ["primary", "primary"]}, "occurs more than once"),
        ({"streams": ["third"]}, "primary or compare"),
        ({"sample": -1}, "sample must be an integer"),
        ({"sample": True}, "sample must be an integer"),
        ({"sample": 1.0}, "sample must be an integer"),
        ({"schema_version": "1"}, "schema_version must be 1"),
        ({"gates": []}, "unknown field gates"),
    ],
)
def test_a_spec_outside_the_rules_is_refused(changes, reason):
    with pytest.raises(SpecError, match=reason):
        from_json(whole(**changes))


def test_python_specs_are_checked_like_files():
    with pytest.raises(SpecError, match="list of criteria"):
        EvaluationSpec(id="s", revision="r", criteria=(GROUNDING,))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id: s\nrevision: 1\ncriteria: [{id: g, revision: v1, evaluator: grounding}]", "revision"),
        ("id: s\nid: t\n", "'id' occurs more than once"),
        ("id: [", "is not YAML"),
        ("- a\n", "must be an object"),
        ("", "must be an object"),
        ("!!python/object/apply:os.getcwd []", "is not YAML"),
        (
            "id: s\nrevision: 2026-12-01\ncriteria:\n- {id: g, revision: v1, evaluator: grounding}",
            "quote numbers and dates",
        ),
    ],
)
def test_a_file_outside_the_rules_is_refused_by_name(tmp_path, text, reason):
    path = tmp_path / "spec.yaml"
    path.write_text(text)

    with pytest.raises(SpecError, match=reason) as caught:
        load(path)

    assert str(caught.value).startswith(str(path))


def test_a_file_and_its_python_form_are_the_same_spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("id: s\nrevision: r\ncriteria: [{id: g, revision: v1, evaluator: grounding}]\n")

    assert load(path) == EvaluationSpec(
        id="s",
        revision="r",
        criteria=(Criterion(id="g", revision="v1", evaluator="grounding"),),
    )
