"""Whatever comes, in whatever order, examined and assessed in between: the end is that of a plain recount."""

from hypothesis import given
from hypothesis import strategies as st

from evaluators.assess import assess_record
from evaluators.jsonlines import LineError
from tests.factories import at
from tests.server.assessments.answering import (
    assess,
    assess_everything,
    assessed,
    settle,
)
from tests.server.assessments.witness import witnessed
from tests.server.detection.disorder import EXECUTIONS, executions_of, patient, steps
from tests.server.detection.pipelines import make_pipeline, wrong_numbers

CONTEXTS = [
    None,
    {"passages": []},
    {"passages": ["Take 5 mg.", {"text": "For 3 days."}]},
    {"documents": [7]},
    ["Take 5 mg."],
]
TEXTS = ["Take 5 mg [1].", "about 5 mg", "9 kg [3] and 5 mg [2]", "Yes.", ""]

answers = st.fixed_dictionaries(
    {
        "answer_id": st.sampled_from(["a", "b", None]),
        "question": st.sampled_from(["How much?", "", None, 7]),
        "answer": st.sampled_from([*TEXTS, *TEXTS, None, 5]),
        "context": st.sampled_from(CONTEXTS),
    }
)
scores = st.sampled_from([0.0, 0.2, 0.9, 1.0]).map(
    lambda score: {"evaluator_id": "ragas", "metric_type": "faithfulness", "score": score}
)


@st.composite
def events(draw):
    bodies = draw(
        st.lists(
            st.tuples(
                st.sampled_from(EXECUTIONS),
                st.one_of(
                    st.tuples(st.just("answer"), answers),
                    st.tuples(st.just("eval_score"), scores),
                ),
            ),
            max_size=20,
        )
    )
    return [
        {
            "event_id": f"evt-{number:02}",
            "execution_id": name,
            "event_type": kind,
            "sequence": draw(st.integers(0, 3)),
            "timestamp": at(draw(st.integers(0, 2))),
            # What makes each wording another one, so that none can be assessed twice by right.
            "payload": _worded(payload, number) if kind == "answer" else payload,
        }
        for number, (name, (kind, payload)) in enumerate(bodies)
    ]


def _worded(payload, number):
    if not isinstance(payload["answer"], str):
        return payload | {"question": f"Question {number}?"}
    return payload | {"answer": f"{payload['answer']} Number {number}."}


def recount(sent, name):
    """What must be said of an execution's answers, by the evaluators' own command."""
    own = [e for e in sent if e["execution_id"] == name and e["event_type"] == "answer"]
    own.sort(key=lambda e: (e["sequence"], e["timestamp"], e["event_id"]))
    newest = {event["payload"]["answer_id"] or "": event["payload"] for event in own}
    return {answer_id: _said(payload) for answer_id, payload in newest.items()}


def _said(payload):
    try:
        return assess_record(payload)
    except LineError:
        return {"outcome": "invalid"}


def shown(row):
    content = {"outcome": row.outcome}
    if row.outcome == "missing_evidence":
        content |= {"reason": row.reason}
    return content | (row.content or {})


def is_failing(sent, name):
    own = [e["payload"]["score"] for e in sent if _is_score_of(e, name)]
    return bool(own) and sum(own) / len(own) < 0.5


def _is_score_of(event, name):
    return event["execution_id"] == name and event["event_type"] == "eval_score"


def count(content, status):
    return sum(finding["status"] == status for finding in content["quantities"])


def check_numbers(row):
    content = row.content or {"quantities": [], "citations": []}
    assert row.quantities == len(content["quantities"])
    assert row.unmatched == count(content, "unmatched")
    assert row.ambiguous == count(content, "ambiguous")
    assert row.citations == len(content["citations"])
    assert row.unresolved == sum(c["source_id"] is None for c in content["citations"])


@patient
@given(events(), st.booleans(), st.randoms(use_true_random=False))
def test_assessments_are_those_of_a_plain_recount(database, sent, is_everything, random):
    pipeline = make_pipeline(database)
    assess_everything(pipeline, is_on=is_everything)

    with witnessed(pipeline) as witness:
        also = [lambda: assess(pipeline)] * random.randint(0, 3)
        for step in steps(pipeline, sent, random, also):
            step()
        settle(pipeline)
        told = witness.told()

    for name in executions_of(sent):
        rows = assessed(pipeline, name)
        expected = recount(sent, name)
        # One that failed once is kept up to date.
        if is_everything or is_failing(sent, name) or rows:
            assert {key: shown(row) for key, row in rows.items()} == expected
        for row in rows.values():
            check_numbers(row)
    assert len(told) == len(set(told))
    assert wrong_numbers(database, pipeline.project.pk) == []
