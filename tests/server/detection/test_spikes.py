"""detectors.md, hitl_rejection_spike, in the database: when it is looked for, and what an episode is."""

from datetime import UTC, datetime, timedelta

import pytest

from mesedi_server import spikes
from tests.server.detection.pipelines import make_decision, make_pipeline, wrong_numbers

REJECTED = "hitl_rejection_spike:rejected"
EDITED = "hitl_rejection_spike:edited"
KINDS = {"r": "rejected", "e": "edited", "a": "approved", "t": "timeout"}


@pytest.fixture(autouse=True)
def recounted(database):
    yield
    assert wrong_numbers(database) == []


def decide(pipeline, letters, prefix="exec", **payload):
    """Send a decision an execution, all in one batch, and close and examine them."""
    names = [f"{prefix}-{number}" for number in range(len(letters))]
    pairs = zip(letters, names, strict=True)
    pipeline.send(*(make_decision(KINDS[letter], name, **payload) for letter, name in pairs))
    for name in names:
        pipeline.close(name)
    pipeline.examine()


def beat(pipeline):
    spikes.look_everywhere(pipeline.database)


def ago(**span) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def members(pipeline, signature=REJECTED):
    return sorted(pipeline.members(signature))


def test_a_rate_that_is_reached_opens_a_group_of_those_who_were_rejected(pipeline):
    decide(pipeline, "raraa")

    group = pipeline.group(REJECTED)
    assert (group.state, group.severity, group.occurrence_count) == ("open", "warning", 2)
    assert members(pipeline) == ["exec-0", "exec-2"]
    assert pipeline.listed() == [REJECTED]


def test_a_rate_that_is_not_reached_opens_nothing(pipeline):
    decide(pipeline, "raaaa")

    assert pipeline.groups() == []


def test_rejections_and_edits_are_two_spikes(pipeline):
    decide(pipeline, "rreea")

    assert members(pipeline, REJECTED) == ["exec-0", "exec-1"]
    assert members(pipeline, EDITED) == ["exec-2", "exec-3"]


def test_the_evidence_says_what_rate_was_reached(pipeline):
    version = pipeline.tune("rejected_rate", 0.3, "hitl_rejection_spike")
    pipeline.post("exec-0", release="v3", environment="live")

    decide(pipeline, "rraaa")

    member = pipeline.members(REJECTED)["exec-0"]
    assert (member.rule, member.threshold_version) == ("rejected", version)
    assert (member.release, member.environment) == ("v3", "live")
    assert member.evidence == {
        "rule": "rejected",
        "executions": 2,
        "sample": 5,
        "rate": 0.4,
        "rate_threshold": 0.3,
        "min_sample": 5,
        "measurement_window_minutes": 60,
        "threshold_version": version,
    }


def test_thresholds_of_the_project_count(pipeline):
    pipeline.tune("min_sample", 2, "hitl_rejection_spike")

    decide(pipeline, "ra")

    assert members(pipeline) == ["exec-0"]


def test_decisions_of_other_projects_do_not_count(database, pipeline):
    decide(make_pipeline(database), "aaaaaaaaaa")

    decide(pipeline, "rraaa")

    assert members(pipeline) == ["exec-0", "exec-1"]


def test_open_executions_count_too(pipeline):
    pipeline.send(*(make_decision("rejected", f"open-{number}") for number in range(4)))

    decide(pipeline, "r")

    assert members(pipeline) == ["exec-0", "open-0", "open-1", "open-2", "open-3"]


@pytest.mark.parametrize(
    ("decided", "counts"),
    [({"minutes": 59}, True), ({"minutes": 61}, False), ({"minutes": -1}, False)],
)
def test_a_decision_counts_by_its_own_time(pipeline, decided, counts):
    decide(pipeline, "rrrrr", decided_at=ago(**decided))

    assert bool(pipeline.groups()) is counts


def test_an_old_event_of_a_decision_of_now_counts(pipeline):
    decided_at = ago(minutes=1)
    sent = [make_decision("rejected", f"exec-{number}") for number in range(5)]
    for event in sent:
        event["timestamp"] = ago(hours=20)
        event["payload"]["decided_at"] = decided_at

    pipeline.send(*sent)
    beat(pipeline)

    assert len(members(pipeline)) == 5


def test_a_spike_is_last_seen_when_its_last_member_was_decided(pipeline):
    decided_at = datetime.now(UTC) - timedelta(minutes=30)

    decide(pipeline, "rraaa", decided_at=decided_at.isoformat())

    assert pipeline.group(REJECTED).last_seen_at == decided_at


def test_an_episode_opens_once(pipeline):
    decide(pipeline, "rraaa")
    decide(pipeline, "rr", "more")
    beat(pipeline)

    assert pipeline.group(REJECTED).occurrence_count == 4
    assert pipeline.kinds(REJECTED) == ["first_seen"]


def test_members_of_a_going_episode_reopen_nothing(pipeline):
    decide(pipeline, "rraaa")
    pipeline.change(REJECTED, "resolved")

    decide(pipeline, "rr", "more")

    group = pipeline.group(REJECTED)
    assert (group.state, group.occurrence_count) == ("resolved", 4)
    assert pipeline.kinds(REJECTED) == ["first_seen", "resolved"]


def test_the_next_episode_reopens_a_resolved_group(pipeline):
    decide(pipeline, "rraaa")
    pipeline.change(REJECTED, "resolved")
    decide(pipeline, "aaaaa", "good")

    assert pipeline.group(REJECTED).state == "resolved"

    pipeline.post("bad-0", release="v2")
    decide(pipeline, "rrrrrrr", "bad")

    group = pipeline.group(REJECTED)
    assert (group.state, group.regressed_release) == ("open", "v2")
    assert pipeline.kinds(REJECTED) == ["first_seen", "resolved", "regressed"]


def test_an_episode_ends_as_its_window_slides_on(pipeline):
    decide(pipeline, "rraaa")
    pipeline.change(REJECTED, "resolved")
    pipeline.let_pass(seconds=3601)
    beat(pipeline)

    decide(pipeline, "rraaa", "later")

    assert pipeline.group(REJECTED).state == "open"
    assert pipeline.kinds(REJECTED) == ["first_seen", "resolved", "regressed"]


def test_beat_finds_the_spike_that_a_sliding_window_uncovers(pipeline):
    decide(pipeline, "aaaaaaaaa", "good", decided_at=ago(minutes=40))
    decide(pipeline, "rrraa", decided_at=ago(minutes=30))

    assert pipeline.groups() == []

    with pipeline.connection() as connection:
        connection.exec_driver_sql(
            "UPDATE events SET payload = jsonb_set(payload, '{decided_at}', to_jsonb(%(then)s::text))"
            " WHERE project_pk = %(project)s AND payload ->> 'response_kind' = 'approved'"
            " AND execution_pk IN (SELECT pk FROM executions WHERE execution_id LIKE 'good-%%')",
            {"project": pipeline.project.pk, "then": ago(minutes=61)},
        )
    beat(pipeline)

    assert members(pipeline) == ["exec-0", "exec-1", "exec-2"]


def test_members_stay_when_the_spike_is_over(pipeline):
    decide(pipeline, "rraaa")

    pipeline.let_pass(seconds=7200)
    beat(pipeline)
    pipeline.redetect()
    pipeline.examine()

    assert members(pipeline) == ["exec-0", "exec-1"]
    assert pipeline.listed() == [REJECTED]


def test_an_execution_of_both_kinds_of_group_keeps_the_one_that_it_is_not_examined_for(pipeline):
    decide(pipeline, "rraaa")
    pipeline.send(make_decision("timeout", "exec-0"), debounce_s=0)
    pipeline.examine()

    assert pipeline.listed() == [REJECTED, "hitl_timeout:explicit"]
    assert members(pipeline) == ["exec-0", "exec-1"]


def test_questions_that_nobody_decided_are_no_sample(pipeline):
    decide(pipeline, "rraa" + "t" * 6)

    assert pipeline.listed() == ["hitl_timeout:explicit"]


def test_decisions_of_an_execution_that_is_gone_spoil_nothing(pipeline):
    pipeline.send(make_decision("rejected", "gone"))
    with pipeline.connection() as connection:
        connection.exec_driver_sql(
            "DELETE FROM executions WHERE project_pk = %(project)s",
            {"project": pipeline.project.pk},
        )

    decide(pipeline, "rraaa")

    assert members(pipeline) == ["exec-0", "exec-1"]


def test_unreadable_decisions_spoil_nothing(pipeline):
    pipeline.send(
        make_decision(execution_id="odd-1", decided_at=5),
        make_decision(execution_id="odd-2") | {"payload": {"response_kind": ["rejected"]}},
        make_decision(execution_id="odd-3") | {"payload": "rejected"},
        make_decision(execution_id="odd-4") | {"payload": None},
    )

    decide(pipeline, "rraa")

    assert members(pipeline) == ["exec-0", "exec-1"]
