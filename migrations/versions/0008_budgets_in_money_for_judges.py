"""A project can say what a call of its judge may cost, and limit what a day and a month may.

The index by which a month is summed up carries the costs, so that a hundred thousand rows need not be fetched for each
call. Nothing that older servers read or write changes: they leave the new columns empty, and heed no budget in money.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_BY_TIME = "ix_judge_calls_started_at"
_COLUMNS = ("cost_per_call_micros", "cost_per_day_micros", "cost_per_month_micros")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("judge_settings", sa.Column(name, sa.BigInteger(), nullable=True))
    _index_by_time(["reserved_cost_micros", "actual_cost_micros"])


def downgrade() -> None:
    _index_by_time([])
    for name in reversed(_COLUMNS):
        op.drop_column("judge_settings", name)


def _index_by_time(include: list[str]) -> None:
    op.drop_index(_BY_TIME, table_name="judge_calls")
    op.create_index(
        _BY_TIME, "judge_calls", ["project_pk", "started_at"], postgresql_include=include
    )
