"""Groups are counted by day and week, pairs by day; groups are changed by the list, answers are found at once.

The counts are kept by triggers: whoever writes or deletes the rows that they count, an older server or a cascade too,
leaves them exact.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A day is one of the project's zone. Whoever counts holds the zone (shared) until the end of the transaction; whoever
# changes it waits for them, and counts again. No row lock: what comes in refers to the project, and must not wait.
_HOLD_ZONES = """PERFORM pg_advisory_xact_lock_shared(1835365475, project_pk)
        FROM (SELECT DISTINCT project_pk FROM {rows} ORDER BY project_pk) AS touched"""

_OCCURRENCES = """SELECT o.group_pk, (o.occurred_at AT TIME ZONE p.time_zone)::date AS day,
            coalesce(left(o.release, 256), '') AS release, coalesce(left(o.environment, 256), '') AS environment,
            o.project_pk, {number} AS occurrences
        FROM {rows} o JOIN projects p ON p.pk = o.project_pk"""
_ADDED = _OCCURRENCES.format(number="1", rows="new_rows")
_REMOVED = _OCCURRENCES.format(number="-1", rows="old_rows")
_ALL = _OCCURRENCES.format(number="1", rows="occurrences") + " WHERE p.pk = counted_pk"

# A week has a row of its own for all releases and environments together: that is what most lists ask for.
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

_COUNT_IN_GROUPS = f"""{_BY_DAY_AND_WEEK}, daily AS (
            INSERT INTO group_days AS d (group_pk, day, release, environment, project_pk, occurrences)
            SELECT * FROM counted ORDER BY group_pk, day, release, environment
            ON CONFLICT (group_pk, day, release, environment)
                DO UPDATE SET occurrences = d.occurrences + excluded.occurrences
        )
        INSERT INTO group_weeks AS w (group_pk, week, is_total, release, environment, project_pk, occurrences)
        SELECT * FROM weekly ORDER BY group_pk, week, is_total, release, environment
        ON CONFLICT (group_pk, week, is_total, release, environment)
            DO UPDATE SET occurrences = w.occurrences + excluded.occurrences"""

# No upserts: where the project itself is being deleted, its counts may have gone before.
_TAKE_FROM_GROUPS = f"""{_BY_DAY_AND_WEEK.format(counted=_REMOVED)}, daily AS (
            UPDATE group_days d SET occurrences = d.occurrences + c.occurrences FROM counted c
            WHERE (d.group_pk, d.day, d.release, d.environment) = (c.group_pk, c.day, c.release, c.environment)
        )
        UPDATE group_weeks w SET occurrences = w.occurrences + c.occurrences FROM weekly c
        WHERE (w.group_pk, w.week, w.is_total, w.release, w.environment)
            = (c.group_pk, c.week, c.is_total, c.release, c.environment)"""

_COUNT_OCCURRENCES = f"""
CREATE FUNCTION count_occurrences() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        {_HOLD_ZONES.format(rows="new_rows")};
        {_COUNT_IN_GROUPS.format(counted=_ADDED)};
    ELSIF TG_OP = 'UPDATE' THEN
        {_HOLD_ZONES.format(rows="new_rows")};
        {_COUNT_IN_GROUPS.format(counted=f"{_ADDED} UNION ALL {_REMOVED}")};
    ELSE
        {_HOLD_ZONES.format(rows="old_rows")};
        {_TAKE_FROM_GROUPS};
    END IF;
    RETURN NULL;
END $$
"""

_INTERACTIONS = """SELECT r.project_pk, r.evaluator_id, r.metric_type,
            (x.received_at AT TIME ZONE p.time_zone)::date AS day, count(*)::int AS interactions
        FROM {rows} r JOIN executions x ON x.pk = r.execution_pk JOIN projects p ON p.pk = r.project_pk
        WHERE {condition} GROUP BY 1, 2, 3, 4"""

_COUNT_IN_PAIRS = """INSERT INTO pair_days AS d (project_pk, evaluator_id, metric_type, day, interactions)
        {counted} ORDER BY 1, 2, 3, 4
        ON CONFLICT (project_pk, evaluator_id, metric_type, day)
            DO UPDATE SET interactions = d.interactions + excluded.interactions"""

_COUNT_INTERACTIONS = f"""
CREATE FUNCTION count_interactions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        {_HOLD_ZONES.format(rows="new_rows")};
        {_COUNT_IN_PAIRS.format(counted=_INTERACTIONS.format(rows="new_rows", condition="true"))};
    ELSE
        {_HOLD_ZONES.format(rows="old_rows")};
        -- In the order in which others count on: so that nobody waits for each other in a circle.
        PERFORM FROM pair_days WHERE (project_pk, evaluator_id, metric_type)
            IN (SELECT project_pk, evaluator_id, metric_type FROM old_rows)
        ORDER BY project_pk, evaluator_id, metric_type, day FOR UPDATE;
        UPDATE pair_days d SET interactions = d.interactions - c.interactions
        FROM ({_INTERACTIONS.format(rows="old_rows", condition="true")}) AS c
        WHERE (d.project_pk, d.evaluator_id, d.metric_type, d.day)
            = (c.project_pk, c.evaluator_id, c.metric_type, c.day);
    END IF;
    RETURN NULL;
END $$
"""

# The days of a rollup are its execution's: it must be counted off while that is still there.
_FORGET_SCORES = """
CREATE FUNCTION forget_scores() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM score_rollups WHERE execution_pk = OLD.pk;
    RETURN OLD;
END $$
"""

_COUNT_PROJECT = f"""
CREATE FUNCTION count_project_by_day(counted_pk integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1835365475, counted_pk);
    DELETE FROM group_days WHERE project_pk = counted_pk;
    DELETE FROM group_weeks WHERE project_pk = counted_pk;
    DELETE FROM pair_days WHERE project_pk = counted_pk;
    {_COUNT_IN_GROUPS.format(counted=_ALL)};
    {_COUNT_IN_PAIRS.format(counted=_INTERACTIONS.format(rows="score_rollups", condition="p.pk = counted_pk"))};
END $$
"""

_MOVE_DAYS = """
CREATE FUNCTION move_days() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A zone that does not exist fails here, before anything depends on it.
    PERFORM now() AT TIME ZONE NEW.time_zone;
    PERFORM count_project_by_day(NEW.pk);
    RETURN NULL;
END $$
"""

_TRIGGERS = """
CREATE TRIGGER count_added AFTER INSERT ON occurrences REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_occurrences();
CREATE TRIGGER count_moved AFTER UPDATE ON occurrences REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_occurrences();
CREATE TRIGGER count_removed AFTER DELETE ON occurrences REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_occurrences();
CREATE TRIGGER count_added AFTER INSERT ON score_rollups REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_interactions();
CREATE TRIGGER count_removed AFTER DELETE ON score_rollups REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_interactions();
CREATE TRIGGER forget_scores BEFORE DELETE ON executions FOR EACH ROW EXECUTE FUNCTION forget_scores();
CREATE TRIGGER move_days AFTER UPDATE OF time_zone ON projects FOR EACH ROW
    WHEN (OLD.time_zone IS DISTINCT FROM NEW.time_zone) EXECUTE FUNCTION move_days();
"""


def upgrade() -> None:
    _make_tables()
    op.execute(_COUNT_OCCURRENCES)
    op.execute(_COUNT_INTERACTIONS)
    op.execute(_FORGET_SCORES)
    op.execute(_COUNT_PROJECT)
    op.execute(_MOVE_DAYS)
    # From here on nobody writes what is counted until the migration is committed.
    op.execute(_TRIGGERS)
    op.execute("SELECT count_project_by_day(pk) FROM projects")


def downgrade() -> None:
    op.execute("DROP TRIGGER move_days ON projects")
    op.execute("DROP TRIGGER forget_scores ON executions")
    for table in ("occurrences", "score_rollups"):
        op.execute(f"DROP TRIGGER count_added ON {table}")
        op.execute(f"DROP TRIGGER count_removed ON {table}")
    op.execute("DROP TRIGGER count_moved ON occurrences")
    op.execute("DROP FUNCTION move_days(), count_project_by_day(integer)")
    op.execute("DROP FUNCTION count_occurrences(), count_interactions(), forget_scores()")
    op.drop_table("group_changes")
    op.drop_index("ix_events_answers", table_name="events")
    op.drop_table("pair_days")
    op.drop_table("group_weeks")
    op.drop_table("group_days")


def _make_tables() -> None:
    # Counts refer to the project, not to their group: whoever counts again would wait for who changes a group, and is
    # waited for.
    op.create_table(
        "group_days",
        sa.Column("group_pk", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_group_days_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "group_pk", "day", "release", "environment", name=op.f("pk_group_days")
        ),
    )
    op.create_index(
        "ix_group_days_recent",
        "group_days",
        ["project_pk", "day"],
        unique=False,
        postgresql_include=["group_pk", "occurrences", "release", "environment"],
    )
    op.create_table(
        "group_weeks",
        sa.Column("group_pk", sa.BigInteger(), nullable=False),
        sa.Column("week", sa.Date(), nullable=False),
        sa.Column("is_total", sa.Boolean(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("occurrences", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_group_weeks_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "group_pk", "week", "is_total", "release", "environment", name=op.f("pk_group_weeks")
        ),
    )
    op.create_index(
        "ix_group_weeks_total",
        "group_weeks",
        ["project_pk", "week"],
        unique=False,
        postgresql_include=["group_pk", "occurrences"],
        postgresql_where=sa.text("is_total"),
    )
    op.create_index(
        "ix_group_weeks_recent",
        "group_weeks",
        ["project_pk", "week"],
        unique=False,
        postgresql_include=["group_pk", "occurrences", "release", "environment"],
        postgresql_where=sa.text("NOT is_total"),
    )
    op.create_table(
        "pair_days",
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("evaluator_id", sa.Text(), nullable=False),
        sa.Column("metric_type", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("interactions", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_pair_days_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "project_pk", "evaluator_id", "metric_type", "day", name=op.f("pk_pair_days")
        ),
    )
    op.create_index(
        "ix_events_answers",
        "events",
        ["execution_pk"],
        unique=False,
        postgresql_where=sa.text("event_type = 'answer'"),
    )
    op.create_table(
        "group_changes",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("change_id", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_group_changes_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_group_changes")),
        sa.UniqueConstraint("change_id", name=op.f("uq_group_changes_change_id")),
    )
