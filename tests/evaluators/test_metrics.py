import pytest

from evaluators import evidence, grounding, metrics


def samples_of(answer, *passages, question="How much?"):
    bundle = evidence.read({"passages": list(passages)}, question, "turn:0")
    return grounding.assess(answer, bundle).samples()


def values(entries):
    return {
        name.removeprefix("grounding."): (entry["value"], entry["numerator"], entry["denominator"])
        for name, entry in entries.items()
    }


def test_nine_metrics_are_declared():
    table = [
        (each.id, each.aggregation, each.unit, each.direction)
        for each in metrics.DESCRIPTORS.values()
    ]

    assert table == [
        ("grounding.quantity_traceability", "ratio", "fraction", "higher"),
        ("grounding.citation_resolution", "ratio", "fraction", "higher"),
        ("grounding.question_quantities", "count", "quantities", "neutral"),
        ("grounding.ambiguous_quantities", "count", "quantities", "lower"),
        ("faithfulness.claim_support", "ratio", "fraction", "higher"),
        ("faithfulness.correctness", "mean", "score_0_10", "higher"),
        ("faithfulness.answers_question", "ratio", "fraction", "higher"),
        ("faithfulness.dangerous_answers", "count", "answers", "lower"),
        ("faithfulness.appropriate_abstentions", "ratio", "fraction", "higher"),
    ]


def test_an_answer_counts_its_findings():
    samples = samples_of(
        "Take 5 mg, your 3 L, 7 kg, about 2 g [1,2].", "5 mg", question="I have 3 L."
    )

    assert samples == {
        "grounding.quantity_traceability": {"numerator": 2, "denominator": 4},
        "grounding.citation_resolution": {"numerator": 1, "denominator": 2},
        "grounding.question_quantities": {"numerator": 1, "denominator": 1},
        "grounding.ambiguous_quantities": {"numerator": 1, "denominator": 1},
    }


def test_answers_are_weighted_by_their_findings():
    samples = [samples_of("5 mg, 5 mg, 5 mg", "5 mg"), samples_of("6 mg [9]", "5 mg")]

    entries = metrics.aggregate(samples, metrics.of_evaluators(["grounding"]))

    assert values(entries) == {
        "quantity_traceability": (0.75, 3.0, 4),
        "citation_resolution": (0.0, 0.0, 1),
        "question_quantities": (0.0, 0.0, 2),
        "ambiguous_quantities": (0.0, 0.0, 2),
    }


def test_a_count_is_the_numerator():
    entries = metrics.aggregate(
        [samples_of("about 5 mg, ~6 mg"), samples_of("nothing")],
        metrics.of_evaluators(["grounding"]),
    )

    assert values(entries)["ambiguous_quantities"] == (2.0, 2.0, 2)


@pytest.mark.parametrize("name", metrics.DESCRIPTORS)
def test_without_a_denominator_there_is_no_value(name):
    entries = metrics.aggregate([], metrics.DESCRIPTORS.values())

    entry = entries[name]
    assert (entry["value"], entry["numerator"], entry["denominator"]) == (None, 0.0, 0)


def test_a_mean_is_not_rounded_or_clamped():
    samples = [{"faithfulness.correctness": {"numerator": n, "denominator": 1}} for n in (7, 8, 8)]

    entries = metrics.aggregate(samples, [metrics.DESCRIPTORS["faithfulness.correctness"]])

    assert entries["faithfulness.correctness"]["value"] == 23 / 3


def test_an_entry_describes_itself():
    name = "grounding.citation_resolution"

    entry = metrics.aggregate([samples_of("[1]", "a")], [metrics.DESCRIPTORS[name]])[name]

    assert entry == {
        "schema_version": 1,
        "id": name,
        "revision": "v1",
        "description": metrics.DESCRIPTORS[name].description,
        "aggregation": "ratio",
        "unit": "fraction",
        "direction": "higher",
        "value": 1.0,
        "numerator": 1.0,
        "denominator": 1,
    }


def test_a_group_ignores_the_samples_of_other_evaluators():
    entries = metrics.aggregate(
        [samples_of("5 mg", "5 mg")], metrics.of_evaluators(["faithfulness"])
    )

    assert {name.split(".")[0] for name in entries} == {"faithfulness"}
    assert {entry["denominator"] for entry in entries.values()} == {0}
