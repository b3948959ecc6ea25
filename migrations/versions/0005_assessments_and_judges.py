"""Answers are assessed, judged within a budget, and labelled by people.

Nothing that older servers read or write changes: they go on beside it.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "judge_calls",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("cache_key", sa.Text(), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reserved_cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("actual_cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("exception_type", sa.Text(), nullable=True),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settlement", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_judge_calls_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_judge_calls")),
        sa.UniqueConstraint("call_id", name=op.f("uq_judge_calls_call_id")),
        sa.UniqueConstraint(
            "project_pk", "cache_key", name=op.f("uq_judge_calls_project_pk_cache_key")
        ),
    )
    op.create_index(
        "ix_judge_calls_running",
        "judge_calls",
        ["started_at"],
        unique=False,
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_index(
        "ix_judge_calls_started_at", "judge_calls", ["project_pk", "started_at"], unique=False
    )
    op.create_table(
        "judge_settings",
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("is_on", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("key_ciphertext", sa.LargeBinary(), nullable=True),
        sa.Column("key_hint", sa.Text(), nullable=True),
        sa.Column("calls_per_day", sa.Integer(), nullable=False),
        sa.Column("calls_per_month", sa.Integer(), nullable=False),
        sa.Column("concurrency", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("answers", sa.Text(), server_default=sa.text("'failing'"), nullable=False),
        sa.Column("sample_percent", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("min_correctness", sa.Integer(), server_default=sa.text("7"), nullable=False),
        sa.Column(
            "changed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ask_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("not_queued", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_judge_settings_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_pk", name=op.f("pk_judge_settings")),
    )
    op.create_table(
        "answer_labels",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("answer_id", sa.Text(), nullable=False),
        sa.Column("answer_digest", sa.LargeBinary(), nullable=False),
        sa.Column("label_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_answer_labels_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_answer_labels_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_answer_labels")),
        sa.UniqueConstraint("label_id", name=op.f("uq_answer_labels_label_id")),
    )
    op.create_index(
        "ix_answer_labels_execution_pk",
        "answer_labels",
        ["execution_pk", "answer_id", sa.literal_column("pk DESC")],
        unique=False,
    )
    op.create_index(
        "ix_answer_labels_project_pk", "answer_labels", ["project_pk", "pk"], unique=False
    )
    op.create_table(
        "assessment_work",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column(
            "due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_assessment_work_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_assessment_work")),
    )
    op.create_index("ix_assessment_work_due_at", "assessment_work", ["due_at"], unique=False)
    op.create_index(
        "ix_assessment_work_execution_pk", "assessment_work", ["execution_pk", "pk"], unique=False
    )
    op.create_table(
        "assessments",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("answer_id", sa.Text(), nullable=False),
        sa.Column("answer_digest", sa.LargeBinary(), nullable=False),
        sa.Column("evaluator", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "content", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("quantities", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("unmatched", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("ambiguous", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("citations", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("unresolved", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "assessed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_assessments_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_assessments_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_assessments")),
        sa.UniqueConstraint(
            "execution_pk",
            "answer_id",
            "evaluator",
            name=op.f("uq_assessments_execution_pk_answer_id_evaluator"),
        ),
    )
    op.create_index(
        "ix_assessments_recent",
        "assessments",
        ["project_pk", sa.literal_column("assessed_at DESC")],
        unique=False,
    )
    op.create_table(
        "judge_work",
        sa.Column("execution_pk", sa.BigInteger(), nullable=False),
        sa.Column("answer_id", sa.Text(), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column(
            "due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cache_key", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["execution_pk"],
            ["executions.pk"],
            name=op.f("fk_judge_work_execution_pk"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_judge_work_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("execution_pk", "answer_id", name=op.f("pk_judge_work")),
    )
    op.create_index("ix_judge_work_due_at", "judge_work", ["project_pk", "due_at"], unique=False)
    op.create_index(
        "ix_judge_work_cache_key",
        "judge_work",
        ["project_pk", "cache_key"],
        unique=False,
        postgresql_where=sa.text("cache_key IS NOT NULL"),
    )
    op.add_column(
        "projects",
        sa.Column("assesses_all", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )


def downgrade() -> None:
    op.drop_column("projects", "assesses_all")
    op.drop_index(
        "ix_judge_work_cache_key",
        table_name="judge_work",
        postgresql_where=sa.text("cache_key IS NOT NULL"),
    )
    op.drop_index("ix_judge_work_due_at", table_name="judge_work")
    op.drop_table("judge_work")
    op.drop_index("ix_assessments_recent", table_name="assessments")
    op.drop_table("assessments")
    op.drop_index("ix_assessment_work_execution_pk", table_name="assessment_work")
    op.drop_index("ix_assessment_work_due_at", table_name="assessment_work")
    op.drop_table("assessment_work")
    op.drop_index("ix_answer_labels_project_pk", table_name="answer_labels")
    op.drop_index("ix_answer_labels_execution_pk", table_name="answer_labels")
    op.drop_table("answer_labels")
    op.drop_table("judge_settings")
    op.drop_index("ix_judge_calls_started_at", table_name="judge_calls")
    op.drop_index(
        "ix_judge_calls_running",
        table_name="judge_calls",
        postgresql_where=sa.text("status = 'running'"),
    )
    op.drop_table("judge_calls")
