"""Judge calls know the answer they were reserved for, and what the judge's endpoint said; labels who gave them.

Nothing that older servers read or write changes: they leave the new columns empty.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("judge_calls", sa.Column("http_status", sa.Integer(), nullable=True))
    op.add_column("judge_calls", sa.Column("execution_id", sa.Text(), nullable=True))
    op.add_column("judge_calls", sa.Column("answer_id", sa.Text(), nullable=True))
    op.add_column("judge_settings", sa.Column("last_error_status", sa.Integer(), nullable=True))
    op.add_column("answer_labels", sa.Column("person", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("answer_labels", "person")
    op.drop_column("judge_settings", "last_error_status")
    op.drop_column("judge_calls", "answer_id")
    op.drop_column("judge_calls", "execution_id")
    op.drop_column("judge_calls", "http_status")
