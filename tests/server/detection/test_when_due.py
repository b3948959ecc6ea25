"""detectors.md, "When detection runs"."""

from datetime import timedelta

import pytest

from mesedi_server import examination
from mesedi_server.config import Settings
from tests.factories import make_event, make_score
from tests.server.detection.pipelines import FAITHFULNESS, make_check, make_decision


def test_a_minute_settles_and_two_seconds_debounce_unless_set():
    settings = Settings(database_url="", broker_url="")

    assert (settings.settle_s, settings.debounce_s) == (60, 2)


def test_the_first_close_makes_an_execution_due_at_once(pipeline):
    pipeline.post()
    pipeline.send(make_score(0.2))

    pipeline.close()

    execution = pipeline.execution()
    assert execution.detect_due_at == execution.closed_at
    assert pipeline.examine() == 1
    assert pipeline.listed() == [FAITHFULNESS]


def test_a_status_that_is_terminal_before_the_close_is_no_reason_not_to_examine(pipeline):
    pipeline.post(status="completed")
    pipeline.send(make_score(0.2))

    assert pipeline.examine() == 0

    pipeline.close()

    assert pipeline.examine() == 1
    assert pipeline.listed() == [FAITHFULNESS]


def test_closing_again_makes_nothing_due(pipeline):
    pipeline.run("exec-1", make_score(0.2))

    pipeline.close()

    assert pipeline.execution().detect_due_at is None


@pytest.mark.parametrize(
    "late", [make_score(0.9), make_check(), make_decision("timeout")], ids=lambda e: e["event_type"]
)
def test_a_late_event_makes_an_examined_execution_due_after_a_moment(pipeline, late):
    pipeline.run("exec-1", make_score(0.2))

    stored = pipeline.send(late, debounce_s=600)

    execution = pipeline.execution()
    assert stored.is_late
    assert execution.detect_due_at - execution.last_event_at == timedelta(seconds=600)
    assert pipeline.examine() == 0

    pipeline.let_pass(seconds=600)

    assert pipeline.examine() == 1


def test_neighbours_of_a_late_event_do_not_put_it_off(pipeline):
    pipeline.run("exec-1", make_score(0.2))
    pipeline.send(make_score(0.9))
    due_at = pipeline.execution().detect_due_at

    pipeline.send(make_score(0.8))

    assert pipeline.execution().detect_due_at == due_at


def test_a_late_event_that_no_detector_reads_makes_nothing_due(pipeline):
    pipeline.run("exec-1", make_score(0.2))

    stored = pipeline.send(make_event(event_type="checkpoint"))

    assert not stored.is_late
    assert pipeline.execution().detect_due_at is None


def test_an_event_between_close_and_examination_is_part_of_it(pipeline):
    pipeline.post()
    pipeline.send(make_score(0.2))
    pipeline.close()
    pipeline.send(make_score(0.9))

    pipeline.examine()

    assert pipeline.listed() == []
    assert pipeline.rollups()[0].events == 2
    assert pipeline.execution().detect_due_at is None


def test_events_before_their_execution_and_after_its_close_count_alike(pipeline):
    pipeline.send(make_score(0.1))
    pipeline.post()
    pipeline.close()
    pipeline.examine()
    pipeline.send(make_score(0.3), debounce_s=0)
    pipeline.examine()

    assert pipeline.rollups()[0].mean == 0.2
    assert pipeline.members()["exec-1"].evidence["scores"] == 2


def test_an_open_execution_is_examined_once_it_has_been_quiet(pipeline):
    pipeline.post()
    pipeline.send(make_score(0.2), settle_s=60)

    assert pipeline.examine(settle_s=60) == 0

    pipeline.let_pass(seconds=30)

    assert pipeline.examine(settle_s=60) == 0

    pipeline.let_pass(seconds=30)

    assert pipeline.examine(settle_s=60) == 1
    assert pipeline.listed() == [FAITHFULNESS]
    assert pipeline.execution().closed_at is None


def test_an_execution_that_nobody_posted_settles_too(pipeline):
    pipeline.send(make_score(0.2))

    pipeline.let_pass(seconds=60)

    assert pipeline.examine(settle_s=60) == 1
    assert pipeline.listed() == [FAITHFULNESS]


def test_an_open_execution_that_goes_on_is_left_in_peace(pipeline):
    pipeline.send(make_score(0.2), settle_s=60)
    pipeline.let_pass(seconds=50)
    pipeline.send(make_event(event_type="checkpoint"), settle_s=60)
    pipeline.let_pass(seconds=50)

    assert pipeline.examine(settle_s=60) == 0

    execution = pipeline.execution()
    assert execution.detect_due_at - execution.last_event_at == timedelta(seconds=60)


def test_more_restless_executions_than_a_batch_holds_are_left_in_peace(pipeline):
    names = [f"exec-{number}" for number in range(examination.BATCH + 50)]
    pipeline.send(*(make_score(0.2, execution_id=name) for name in names), settle_s=0)

    assert pipeline.examine(settle_s=60) == 0
    assert pipeline.listed() == []


def test_an_open_execution_without_anything_to_detect_is_never_due(pipeline):
    pipeline.post()
    pipeline.send(make_event(event_type="checkpoint"), settle_s=0)

    assert pipeline.execution().detect_due_at is None
    assert pipeline.examine(settle_s=0) == 0


def test_the_close_of_a_settled_execution_examines_it_again(pipeline):
    pipeline.send(make_score(0.2), settle_s=0)
    pipeline.examine(settle_s=0)

    pipeline.close(status="crashed", crash_signature="KeyError:agent.py:plan")

    assert pipeline.examine() == 1
    assert pipeline.listed() == ["KeyError:agent.py:plan", FAITHFULNESS]


@pytest.mark.parametrize("is_posted_first", [True, False])
def test_what_a_late_post_says_is_in_the_findings(pipeline, is_posted_first):
    facts = {"status": "crashed", "crash_signature": "KeyError:agent.py:plan", "release": "v7"}
    steps = [lambda: pipeline.post(**facts), lambda: pipeline.close(status="crashed")]

    for step in steps if is_posted_first else steps[::-1]:
        step()
        pipeline.examine()

    [member] = pipeline.members("KeyError:agent.py:plan").values()
    assert member.release == "v7"


def test_a_floor_that_changes_judges_nothing_by_itself(pipeline):
    pipeline.run("exec-1", make_score(0.6))

    version = pipeline.tune("mean_floor", 0.7)

    assert pipeline.examine() == 0
    assert pipeline.listed() == []

    pipeline.run("exec-2", make_score(0.6))

    assert list(pipeline.members()) == ["exec-2"]
    assert pipeline.members()["exec-2"].threshold_version == version
    assert pipeline.members()["exec-2"].evidence["floor_source"] == "project"


def test_a_late_event_judges_its_execution_by_the_floor_of_now(pipeline):
    pipeline.run("exec-1", make_score(0.6))
    pipeline.run("exec-2", make_score(0.6))
    pipeline.tune("mean_floor", 0.7)

    pipeline.send(make_score(0.6), debounce_s=0)
    pipeline.examine()

    assert list(pipeline.members()) == ["exec-1"]


def test_a_redetect_judges_by_the_floor_of_now(pipeline):
    pipeline.run("exec-1", make_score(0.6))
    pipeline.run("exec-2", make_score(0.4))
    pipeline.tune("mean_floor", 0.7)

    assert pipeline.redetect() == 2
    assert pipeline.examine() == 2
    assert set(pipeline.members()) == {"exec-1", "exec-2"}

    pipeline.tune("mean_floor", 0.3)
    pipeline.redetect()
    pipeline.examine()

    assert pipeline.group().occurrence_count == 0


def test_examining_twice_changes_nothing(pipeline):
    pipeline.run("exec-1", make_score(0.2), make_check(), release="v1")
    before = pipeline.groups(), pipeline.members(), pipeline.rollups(), pipeline.history()

    pipeline.redetect()
    pipeline.examine()

    assert before == (
        pipeline.groups(),
        pipeline.members(),
        pipeline.rollups(),
        pipeline.history(),
    )


def test_what_the_cap_cuts_is_kept_with_the_execution(pipeline):
    pairs = [f"judge-{number:02}/quality" for number in range(25)]

    pipeline.run("exec-1", *(make_score(0.2, pair=pair) for pair in pairs))

    execution = pipeline.execution()
    assert len(pipeline.groups()) == 20
    assert execution.overflow_count == 5
    assert execution.overflow_signatures == [
        f"grounding_failure:judge-{number}:quality" for number in range(20, 25)
    ]


def test_what_the_cap_no_longer_cuts_is_forgotten(pipeline):
    pairs = [f"judge-{number:02}/quality" for number in range(21)]
    pipeline.run("exec-1", *(make_score(0.2, pair=pair) for pair in pairs))

    pipeline.tune("mean_floor", 0.1)
    pipeline.redetect()
    pipeline.examine()

    execution = pipeline.execution()
    assert (execution.overflow_count, execution.overflow_signatures) == (0, None)
    assert pipeline.listed() == []
