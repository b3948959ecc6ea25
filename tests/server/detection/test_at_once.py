"""Many at once: clients send, workers examine, people and beat change the same groups."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from mesedi_server import examination, spikes
from mesedi_server.errors import UnavailableError
from mesedi_server.store import due_work, failure_groups, halts, projects, thresholds
from mesedi_server.store import spikes as store_spikes
from mesedi_server.store.database import Database
from mesedi_server.store.failure_groups import StateChange
from mesedi_server.tasks import moving
from tests.factories import make_score
from tests.server.detection.pipelines import (
    FAITHFULNESS,
    Pipeline,
    make_check,
    make_decision,
    make_pipeline,
    wrong_numbers,
)
from tests.server.detection.recount import Floors, recount

CLIENTS, WORKERS, EXECUTIONS = 4, 3, 300
PATIENCE_S = 30.0

_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
_WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
def crowd(module_database_url) -> Iterator[Pipeline]:
    """A pipeline with a connection for everybody."""
    database = Database(module_database_url, connections=CLIENTS + WORKERS + 4)
    yield make_pipeline(database)
    database.close()


def scalar(pipeline, statement):
    with pipeline.connection() as connection:
        return connection.exec_driver_sql(statement).scalar_one()


def patiently(act: Callable[[], object]) -> None:
    """Do as clients do: try again on a 503, and on nothing else."""
    for _ in range(10):
        try:
            act()
        except UnavailableError:
            continue
        return
    raise AssertionError("ten times unavailable")


@contextmanager
def meanwhile(*acts: Callable[[], object]) -> Iterator[None]:
    """Do these over and over in threads of their own; what one raises is raised here at the end."""
    done = threading.Event()

    def go_on(act):
        while not done.is_set():
            patiently(act)

    with ThreadPoolExecutor(len(acts)) as pool:
        futures = [pool.submit(go_on, act) for act in acts]
        try:
            yield
        finally:
            done.set()
    for future in futures:
        future.result()


def traffic(dice: random.Random) -> list[dict]:
    """Events of all executions, failing in a handful of shared groups, in no order."""
    sent = []
    for number in range(EXECUTIONS):
        name = f"exec-{number:03}"
        for pair in dice.sample(["a/m", "b/m", "c/m", "a:b/c", "a/b:c"], 3):
            score = dice.choice([0.1, 0.4, 0.6, 0.9])
            passed = dice.choice([None, None, True, False])
            sent.append(make_score(score, passed, pair, name, scale=None, reason=None))
        severity = dice.choice(["warning", "error", "critical"])
        is_good = dice.choice([True, False])
        check = make_check(dice.choice(["x", "y"]), passed=is_good, severity=severity, category="")
        sent.append(check | {"execution_id": name})
        if number % 3 == 0:
            sent.append(make_decision("rejected", name) | {"timestamp": now()})
    dice.shuffle(sent)
    return sent


def now():
    return (datetime.now(UTC) - timedelta(seconds=5)).isoformat()


def member_ids(pipeline) -> dict[str, set[str]]:
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT g.group_id, array_agg(x.execution_id) FROM occurrences o"
            " JOIN failure_groups g ON g.pk = o.group_pk JOIN executions x ON x.pk = o.execution_pk"
            " WHERE o.project_pk = %(project)s AND g.failure_class <> 'hitl_rejection_spike'"
            " GROUP BY 1",
            {"project": pipeline.project.pk},
        ).all()
    return {group_id: set(names) for group_id, names in rows}


def expected_ids(pipeline, sent) -> dict[str, set[str]]:
    members: dict[str, set[str]] = {}
    for name in {event["execution_id"] for event in sent}:
        own = [event for event in sent if event["execution_id"] == name]
        for group_id in recount(pipeline.project.project_id, own, Floors()).found:
            members.setdefault(group_id, set()).add(name)
    return members


def test_no_member_is_lost_or_doubled_and_nobody_waits_in_a_circle(crowd):
    dice = random.Random(7)
    sent = traffic(dice)
    deadlocks = scalar(crowd, _DEADLOCKS)

    others = [
        *[lambda: worker(crowd)] * WORKERS,
        lambda: person(crowd),
        lambda: mover(crowd),
        lambda: beat(crowd),
    ]
    with meanwhile(*others), ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda part: client(crowd, part), split(sent, CLIENTS)))
    crowd.examine(settle_s=0)
    beat(crowd)

    assert member_ids(crowd) == expected_ids(crowd, sent)
    rejected = {e["execution_id"] for e in sent if e["event_type"] == "human_intervention"}
    assert crowd.members("hitl_rejection_spike:rejected").keys() == rejected
    assert wrong_numbers(crowd.database) == []
    assert first_seen_marks(crowd) == {group.group_id: 1 for group in crowd.groups()}
    assert scalar(crowd, _DEADLOCKS) == deadlocks


def split(sent, parts):
    return [sent[part::parts] for part in range(parts)]


def client(pipeline, part):
    """Send in small batches, and close every execution as a second client may do too."""
    for start in range(0, len(part), 25):
        batch = part[start : start + 25]
        patiently(lambda batch=batch: pipeline.send(*batch, settle_s=0, debounce_s=0))
    for event in part:
        patiently(lambda event=event: pipeline.close(event["execution_id"]))


def worker(pipeline):
    examination.examine_due(pipeline.database, settle_s=0, limit=40)


def person(pipeline):
    for group in pipeline.groups():
        state = random.choice(failure_groups.STATES)
        how = {"ignored_for": 3, "ignored_until": datetime.now(UTC)} if state == "ignored" else {}
        with pipeline.connection() as connection:
            failure_groups.change_state(
                connection,
                pipeline.project.pk,
                group.group_id,
                StateChange(state=state, actor="us", **how),
            )


def mover(pipeline):
    """Change the zone by which days are counted."""
    zone = random.choice(["UTC", "Pacific/Kiritimati", "Pacific/Niue"])
    with pipeline.connection() as connection:
        projects.change(connection, pipeline.project.pk, {"time_zone": zone}, actor="us")
    moving.move_all(pipeline.database, run_s=random.choice([0.01, 1]), step=random.choice([2, 50]))


def beat(pipeline):
    spikes.look_everywhere(pipeline.database)
    with pipeline.connection() as connection:
        failure_groups.end_expired_ignores(connection)


def first_seen_marks(pipeline) -> Counter:
    with pipeline.connection() as connection:
        rows = connection.exec_driver_sql(
            "SELECT g.group_id FROM group_history h JOIN failure_groups g ON g.pk = h.group_pk"
            " WHERE g.project_pk = %(project)s AND h.kind = 'first_seen'",
            {"project": pipeline.project.pk},
        )
        return Counter(group_id for (group_id,) in rows)


def test_two_workers_that_find_a_new_group_at_once_make_it_once(crowd):
    for number in range(40):
        crowd.send(make_score(0.2, execution_id=f"exec-{number}"))
        crowd.close(f"exec-{number}")
    start = threading.Barrier(4)

    def examine_ten(_):
        start.wait(PATIENCE_S)
        return examination.examine_due(crowd.database, settle_s=0, limit=10)

    with ThreadPoolExecutor(4) as workers:
        assert sum(workers.map(examine_ten, range(4))) == 40

    assert crowd.group().occurrence_count == 40
    assert crowd.kinds() == ["first_seen"]


def test_a_worker_takes_groups_in_their_order(crowd):
    """Else two that need the same groups could wait for each other."""
    pairs = [f"judge/{number}" for number in range(8)]
    crowd.run("exec-1", *(make_score(0.2, pair=pair) for pair in pairs))
    crowd.redetect()
    pks = sorted(group.pk for group in crowd.groups())
    lock = "SELECT pk FROM failure_groups WHERE pk = ANY (%(pks)s) FOR UPDATE NOWAIT"

    with ThreadPoolExecutor(1) as worker, crowd.connection() as other:
        other.exec_driver_sql(lock, {"pks": pks[:1]})
        examined = worker.submit(crowd.examine)
        until_somebody_waits(crowd)
        other.exec_driver_sql(lock, {"pks": pks[1:]})
        other.commit()

        assert examined.result(PATIENCE_S) == 1


def test_a_look_that_waited_for_another_counts_what_came_meanwhile(crowd):
    with ThreadPoolExecutor(1) as worker, crowd.connection() as other:
        store_spikes.lock(other, crowd.project.pk)
        looked = worker.submit(spikes.look, crowd.database, [crowd.project.pk])
        until_somebody_waits(crowd)
        crowd.send(*(make_decision("rejected", f"exec-{number}") for number in range(5)))
        other.commit()
        looked.result(PATIENCE_S)

    assert crowd.group("hitl_rejection_spike:rejected").occurrence_count == 5


def test_an_event_that_comes_during_the_examination_is_not_forgotten(crowd):
    crowd.send(make_score(0.2))
    crowd.close()

    with ThreadPoolExecutor(1) as client, crowd.connection() as worker:
        [due] = due_work.claim_due(worker, settle_s=0, limit=10)
        arriving = client.submit(crowd.send, make_score(1.0), debounce_s=0)
        until_somebody_waits(crowd)
        due_work.mark_examined(worker, [due_work.ExaminedRow(due.pk, 0, [])])
        worker.commit()
        assert arriving.result(PATIENCE_S).is_late

    assert crowd.examine() == 1
    assert crowd.rollups()[0].events == 2


def test_a_redetect_includes_what_is_being_examined_by_older_floors(crowd):
    crowd.run("exec-1", make_score(0.6))
    crowd.redetect()

    with ThreadPoolExecutor(1) as operator, crowd.connection() as worker:
        due = due_work.claim_due(worker, settle_s=0, limit=10)
        old = thresholds.all_in_force(worker, [crowd.project.pk])
        crowd.tune("mean_floor", 0.7)
        asked = operator.submit(crowd.redetect)
        until_somebody_waits(crowd)
        due_work.mark_examined(worker, [due_work.ExaminedRow(due[0].pk, 0, [])])
        worker.commit()
        assert (old, asked.result(PATIENCE_S)) == ({}, 1)

    crowd.examine()
    assert list(crowd.members(FAITHFULNESS)) == ["exec-1"]


def test_a_halt_does_not_wait_for_the_examination(crowd):
    crowd.send(make_score(0.2))
    crowd.close()

    with crowd.connection() as worker:
        due_work.claim_due(worker, settle_s=0, limit=10)
        with crowd.connection() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = '200ms'")
            halts.request(connection, crowd.project.pk, "exec-1", "too dear", "us")

    with crowd.connection() as connection:
        assert halts.state(connection, crowd.project.pk, "exec-1").reason == "too dear"


def test_a_floor_can_be_changed_while_events_are_stored(crowd):
    with crowd.connection() as storing:
        storing.exec_driver_sql(
            "INSERT INTO executions (project_pk, execution_id) VALUES (%(project)s, 'exec-1')",
            {"project": crowd.project.pk},
        )
        with crowd.connection() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = '200ms'")
            version = thresholds.change(
                connection,
                crowd.project.pk,
                "grounding_failure",
                "mean_floor",
                0.7,
                changed_by="us",
                reason=None,
            )

    assert version == 1


def until_somebody_waits(pipeline):
    deadline = datetime.now(UTC) + timedelta(seconds=PATIENCE_S)
    while not scalar(pipeline, _WAITING):
        assert datetime.now(UTC) < deadline, "nobody waits"
