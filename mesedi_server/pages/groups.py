"""The list of failure groups, and a group's own page. What people do to groups is in `group_actions`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flask import Blueprint, request

from detectors import DETECTORS, Thresholds, grounding_failure
from mesedi_server import examination, quality, roads
from mesedi_server.errors import RefusedError
from mesedi_server.pages import addresses, charts, evidence, filters
from mesedi_server.pages.access import Answer, Visit, at_least
from mesedi_server.pages.charts import Trend
from mesedi_server.pages.filters import Look
from mesedi_server.pages.layout import render
from mesedi_server.pages.playbooks import playbook
from mesedi_server.quality import Quality
from mesedi_server.store import (
    agreement,
    api_keys,
    assessments,
    executions,
    failure_groups,
    group_changes,
    labels,
    ranking,
    rollups,
    thresholds,
    trends,
)
from mesedi_server.store.api_keys import ApiKey
from mesedi_server.store.failure_groups import DISCOVERY_INTERACTIONS, FailureGroup
from mesedi_server.store.group_changes import GroupsChange
from mesedi_server.store.paging import Paging
from mesedi_server.store.ranking import RankedGroup
from mesedi_server.store.trends import Counts, Pair, Slice

blueprint = Blueprint("groups", __name__, url_prefix="/p/<project_id>/groups")

ROWS = 25
"""Groups on a page of the list."""
SUGGESTED_PAIRS = 100
"""Pairs whose names are suggested where a filter is typed."""
MEMBERS = 5
"""Executions on a group's page."""
NEW_FOR = timedelta(days=7)
"""How long a group counts as new."""

CLASSES = sorted({*examination.CLASSES, *DETECTORS})
FILTERS = ("q", "class", "evaluator", "metric", "release", "environment", "days")


@dataclass(frozen=True, slots=True)
class Row:
    """A group in the list."""

    group: FailureGroup
    occurrences: int
    release: str | None
    trend: Trend


@blueprint.get("")
@at_least("viewer")
def index(visit: Visit) -> Answer:
    """List the groups, those that fail most in the span first."""
    look, offset = filters.look_back(), filters.offset()
    ranked = _ranked(visit, look, offset)
    has_sent = executions.has_any(visit.connection, visit.project.pk)
    return render(
        "groups.html",
        rows=_rows(visit, ranked[:ROWS], look),
        has_sent=has_sent,
        keys=() if has_sent else _sending_keys(visit),
        pairs=rollups.pairs_of_project(visit.connection, visit.project.pk, SUGGESTED_PAIRS),
        look=look,
        spans=filters.SPANS,
        usual_span=filters.USUAL_SPAN,
        offset=offset,
        next_offset=offset + ROWS if len(ranked) > ROWS else None,
        are_all_selected=request.args.get("select") == "all",
        state=filters.text("state"),
        filters=filters.given(*FILTERS),
        classes=CLASSES,
        same_page=filters.same_page,
        here_again=addresses.of_request(request),
        server=addresses.server(),
        new_since=datetime.now(UTC) - NEW_FOR,
        change=asked_change(visit),
    )


@blueprint.get("/<group_id>")
@at_least("viewer")
def show(visit: Visit, group_id: str) -> Answer:
    """Show what fails, whether it is worth looking at, what to do, and which executions."""
    return page(visit, group_id)


def page(visit: Visit, group_id: str, fault: RefusedError | None = None) -> Answer:
    """Make a group's page, with what could not be done to the group."""
    group = failure_groups.get(visit.connection, visit.project.pk, group_id)
    paging, finding = filters.paging(MEMBERS), filters.finding()
    members = failure_groups.members_page(visit.connection, group.pk, paging, finding)
    latest = members
    if paging.cursor is not None or finding is not None:
        latest = failure_groups.members_page(visit.connection, group.pk, Paging(1))
    newest = latest.items[0] if latest.items else None
    floor = _thresholds(visit).floor(*_pair(group))
    distribution = trends.distribution(
        visit.connection, visit.project.pk, _pair(group), floor.value
    )
    score_bars = charts.score_bars(distribution)
    counts = assessments.counts_of_group(visit.connection, group.pk)
    return render(
        "group.html",
        200 if fault is None else fault.status,
        group=group,
        latest=newest,
        failures=evidence.of_members(visit.connection, group, members.items),
        labels=labels.last_of(visit.connection, [one.execution_pk for one in members.items]),
        here_again=addresses.of_request(request) if request.method == "GET" else None,
        counts=counts,
        finding=finding,
        suggestion=roads.suggest(counts),
        min_answers=roads.MIN_ANSWERS,
        quality=_quality(visit, group, floor.value),
        compared_executions=agreement.COMPARED_EXECUTIONS,
        min_labels=quality.MIN_LABELS,
        min_judged=quality.MIN_JUDGED,
        next_cursor=members.next_cursor,
        history=failure_groups.history(visit.connection, group.pk),
        server=addresses.server(),
        playbook=playbook(group.failure_class),
        discovery_interactions=DISCOVERY_INTERACTIONS,
        new_since=datetime.now(UTC) - NEW_FOR,
        is_of_scores=group.failure_class == grounding_failure.NAME,
        is_tunable=group.failure_class in DETECTORS,
        trend=_trend(visit, group),
        spans=filters.SPANS,
        floor=floor,
        distribution=distribution,
        score_bars=score_bars,
        top_score_bar=charts.highest(score_bars),
        is_upright=newest is None or newest.evidence.get("higher_is_better", True),
        same_page=filters.same_page,
        change=asked_change(visit),
        fault=fault,
        entered=request.form,
    )


def asked_change(visit: Visit) -> GroupsChange | None:
    """Find the change that the address tells of, which a page offers to take back."""
    change_id = filters.text("change")
    if change_id is None:
        return None
    return group_changes.find(visit.connection, visit.project.pk, change_id)


def _sending_keys(visit: Visit) -> list[ApiKey]:
    """List the keys that can send, those that can do no more first."""
    keys = api_keys.of_project(visit.connection, visit.project.pk)
    sending = [k for k in keys if k.is_alive and {"ingest", "admin"}.intersection(k.scopes)]
    return sorted(sending, key=lambda key: len(key.scopes) + ("admin" in key.scopes))


def _ranked(visit: Visit, look: Look, offset: int) -> list[RankedGroup]:
    counted = Slice(since=None if look.is_unbounded else look.days[0], **_origin())
    return ranking.biggest(
        visit.connection,
        visit.project.pk,
        filters.groups(),
        counted,
        offset=offset,
        limit=ROWS + 1,
    )


def _rows(visit: Visit, ranked: Sequence[RankedGroup], look: Look) -> list[Row]:
    groups = [one.group for one in ranked]
    pks = [group.pk for group in groups]
    counts = trends.of_groups(visit.connection, pks, look.days, **_origin())
    whole = _interactions(visit, groups, look)
    return [
        Row(
            one.group,
            one.occurrences,
            one.release,
            Trend(look.days, counts[one.group.pk], whole.get(_pair(one.group))),
        )
        for one in ranked
    ]


def _interactions(visit: Visit, groups: Sequence[FailureGroup], look: Look) -> dict[Pair, Counts]:
    """Count what the groups' share is of; of one release or environment alone it is not known."""
    pairs = {_pair(group) for group in groups if group.evaluator_id}
    counts = trends.interactions(visit.connection, visit.project.pk, pairs, look.days)
    return {} if any(_origin().values()) else counts


def _origin() -> dict[str, str | None]:
    return {name: filters.text(name) for name in ("release", "environment")}


def _trend(visit: Visit, group: FailureGroup) -> Trend:
    span, pair = filters.look_back().days, _pair(group)
    occurrences = trends.of_groups(visit.connection, [group.pk], span)[group.pk]
    whole = trends.interactions(visit.connection, visit.project.pk, [pair], span)[pair]
    return Trend(span, occurrences, whole if group.evaluator_id else None)


def _quality(visit: Visit, group: FailureGroup, floor: float) -> Quality:
    pair = _pair(group)
    judges = agreement.of_pair(visit.connection, visit.project.pk, pair, floor)
    return quality.of_pair(group.evaluator_id, judges)


def _thresholds(visit: Visit) -> Thresholds:
    values = thresholds.in_force(visit.connection, visit.project.pk, grounding_failure.NAME)
    return Thresholds.from_values(values.values, values.version)


def _pair(group: FailureGroup) -> Pair:
    return group.evaluator_id, group.metric_type
