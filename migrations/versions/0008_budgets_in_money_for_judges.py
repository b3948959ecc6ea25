"""A project can say what a call of its judge may cost, and limit what a day and a month may.

Nothing that older servers read or write changes: they leave the new columns empty, and heed no budget in money.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COLUMNS = ("cost_per_call_micros", "cost_per_day_micros", "cost_per_month_micros")


def upgrade() -> None:
    for name in _COLUMNS:
        op.add_column("judge_settings", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("judge_settings", name)
