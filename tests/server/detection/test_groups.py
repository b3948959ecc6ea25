"""detectors.md, "Failure groups"."""

import pytest

from mesedi_server.store import failure_groups
from tests.factories import make_event, make_score
from tests.server.detection.pipelines import (
    FAITHFULNESS,
    make_check,
    make_decision,
    make_pipeline,
    wrong_numbers,
)


@pytest.fixture(autouse=True)
def recounted(database):
    """Whatever a test does: the groups' numbers are those of a recount."""
    yield
    assert wrong_numbers(database) == []


def lift(pipeline, execution_id="exec-1"):
    """A late score of 1.0 lifts the mean over the floor."""
    pipeline.send(make_score(1.0, execution_id=execution_id), debounce_s=0)
    pipeline.examine()


def test_a_group_counts_its_executions_and_knows_its_first_and_last(pipeline):
    for name in ("exec-1", "exec-2", "exec-3"):
        pipeline.run(name, make_score(0.2), make_score(0.3))

    group = pipeline.group()
    first, last = (pipeline.execution(name).received_at for name in ("exec-1", "exec-3"))
    assert (group.occurrence_count, group.state) == (3, "open")
    assert (group.first_seen_at, group.last_seen_at) == (first, last)
    assert group.sample_execution_id == "exec-1"
    assert pipeline.kinds() == ["first_seen"]


def test_each_pair_and_class_has_a_group_of_its_own(pipeline):
    pipeline.post(release="v1")
    pipeline.send(
        make_score(0.2),
        make_score(0.9, passed=False, pair="hhem/factual_consistency"),
        make_check("citations", category="missing"),
        make_decision("timeout"),
    )
    pipeline.close(status="crashed", crash_signature="KeyError:agent.py:plan")

    pipeline.examine()

    assert {g.signature: (g.failure_class, g.severity) for g in pipeline.groups()} == {
        FAITHFULNESS: ("grounding_failure", "critical"),
        "grounding_failure:hhem:factual_consistency": ("grounding_failure", "critical"),
        "citations:missing": ("validator_failures", "error"),
        "hitl_timeout:explicit": ("hitl_timeout", "warning"),
        "KeyError:agent.py:plan": ("crashes", "critical"),
    }


def test_pairs_with_equal_key_texts_stay_apart(pipeline):
    pipeline.post()
    pipeline.send(make_score(0.2, pair="a:b/c"), make_score(0.3, pair="a/b:c"))
    pipeline.close()

    pipeline.examine()

    groups = pipeline.groups()
    assert {group.signature for group in groups} == {"grounding_failure:a:b:c"}
    assert {(g.evaluator_id, g.metric_type) for g in groups} == {("a:b", "c"), ("a", "b:c")}
    assert len({group.group_id for group in groups}) == 2


def test_two_projects_share_no_group(database, pipeline):
    other = make_pipeline(database)

    pipeline.run("exec-1", make_score(0.2))
    other.run("exec-1", make_score(0.2))

    assert pipeline.group().group_id != other.group().group_id
    assert (pipeline.group().occurrence_count, other.group().occurrence_count) == (1, 1)


def test_a_late_good_score_takes_the_occurrence_back(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.run("exec-2", make_score(0.2))

    lift(pipeline, "exec-2")

    assert list(pipeline.members()) == ["exec-1"]
    assert pipeline.group().occurrence_count == 1
    assert pipeline.group().last_seen_at == pipeline.execution("exec-1").received_at


def test_a_group_without_members_keeps_its_row_and_leaves_the_list(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    first_seen_at = pipeline.group().first_seen_at

    lift(pipeline)

    assert pipeline.listed() == []
    assert pipeline.listed(is_empty_shown=True) == [FAITHFULNESS]
    assert pipeline.group().occurrence_count == 0
    assert pipeline.group().first_seen_at == first_seen_at


def test_a_group_that_was_empty_is_last_seen_when_its_members_were(pipeline):
    pipeline.post("exec-1")
    pipeline.run("exec-2", make_score(0.2))
    lift(pipeline, "exec-2")

    pipeline.send(make_score(0.2, execution_id="exec-1"))
    pipeline.close("exec-1")
    pipeline.examine()

    assert pipeline.listed() == [FAITHFULNESS]
    assert pipeline.group().last_seen_at == pipeline.execution("exec-1").received_at
    assert pipeline.kinds() == ["first_seen"]


def test_a_pair_that_still_fails_keeps_its_occurrence_with_fresh_evidence(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    before = pipeline.members()["exec-1"]

    pipeline.send(make_score(0.4), debounce_s=0)
    pipeline.examine()

    after = pipeline.members()["exec-1"]
    assert (before.evidence["mean"], after.evidence["mean"]) == (0.2, 0.3)
    assert after.occurred_at == before.occurred_at
    assert pipeline.group().occurrence_count == 1


def test_a_failed_verdict_replaces_the_mean_as_the_rule(pipeline):
    pipeline.run("exec-1", make_score(0.2))

    pipeline.send(make_score(0.95, passed=False, reason="invented"), debounce_s=0)
    pipeline.examine()

    member = pipeline.members()["exec-1"]
    assert (member.rule, member.evidence["rule"]) == ("failed_verdict", "failed_verdict")
    assert member.evidence["reasons"] == ["invented"]


def test_the_evidence_says_what_was_measured_against_what(pipeline):
    version = pipeline.tune("per_evaluator_floors", {"ragas:faithfulness": 0.9})

    pipeline.run("exec-1", make_score(0.7), make_score(None), make_score(0.8, reason="thin"))

    evidence = pipeline.members()["exec-1"].evidence
    assert evidence == {
        "rule": "mean_below_floor",
        "scores": 3,
        "measured": 2,
        "mean": 0.75,
        "mean_exact": "3/4",
        "lowest": 0.7,
        "highest": 0.8,
        "failed_verdicts": 0,
        "unmeasured": 1,
        "floor": 0.9,
        "floor_source": "per_evaluator",
        "threshold_version": version,
        "higher_is_better": True,
        "raw_out_of_range": False,
        "reasons": ["thin"],
    }


def test_a_new_member_of_a_resolved_group_is_a_regression_with_its_release(pipeline):
    pipeline.run("exec-1", make_score(0.2), release="v1")
    pipeline.change(FAITHFULNESS, "resolved")

    pipeline.run("exec-2", make_score(0.2), release="v2")

    group = pipeline.group()
    assert (group.state, group.regressed_release) == ("open", "v2")
    assert group.regressed_at is not None
    assert [(h.kind, h.release) for h in pipeline.history()] == [
        ("first_seen", None),
        ("resolved", None),
        ("regressed", "v2"),
    ]


def test_several_members_at_once_are_one_regression_by_the_first(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.change(FAITHFULNESS, "resolved")
    for name, release in (("exec-2", "v10"), ("exec-3", "v9"), ("exec-4", None)):
        pipeline.post(name, release=release)
        pipeline.send(make_score(0.2, execution_id=name))
        pipeline.close(name)

    pipeline.examine()

    assert pipeline.group().regressed_release == "v10"
    assert pipeline.kinds() == ["first_seen", "resolved", "regressed"]


def test_an_old_member_examined_again_reopens_nothing(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.change(FAITHFULNESS, "resolved")

    pipeline.send(make_score(0.3), debounce_s=0)
    pipeline.redetect()
    pipeline.examine()

    assert pipeline.group().state == "resolved"
    assert pipeline.group().occurrence_count == 1
    assert pipeline.kinds() == ["first_seen", "resolved"]


def test_a_member_taken_back_reopens_nothing(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.change(FAITHFULNESS, "resolved")

    lift(pipeline)

    assert pipeline.group().state == "resolved"


def test_an_acknowledged_group_stays_so(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.change(FAITHFULNESS, "acknowledged")

    pipeline.run("exec-2", make_score(0.2))

    assert (pipeline.group().state, pipeline.group().occurrence_count) == ("acknowledged", 2)


def test_an_ignored_group_counts_on_and_stays_quiet(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.change(FAITHFULNESS, "ignored")

    pipeline.run("exec-2", make_score(0.2))

    assert (pipeline.group().state, pipeline.group().occurrence_count) == ("ignored", 2)
    assert pipeline.listed() == []
    assert pipeline.kinds() == ["first_seen", "ignored"]


def test_an_ignored_group_wakes_at_its_number_of_new_members(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.change(FAITHFULNESS, "ignored", ignored_for=2)

    pipeline.run("exec-2", make_score(0.2))

    assert pipeline.group().state == "ignored"

    pipeline.run("exec-3", make_score(0.2))

    group = pipeline.group()
    assert (group.state, group.ignored_until_count) == ("open", None)
    assert pipeline.kinds() == ["first_seen", "ignored", "ignore_ended"]


def test_members_that_leave_do_not_make_an_ignore_longer(pipeline):
    for name in ("exec-1", "exec-2"):
        pipeline.run(name, make_score(0.2))
    pipeline.change(FAITHFULNESS, "ignored", ignored_for=2)
    lift(pipeline, "exec-1")

    pipeline.run("exec-3", make_score(0.2))

    assert pipeline.group().state == "ignored"

    pipeline.run("exec-4", make_score(0.2))

    assert (pipeline.group().state, pipeline.group().occurrence_count) == ("open", 3)


def test_an_ignored_group_wakes_at_its_date(database, pipeline):
    pipeline.run("exec-1", make_score(0.2))
    with pipeline.connection() as connection:
        tomorrow = connection.exec_driver_sql("SELECT now() + interval '1 day'").scalar_one()
    pipeline.change(FAITHFULNESS, "ignored", ignored_until=tomorrow)

    with database.transaction() as connection:
        assert failure_groups.end_expired_ignores(connection) == 0

    pipeline.let_pass(seconds=86_401)
    with database.transaction() as connection:
        assert failure_groups.end_expired_ignores(connection) == 1

    assert (pipeline.group().state, pipeline.group().ignored_until) == ("open", None)
    assert pipeline.kinds() == ["first_seen", "ignored", "ignore_ended"]


def test_over_strict_is_a_mark_beside_the_state(database, pipeline):
    pipeline.run("exec-1", make_score(0.2))
    group_id, pk = pipeline.group().group_id, pipeline.project.pk

    with database.transaction() as connection:
        failure_groups.mark_over_strict(connection, pk, group_id, actor="us", note="they are fine")
    pipeline.run("exec-2", make_score(0.2))

    group = pipeline.group()
    assert (group.state, group.occurrence_count, group.over_strict_note) == (
        "open",
        2,
        "they are fine",
    )

    with database.transaction() as connection:
        failure_groups.take_back_over_strict(connection, pk, group_id, actor="us", note=None)

    assert pipeline.group().over_strict_at is None
    assert pipeline.kinds() == ["first_seen", "over_strict", "over_strict_taken_back"]


def test_a_group_of_validators_is_as_severe_as_its_worst_member(pipeline):
    for name, severity in (("exec-1", "warning"), ("exec-2", "critical"), ("exec-3", "error")):
        pipeline.run(name, make_check("schema", severity=severity))

    assert pipeline.group("schema").severity == "critical"


def test_the_severity_follows_the_members_that_go(pipeline):
    """The worst validators leave one by one; the last severity stays with the empty group."""
    names = {"exec-1": "warning", "exec-2": "error", "exec-3": "critical"}
    sent = {name: make_check("schema", severity=severity) for name, severity in names.items()}
    for name, check in sent.items():
        pipeline.run(name, check)
    seen = []

    for name in reversed(names):
        with pipeline.connection() as connection:
            connection.exec_driver_sql(
                "UPDATE events SET payload = payload || '{\"passed\": true}'"
                " WHERE project_pk = %(project)s AND event_id = %(event)s",
                {"project": pipeline.project.pk, "event": sent[name]["event_id"]},
            )
        pipeline.redetect()
        pipeline.examine()
        seen.append((pipeline.group("schema").severity, pipeline.group("schema").occurrence_count))

    assert seen == [("error", 2), ("warning", 1), ("warning", 0)]


def test_the_severity_follows_a_member_that_gets_worse(pipeline):
    pipeline.run("exec-1", make_check("schema", severity="warning"))

    pipeline.send(make_check("schema", severity="critical"), debounce_s=0)
    pipeline.examine()

    assert pipeline.group("schema").severity == "critical"
    assert pipeline.members("schema")["exec-1"].severity == "critical"


@pytest.mark.parametrize(("good", "is_discovery"), [(18, True), (19, False)])
def test_a_pair_with_fewer_than_twenty_interactions_is_discovery(pipeline, good, is_discovery):
    pipeline.run("exec-bad", make_score(0.2))
    names = [f"exec-{number}" for number in range(good)]
    pipeline.send(*(make_score(0.9, execution_id=name) for name in names for _ in range(3)))
    for name in names:
        pipeline.close(name)

    pipeline.examine()

    group = pipeline.group()
    assert (group.interactions, group.is_discovery) == (good + 1, is_discovery)


def test_interactions_are_those_of_the_pair(pipeline):
    others = [make_score(0.9, pair="ragas/relevancy", execution_id=f"e-{n}") for n in range(30)]
    pipeline.send(*others)
    for event in others:
        pipeline.close(event["execution_id"])
    pipeline.run("exec-1", make_score(0.2))

    assert pipeline.group().interactions == 1
    assert pipeline.group().is_discovery


def test_groups_that_no_score_decides_are_no_discovery(pipeline):
    pipeline.run("exec-1", make_check("schema"), make_event())

    assert not pipeline.group("schema").is_discovery
