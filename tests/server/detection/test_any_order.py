"""Whatever comes, in whatever order, batched, repeated and examined in between: the end is that of a plain recount."""

import math
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import at
from tests.server.detection import disorder
from tests.server.detection.disorder import EXECUTIONS, executions_of, patient
from tests.server.detection.pipelines import make_pipeline, wrong_numbers
from tests.server.detection.recount import Floors, recount, worst

FLOORS = [0.0, 0.1, 0.3, 0.5, 0.7, 1.0]
# Few names, so that pairs meet, and colons, so that their key texts do.
NAMES = st.sampled_from(["a", "b", "a:b", "b:c", "é"])
NUMBERS = st.one_of(
    st.integers(-2, 12).map(lambda tenths: tenths / 10),
    st.integers(-1, 5),
    st.floats(allow_nan=False, allow_infinity=False),
)
SCORES = st.one_of(NUMBERS, NUMBERS, st.sampled_from([None, math.nan, math.inf]))
VERDICTS = st.sampled_from([True, False, None])

eval_scores = st.fixed_dictionaries(
    {
        "evaluator_id": NAMES,
        "metric_type": st.one_of(NAMES, st.just("")),
        "score": SCORES,
        "passed": VERDICTS,
        "higher_is_better": st.sampled_from([True, True, None, False]),
        "scale": st.sampled_from([None, None, [0, 1], [1, 5], [0.1, 0.7]]),
        "reason": st.sampled_from([None, "", " ", "unsupported", "x" * 600]),
    }
)
checks = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["schema", "schema:strict", "length", " ", ""]),
        "passed": VERDICTS,
        "severity": st.sampled_from(["warning", "error", "critical", "odd"]),
        "category": st.sampled_from(["", "strict"]),
    }
)


@st.composite
def events(draw):
    """Events of some executions; now and then one has far more failing pairs than the cap lets through."""
    bodies = draw(st.lists(st.tuples(st.sampled_from(EXECUTIONS), _body()), max_size=30))
    if draw(st.booleans()):
        bodies += [("one", _of_many(n, *draw(_tenths_and_verdict()))) for n in range(26)]
    return [
        {
            "event_id": f"evt-{number}",
            "execution_id": name,
            "event_type": kind,
            "sequence": draw(st.integers(0, 3)),
            "timestamp": at(draw(st.integers(0, 2))),
            "payload": payload,
        }
        for number, (name, (kind, payload)) in enumerate(bodies)
    ]


def _body():
    return st.one_of(
        st.tuples(st.just("eval_score"), eval_scores),
        st.tuples(st.just("validator_result"), checks),
        st.tuples(st.just("checkpoint"), st.just({"name": "plan"})),
    )


def _tenths_and_verdict():
    return st.tuples(st.sampled_from([0, 1, 2, 9]), st.sampled_from([None, None, None, False]))


def _of_many(number, tenths, passed):
    payload = {"evaluator_id": f"many-{number:02}", "metric_type": "m", "score": tenths / 10}
    rest = {"passed": passed, "higher_is_better": None, "scale": None, "reason": None}
    return "eval_score", payload | rest


@st.composite
def floors(draw):
    mean_floor = draw(st.one_of(st.none(), st.sampled_from(FLOORS)))
    pairs = draw(
        st.dictionaries(st.tuples(NAMES, NAMES).map(":".join), st.sampled_from(FLOORS), max_size=3)
    )
    return mean_floor, pairs


def apply(pipeline, given_floors):
    """Set the floors, and say what is in force."""
    mean_floor, pairs = given_floors
    version = 0
    if mean_floor is not None:
        version = pipeline.tune("mean_floor", mean_floor)
    if pairs:
        version = pipeline.tune("per_evaluator_floors", pairs)
    return Floors(mean_floor, pairs, version)


def steps(pipeline, sent, random):
    posts = [
        lambda name=name: pipeline.post(name, release=f"of {name}") for name in executions_of(sent)
    ]
    return disorder.steps(pipeline, sent, random, posts)


def observed(pipeline):
    """All that examinations left, by execution."""
    found, overflow, counted = defaultdict(dict), {}, defaultdict(dict)
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT x.execution_id, g.group_id, g.signature, o.rule, o.severity, o.evidence, o.release"
            " FROM occurrences o JOIN failure_groups g ON g.pk = o.group_pk"
            " JOIN executions x ON x.pk = o.execution_pk WHERE o.project_pk = %(project)s",
            {"project": pipeline.project.pk},
        ).all()
        names = connection.exec_driver_sql(
            "SELECT execution_id FROM executions WHERE project_pk = %(project)s",
            {"project": pipeline.project.pk},
        ).scalars()
    for name, group_id, signature, rule, severity, evidence, release in rows:
        assert release == f"of {name}"
        shown = {"signature": signature, "rule": rule, "severity": severity}
        is_counted = signature.startswith("grounding_failure:")
        found[name][group_id] = shown | ({"evidence": as_floats(evidence)} if is_counted else {})
    for name in names:
        execution = pipeline.execution(name)
        assert execution.detect_due_at is None
        assert execution.overflow_count == len(execution.overflow_signatures or [])
        overflow[name] = execution.overflow_signatures or []
        for row in pipeline.rollups(name):
            counted[name][row.evaluator_id, row.metric_type] = row
    return found, overflow, counted


def as_floats(evidence):
    """A jsonb number without a fraction comes back as a whole number, exactly as it was written."""
    numbers = ("mean", "lowest", "highest", "floor")
    return {
        key: float(value) if key in numbers and value is not None else value
        for key, value in evidence.items()
    }


@patient
@given(events(), floors(), st.randoms(use_true_random=False))
def test_any_order_ends_as_a_plain_recount(database, sent, given_floors, random):
    pipeline = make_pipeline(database)
    in_force = apply(pipeline, given_floors)

    for step in steps(pipeline, sent, random):
        step()
        assert wrong_numbers(database, pipeline.project.pk) == []
    pipeline.examine(settle_s=0)

    found, overflow, counted = observed(pipeline)
    for name in executions_of(sent):
        own = [event for event in sent if event["execution_id"] == name]
        expected = recount(pipeline.project.project_id, own, in_force)
        wanted = {
            group_id: {key: value for key, value in finding.items() if key != "evaluator_id"}
            for group_id, finding in expected.found.items()
        }
        assert found[name] == wanted
        assert overflow[name] == expected.overflow
        assert counted[name].keys() == expected.rollups.keys()
        for pair, rollup in expected.rollups.items():
            assert {key: getattr(counted[name][pair], key) for key in rollup} == rollup
    counts = Counter(group_id for groups in found.values() for group_id in groups)
    for group in pipeline.groups():
        own = [groups[group.group_id] for groups in found.values() if group.group_id in groups]
        assert group.occurrence_count == counts[group.group_id]
        if own:
            assert group.severity == worst(finding["severity"] for finding in own)


@patient
@given(events(), st.randoms(use_true_random=False))
def test_groups_are_first_seen_once_and_examining_again_changes_nothing(database, sent, random):
    pipeline = make_pipeline(database)
    for step in steps(pipeline, sent, random):
        step()
    pipeline.examine(settle_s=0)
    before = observed(pipeline), pipeline.groups(), histories(pipeline)
    assert before[2] == {group.group_id: ["first_seen"] for group in before[1]}

    assert pipeline.redetect() == len(executions_of(sent))
    pipeline.examine(settle_s=0)

    assert (observed(pipeline), pipeline.groups(), histories(pipeline)) == before


def histories(pipeline):
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT g.group_id, array_agg(h.kind ORDER BY h.pk) FROM group_history h"
            " JOIN failure_groups g ON g.pk = h.group_pk WHERE g.project_pk = %(project)s GROUP BY 1",
            {"project": pipeline.project.pk},
        ).all()
    return dict(map(tuple, rows))


@pytest.mark.parametrize("second", [0.6, None])
def test_the_recount_itself_knows_a_failure(second):
    """So that the properties above cannot hold for want of failures."""
    scores = [0.2, second]
    sent = [
        {
            "event_id": f"evt-{number}",
            "event_type": "eval_score",
            "sequence": number,
            "timestamp": at(0),
            "payload": {
                "evaluator_id": "ragas",
                "metric_type": "faithfulness",
                "score": score,
                "passed": None,
                "higher_is_better": True,
                "scale": None,
                "reason": None,
            },
        }
        for number, score in enumerate(scores)
    ]

    [(group_id, finding)] = recount("demo", sent, Floors()).found.items()

    assert group_id == "grp-3d492d081d05541b"
    assert finding["rule"] == "mean_below_floor"
