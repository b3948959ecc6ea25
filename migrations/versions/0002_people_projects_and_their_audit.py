"""People sign in by password, projects have settings, and what admins do is audited."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "projects",
        sa.Column("time_zone", sa.Text(), server_default=sa.text("'UTC'"), nullable=False),
    )
    op.add_column("projects", sa.Column("trace_url_template", sa.Text(), nullable=True))
    op.add_column("projects", sa.Column("retention_days", sa.Integer(), nullable=True))
    op.add_column("api_keys", sa.Column("created_by", sa.Text(), nullable=True))
    op.add_column("users", sa.Column("password_hash", sa.Text(), nullable=True))
    op.create_index("ix_sessions_user_pk", "sessions", ["user_pk"], unique=False)
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"], unique=False)
    op.create_table(
        "sign_in_attempts",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name_hash", sa.LargeBinary(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_sign_in_attempts")),
    )
    op.create_index(
        "ix_sign_in_attempts_name_hash", "sign_in_attempts", ["name_hash", "at"], unique=False
    )
    op.create_index(
        "ix_sign_in_attempts_address", "sign_in_attempts", ["address", "at"], unique=False
    )
    op.create_index("ix_sign_in_attempts_at", "sign_in_attempts", ["at"], unique=False)
    op.create_table(
        "audit_log",
        sa.Column("pk", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_pk", sa.Integer(), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["project_pk"],
            ["projects.pk"],
            name=op.f("fk_audit_log_project_pk"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("pk", name=op.f("pk_audit_log")),
    )
    op.create_index(
        "ix_audit_log_recent",
        "audit_log",
        ["project_pk", sa.literal_column("at DESC"), sa.literal_column("pk DESC")],
        unique=False,
    )


def downgrade() -> None:
    op.drop_table("audit_log")
    op.drop_table("sign_in_attempts")
    op.drop_index("ix_sessions_expires_at", table_name="sessions")
    op.drop_index("ix_sessions_user_pk", table_name="sessions")
    op.drop_column("users", "password_hash")
    op.drop_column("api_keys", "created_by")
    op.drop_column("projects", "retention_days")
    op.drop_column("projects", "trace_url_template")
    op.drop_column("projects", "time_zone")
