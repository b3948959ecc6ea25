"""Groups are counted by four weeks too; a project that changes its zone is counted by the new days a step at a time.

A period is four weeks. It has a row for each release in each environment, for each release, for each environment, and
for all together: a list over months reads few rows, whatever it is filtered by.

`projects.time_zone` is what people want, `counted_zone` what the counts are of. On the way from one to the other the
executions up to `moved_to` are counted in `next_zone`, the later ones in `counted_zone`; whoever counts meanwhile goes
by the same rule, so the counts are exact at every step.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_MOVING_ZONE = "CASE WHEN {row}.execution_pk <= p.moved_to THEN p.next_zone ELSE p.counted_zone END"
_WANTED_ZONE = "p.time_zone"

# Whoever counts holds the zones (shared) until the end of the transaction; whoever moves days waits for them.
_HOLD_ZONES = """PERFORM pg_advisory_xact_lock_shared(1835365475, project_pk)
        FROM (SELECT DISTINCT project_pk FROM {rows} ORDER BY project_pk) AS touched"""

_DAY = """SELECT o.group_pk, (o.occurred_at AT TIME ZONE {zone})::date AS day,
            coalesce(left(o.release, 256), '') AS release, coalesce(left(o.environment, 256), '') AS environment,
            o.project_pk, {number} AS occurrences
        FROM {rows}"""
_OF_PROJECT = "{rows} o JOIN projects p ON p.pk = o.project_pk"

_BY_DAY_AND_WEEK = """WITH counted AS MATERIALIZED (
            SELECT group_pk, day, release, environment, project_pk, sum(occurrences)::int AS occurrences
            FROM ({counted}) AS one GROUP BY group_pk, day, release, environment, project_pk
            HAVING sum(occurrences) <> 0
        ), weekly AS MATERIALIZED (
            SELECT group_pk, date_trunc('week', day)::date AS week, is_total,
                CASE WHEN is_total THEN '' ELSE release END AS release,
                CASE WHEN is_total THEN '' ELSE environment END AS environment,
                project_pk, sum(occurrences)::int AS occurrences
            FROM counted, (VALUES (true), (false)) AS kind (is_total)
            GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(occurrences) <> 0
        )"""

# The year 1 began with a Monday, and so does every period.
_BY_PERIOD = """SELECT group_pk, day - mod(day - date '0001-01-01', 28) AS period, any_release, any_environment,
                CASE WHEN any_release THEN '' ELSE release END AS release,
                CASE WHEN any_environment THEN '' ELSE environment END AS environment,
                project_pk, sum(occurrences)::int AS occurrences
            FROM {days}, (VALUES (true, true), (true, false), (false, true), (false, false))
                AS kind (any_release, any_environment)
            GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum(occurrences) <> 0"""
_ADD_PERIODS = """INSERT INTO group_periods AS p
                (group_pk, period, any_release, any_environment, release, environment, project_pk, occurrences)
            SELECT * FROM ({counted}) AS c
            ORDER BY group_pk, period, any_release, any_environment, release, environment
            ON CONFLICT (group_pk, period, any_release, any_environment, release, environment)
                DO UPDATE SET occurrences = p.occurrences + excluded.occurrences"""
_ADDED_BY_PERIOD = f""", by_period AS (
            {_ADD_PERIODS.format(counted=_BY_PERIOD.format(days="counted"))}
        )"""
_TAKEN_BY_PERIOD = f""", by_period AS (
            UPDATE group_periods p SET occurrences = p.occurrences + c.occurrences
            FROM ({_BY_PERIOD.format(days="counted")}) AS c
            WHERE (p.group_pk, p.period, p.any_release, p.any_environment, p.release, p.environment)
                = (c.group_pk, c.period, c.any_release, c.any_environment, c.release, c.environment)
        )"""

_COUNT_IN_GROUPS = f"""{_BY_DAY_AND_WEEK}, daily AS (
            INSERT INTO group_days AS d (group_pk, day, release, environment, project_pk, occurrences)
            SELECT * FROM counted ORDER BY group_pk, day, release, environment
            ON CONFLICT (group_pk, day, release, environment)
                DO UPDATE SET occurrences = d.occurrences + excluded.occurrences
        ){{by_period}}
        INSERT INTO group_weeks AS w (group_pk, week, is_total, release, environment, project_pk, occurrences)
        SELECT * FROM weekly ORDER BY group_pk, week, is_total, release, environment
        ON CONFLICT (group_pk, week, is_total, release, environment)
            DO UPDATE SET occurrences = w.occurrences + excluded.occurrences"""

# No upserts: where the project itself is being deleted, its counts may have gone before.
_TAKE_FROM_GROUPS = f"""{_BY_DAY_AND_WEEK}, daily AS (
            UPDATE group_days d SET occurrences = d.occurrences + c.occurrences FROM counted c
            WHERE (d.group_pk, d.day, d.release, d.environment) = (c.group_pk, c.day, c.release, c.environment)
        ){{by_period}}
        UPDATE group_weeks w SET occurrences = w.occurrences + c.occurrences FROM weekly c
        WHERE (w.group_pk, w.week, w.is_total, w.release, w.environment)
            = (c.group_pk, c.week, c.is_total, c.release, c.environment)"""

_INTERACTIONS = """SELECT r.project_pk, r.evaluator_id, r.metric_type,
            (x.received_at AT TIME ZONE {zone})::date AS day, count(*)::int AS interactions
        FROM {rows} r JOIN executions x ON x.pk = r.execution_pk JOIN projects p ON p.pk = r.project_pk {more}
        GROUP BY 1, 2, 3, 4"""

_COUNT_IN_PAIRS = """INSERT INTO pair_days AS d (project_pk, evaluator_id, metric_type, day, interactions)
        {counted} ORDER BY 1, 2, 3, 4
        ON CONFLICT (project_pk, evaluator_id, metric_type, day)
            DO UPDATE SET interactions = d.interactions + excluded.interactions"""


def _occurrences(zone: str, rows: str, number: str) -> str:
    return _DAY.format(zone=zone.format(row="o"), number=number, rows=_OF_PROJECT.format(rows=rows))


def _interactions(zone: str, rows: str, more: str = "") -> str:
    return _INTERACTIONS.format(zone=zone.format(row="r"), rows=rows, more=more)


def _counting(zone: str, *, periods: bool) -> list[str]:
    """The functions that count, by days of a zone, with or without periods."""
    add_by_period = _ADDED_BY_PERIOD if periods else ""
    take_by_period = _TAKEN_BY_PERIOD if periods else ""
    forget_periods = "DELETE FROM group_periods WHERE project_pk = counted_pk;" if periods else ""
    added, removed = _occurrences(zone, "new_rows", "1"), _occurrences(zone, "old_rows", "-1")
    everything = _occurrences(zone, "occurrences", "1") + " WHERE p.pk = counted_pk"
    return [
        f"""CREATE OR REPLACE FUNCTION count_occurrences() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        {_HOLD_ZONES.format(rows="new_rows")};
        {_COUNT_IN_GROUPS.format(counted=added, by_period=add_by_period)};
    ELSIF TG_OP = 'UPDATE' THEN
        {_HOLD_ZONES.format(rows="new_rows")};
        {_COUNT_IN_GROUPS.format(counted=f"{added} UNION ALL {removed}", by_period=add_by_period)};
    ELSE
        {_HOLD_ZONES.format(rows="old_rows")};
        {_TAKE_FROM_GROUPS.format(counted=removed, by_period=take_by_period)};
    END IF;
    RETURN NULL;
END $$""",
        f"""CREATE OR REPLACE FUNCTION count_interactions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        {_HOLD_ZONES.format(rows="new_rows")};
        {_COUNT_IN_PAIRS.format(counted=_interactions(zone, "new_rows"))};
    ELSE
        {_HOLD_ZONES.format(rows="old_rows")};
        -- In the order in which others count on: so that nobody waits for each other in a circle.
        PERFORM FROM pair_days WHERE (project_pk, evaluator_id, metric_type)
            IN (SELECT project_pk, evaluator_id, metric_type FROM old_rows)
        ORDER BY project_pk, evaluator_id, metric_type, day FOR UPDATE;
        UPDATE pair_days d SET interactions = d.interactions - c.interactions
        FROM ({_interactions(zone, "old_rows")}) AS c
        WHERE (d.project_pk, d.evaluator_id, d.metric_type, d.day)
            = (c.project_pk, c.evaluator_id, c.metric_type, c.day);
    END IF;
    RETURN NULL;
END $$""",
        f"""CREATE OR REPLACE FUNCTION count_project_by_day(counted_pk integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1835365475, counted_pk);
    DELETE FROM group_days WHERE project_pk = counted_pk;
    DELETE FROM group_weeks WHERE project_pk = counted_pk;
    {forget_periods}
    DELETE FROM pair_days WHERE project_pk = counted_pk;
    {_COUNT_IN_GROUPS.format(counted=everything, by_period=add_by_period)};
    {_COUNT_IN_PAIRS.format(counted=_interactions(zone, "score_rollups", "WHERE p.pk = counted_pk"))};
END $$""",
    ]


# What is counted in both zones on the same day cancels out before anything is written.
_BOTH_ZONES = "(VALUES (project.next_zone, 1), (project.counted_zone, -1)) AS moved (zone, number)"
_MOVED_OCCURRENCES = (
    _DAY.format(zone="moved.zone", number="moved.number", rows="occurrences o, " + _BOTH_ZONES)
    + " WHERE o.project_pk = moved_pk AND o.execution_pk > project.moved_to AND o.execution_pk <= last_pk"
)
# From the executions to their scores: the planner has no other good way from a range of keys.
_MOVED_INTERACTIONS = f"""SELECT x.project_pk, r.evaluator_id, r.metric_type,
            (x.received_at AT TIME ZONE moved.zone)::date AS day, sum(moved.number)::int AS interactions
        FROM executions x JOIN score_rollups r ON r.execution_pk = x.pk CROSS JOIN {_BOTH_ZONES}
        WHERE x.project_pk = moved_pk AND x.pk > project.moved_to AND x.pk <= last_pk
        GROUP BY 1, 2, 3, 4 HAVING sum(moved.number) <> 0"""

_MOVE_TO_ZONE = f"""
CREATE FUNCTION move_to_zone(moved_pk integer, executions_at_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
-- Move some executions on to the days of the zone that is wanted; tell whether there may be more to do.
DECLARE
    project projects%ROWTYPE;
    last_pk bigint;
BEGIN
    -- In the order of who changes the zone: so that nobody waits for each other in a circle.
    PERFORM FROM projects WHERE pk = moved_pk FOR NO KEY UPDATE;
    PERFORM pg_advisory_xact_lock(1835365475, moved_pk);
    UPDATE projects SET next_zone = time_zone
    WHERE pk = moved_pk AND next_zone IS NULL AND time_zone <> counted_zone;
    SELECT * INTO project FROM projects WHERE pk = moved_pk AND next_zone IS NOT NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT max(pk) INTO last_pk FROM (SELECT pk FROM executions
        WHERE project_pk = moved_pk AND pk > project.moved_to ORDER BY pk LIMIT executions_at_most) AS next;
    IF last_pk IS NULL THEN
        UPDATE projects SET counted_zone = next_zone, next_zone = NULL, moved_to = 0 WHERE pk = moved_pk;
        RETURN project.next_zone <> project.time_zone;
    END IF;
    {_COUNT_IN_GROUPS.format(counted=_MOVED_OCCURRENCES, by_period=_ADDED_BY_PERIOD)};
    {_COUNT_IN_PAIRS.format(counted=_MOVED_INTERACTIONS)};
    UPDATE projects SET moved_to = last_pk WHERE pk = moved_pk;
    RETURN true;
END $$
"""

_ZONES = """
ALTER TABLE projects ADD COLUMN IF NOT EXISTS counted_zone text NOT NULL DEFAULT 'UTC',
    ADD COLUMN IF NOT EXISTS next_zone text, ADD COLUMN IF NOT EXISTS moved_to bigint NOT NULL DEFAULT 0
"""
# The trigger stays: to drop it, everybody who refers to a project would have to be waited for.
_CHECK_ZONE = """
CREATE OR REPLACE FUNCTION move_days() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A zone that does not exist fails here, before anything depends on it.
    PERFORM now() AT TIME ZONE NEW.time_zone;
    RETURN NULL;
END $$
"""

_MOVE_AT_ONCE = """
CREATE OR REPLACE FUNCTION move_days() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM now() AT TIME ZONE NEW.time_zone;
    PERFORM count_project_by_day(NEW.pk);
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    # By itself, before anything is locked that those wait for who refer to a project; once more if it is run again.
    with op.get_context().autocommit_block():
        op.execute(_ZONES)
    # From here on nobody writes what is counted until the migration is committed.
    op.execute("LOCK TABLE occurrences, score_rollups IN SHARE ROW EXCLUSIVE MODE")
    op.execute("UPDATE projects SET counted_zone = time_zone")
    _make_periods()
    for statement in (*_counting(_MOVING_ZONE, periods=True), _MOVE_TO_ZONE, _CHECK_ZONE):
        op.execute(statement)
    # From the days, not from the occurrences: seconds instead of minutes.
    op.execute(_ADD_PERIODS.format(counted=_BY_PERIOD.format(days="group_days")))


def downgrade() -> None:
    op.execute("LOCK TABLE occurrences, score_rollups IN SHARE ROW EXCLUSIVE MODE")
    op.execute("DROP FUNCTION move_to_zone(integer, integer)")
    for statement in (*_counting(_WANTED_ZONE, periods=False), _MOVE_AT_ONCE):
        op.execute(statement)
    op.execute(
        "SELECT count_project_by_day(pk) FROM projects WHERE counted_zone <> time_zone OR next_zone IS NOT NULL"
    )
    for column in ("moved_to", "next_zone", "counted_zone"):
        op.drop_column("projects", column)
    op.drop_table("group_periods")


def _make_periods() -> None:
    op.create_table(
        "group_periods",
        sa.Column("group_pk", sa.BigInteger(), nullable=False),
        sa.Column("period", sa.Date(), nullable=False),
        sa.Column("any_release", sa.Boolean(), nullable=False),
        sa.Column("any_environment", sa.Boolean(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_group_periods_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "group_pk",
            "period",
            "any_release",
            "any_environment",
            "release",
            "environment",
            name=op.f("pk_group_periods"),
        ),
    )
    op.create_index(
        "ix_group_periods_recent",
        "group_periods",
        ["project_pk", "any_release", "any_environment", "release", "environment", "period"],
        unique=False,
        postgresql_include=["group_pk", "occurrences"],
    )
