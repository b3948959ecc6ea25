"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "timestamp", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("evaluator_id", sa.Text(), nullable=True),
        sa.Column("metric_type", sa.Text(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("higher_is_better", sa.Boolean(), nullable=True),
        sa.Column("scale_min", sa.Double(), nullable=True),
        sa.Column("scale_max", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("project_pk", "event_id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_execution_pk", "events", ["execution_pk"], unique=False)
    op.create_index(
        "ix_events_human_interventions",
        "events",
        ["project_pk", "timestamp"],
        unique=False,
        postgresql_where=sa.text("event_type = 'human_intervention'"),
    )
    op.create_table(
        "probes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_probes")),
    )
    op.create_table(
        "projects",
        sa.Column("pk", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
        sa.UniqueConstraint("project_id", name=op.f("uq_projects_project_id")),
    )
    op.create_table(
        "users",
        sa.Column("pk", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("pk", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_pk"], ["projects.pk"], name=op.f("fk_api_keys_project_pk"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
        sa.UniqueConstraint("key_id", name=op.f("uq_api_keys_key_id")),
    )
    op.create_table(
        "executions",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'started'"), nullable=False),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("posted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("patched_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("total_paused_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("pause_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_tokens_in", sa.BigInteger(), nullable=True),
        sa.Column("total_tokens_out", sa.BigInteger(), nullable=True),
        sa.Column("estimated_cost_usd", sa.Double(), nullable=True),
        sa.Column("sdk_language", sa.Text(), nullable=True),
        sa.Column("sdk_version", sa.Text(), nullable=True),
        sa.Column("tenant_id", sa.Text(), nullable=True),
        sa.Column("parent_execution_id", sa.Text(), nullable=True),
        sa.Column("release", sa.Text(), nullable=True),
        sa.Column("environment", sa.Text(), nullable=True),
        sa.Column("input_summary", sa.Text(), nullable=True),
        sa.Column("output_summary", sa.Text(), nullable=True),
        sa.Column("crash_signature", sa.Text(), nullable=True),
        sa.Column("last_event_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("detect_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("examined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("overflow_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("overflow_signatures", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_executions_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_executions")),
        sa.UniqueConstraint(
            "project_pk", "execution_id", name=op.f("uq_executions_project_pk_execution_id")
        ),
        postgresql_with={"fillfactor": 80},
    )
    op.create_index(
        "ix_executions_detect_due_at",
        "executions",
        ["detect_due_at"],
        unique=False,
        postgresql_where=sa.text("detect_due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_executions_project_pk_started_at",
        "executions",
        ["project_pk", sa.literal_column("started_at DESC"), sa.literal_column("pk DESC")],
        unique=False,
    )
    op.create_table(
        "failure_groups",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("failure_class", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("evaluator_id", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("metric_type", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'open'"), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("occurrence_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("regressed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("regressed_release", sa.Text(), nullable=True),
        sa.Column("state_changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state_changed_by", sa.Text(), nullable=True),
        sa.Column("state_reason", sa.Text(), nullable=True),
        sa.Column("ignored_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ignored_until_count", sa.BigInteger(), nullable=True),
        sa.Column("over_strict_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("over_strict_by", sa.Text(), nullable=True),
        sa.Column("over_strict_note", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_failure_groups_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_failure_groups")),
        sa.UniqueConstraint(
            "project_pk", "group_id", name=op.f("uq_failure_groups_project_pk_group_id")
        ),
    )
    op.create_index(
        "ix_failure_groups_ignored_until",
        "failure_groups",
        ["ignored_until"],
        unique=False,
        postgresql_where=sa.text("state = 'ignored'"),
    )
    op.create_index(
        "ix_failure_groups_last_seen",
        "failure_groups",
        ["project_pk", sa.literal_column("last_seen_at DESC"), sa.literal_column("pk DESC")],
        unique=False,
    )
    op.create_table(
        "memberships",
        sa.Column("user_pk", sa.Integer(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_memberships_project_pk"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_pk"], ["users.pk"], name=op.f("fk_memberships_user_pk"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_pk", "project_pk", name=op.f("pk_memberships")),
    )
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_pk", sa.Integer(), nullable=False),
        sa.Column("csrf_token", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_pk"], ["users.pk"], name=op.f("fk_sessions_user_pk"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_sessions")),
    )
    op.create_table(
        "sign_in_links",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_pk", sa.Integer(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_pk"], ["users.pk"], name=op.f("fk_sign_in_links_user_pk"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_sign_in_links")),
    )
    op.create_table(
        "spike_episodes",
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column(
            "opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_spike_episodes_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_pk", "rule", name=op.f("pk_spike_episodes")),
    )
    op.create_table(
        "thresholds",
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("detector", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("threshold_key", sa.Text(), nullable=False),
        sa.Column(
            "value", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "changed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_thresholds_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_pk", "detector", "version", name=op.f("pk_thresholds")),
    )
    op.create_index(
        "ix_thresholds_key",
        "thresholds",
        ["project_pk", "detector", "threshold_key", sa.literal_column("version DESC")],
        unique=False,
    )
    op.create_table(
        "group_history",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("group_pk", sa.BigInteger(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("release", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_pk"],
            ["failure_groups.pk"],
            name=op.f("fk_group_history_group_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_group_history")),
    )
    op.create_index("ix_group_history_group_pk", "group_history", ["group_pk", "pk"], unique=False)
    op.create_index(
        "uq_group_history_first_seen",
        "group_history",
        ["group_pk"],
        unique=True,
        postgresql_where=sa.text("kind = 'first_seen'"),
    )
    op.create_table(
        "halts",
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column(
            "requested_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("deliveries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_halts_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("execution_pk", name=op.f("pk_halts")),
    )
    op.create_table(
        "occurrences",
        sa.Column("group_pk", sa.BigInteger(), nullable=False),
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("threshold_version", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("release", sa.Text(), nullable=True),
        sa.Column("environment", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_occurrences_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["group_pk"],
            ["failure_groups.pk"],
            name=op.f("fk_occurrences_group_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("group_pk", "execution_pk", name=op.f("pk_occurrences")),
    )
    op.create_index("ix_occurrences_execution_pk", "occurrences", ["execution_pk"], unique=False)
    op.create_index(
        "ix_occurrences_recent",
        "occurrences",
        ["group_pk", sa.literal_column("occurred_at DESC"), sa.literal_column("execution_pk DESC")],
        unique=False,
    )
    op.create_index(
        "ix_occurrences_severity",
        "occurrences",
        ["group_pk", "severity"],
        unique=False,
        postgresql_where=sa.text("rule = 'failed_check'"),
    )
    op.create_table(
        "score_rollups",
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("evaluator_id", sa.Text(), nullable=False),
        sa.Column("metric_type", sa.Text(), nullable=False),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("measured", sa.Integer(), nullable=False),
        sa.Column("mean", sa.Double(), nullable=True),
        sa.Column("mean_exact", sa.Text(), nullable=True),
        sa.Column("lowest", sa.Double(), nullable=True),
        sa.Column("highest", sa.Double(), nullable=True),
        sa.Column("unmeasured", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("failed_rank", sa.Integer(), nullable=True),
        sa.Column("higher_is_better", sa.Boolean(), nullable=False),
        sa.Column("raw_out_of_range", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_score_rollups_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "execution_pk", "evaluator_id", "metric_type", name=op.f("pk_score_rollups")
        ),
    )
    op.create_index(
        "ix_score_rollups_pair",
        "score_rollups",
        ["project_pk", "evaluator_id", "metric_type", "execution_pk"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_index("ix_score_rollups_pair", table_name="score_rollups")
    op.drop_table("score_rollups")
    op.drop_index(
        "ix_occurrences_severity",
        table_name="occurrences",
        postgresql_where=sa.text("rule = 'failed_check'"),
    )
    op.drop_index("ix_occurrences_recent", table_name="occurrences")
    op.drop_index("ix_occurrences_execution_pk", table_name="occurrences")
    op.drop_table("occurrences")
    op.drop_table("halts")
    op.drop_index(
        "uq_group_history_first_seen",
        table_name="group_history",
        postgresql_where=sa.text("kind = 'first_seen'"),
    )
    op.drop_index("ix_group_history_group_pk", table_name="group_history")
    op.drop_table("group_history")
    op.drop_index("ix_thresholds_key", table_name="thresholds")
    op.drop_table("thresholds")
    op.drop_table("spike_episodes")
    op.drop_table("sign_in_links")
    op.drop_table("sessions")
    op.drop_table("memberships")
    op.drop_index("ix_failure_groups_last_seen", table_name="failure_groups")
    op.drop_index(
        "ix_failure_groups_ignored_until",
        table_name="failure_groups",
        postgresql_where=sa.text("state = 'ignored'"),
    )
    op.drop_table("failure_groups")
    op.drop_index("ix_executions_project_pk_started_at", table_name="executions")
    op.drop_index(
        "ix_executions_detect_due_at",
        table_name="executions",
        postgresql_where=sa.text("detect_due_at IS NOT NULL"),
    )
    op.drop_table("executions")
    op.drop_table("api_keys")
    op.drop_table("users")
    op.drop_table("projects")
    op.drop_table("probes")
    op.drop_index(
        "ix_events_human_interventions",
        table_name="events",
        postgresql_where=sa.text("event_type = 'human_intervention'"),
    )
    op.drop_index("ix_events_execution_pk", table_name="events")
    op.drop_table("events")
