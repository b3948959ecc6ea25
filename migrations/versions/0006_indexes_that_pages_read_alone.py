"""A group's page reads indexes alone: sums over a thousand executions no longer fetch a thousand rows that lie apart.

Assessments say how many passages an answer had; nobody knows it of older ones, which is null.

Built beside the running server; an index that a broken attempt left behind is dropped first.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_PAIR = ["project_pk", "evaluator_id", "metric_type", "execution_pk"]
_MEANS = ["mean", "measured", "failed", "higher_is_better", "raw_out_of_range"]
_ASSESSED = "uq_assessments_execution_pk_answer_id_evaluator"
_ANSWER = ["execution_pk", "answer_id", "evaluator"]
_SUMS = ["outcome", "quantities", "unmatched", "ambiguous", "citations", "unresolved", "passages"]


def upgrade() -> None:
    op.add_column("assessments", sa.Column("passages", sa.Integer(), nullable=True))
    with op.get_context().autocommit_block():
        _build("ix_score_rollups_means", "score_rollups", _PAIR, _MEANS)
        _drop("ix_score_rollups_pair", "score_rollups")
        _build("ix_assessments_sums", "assessments", _ANSWER, _SUMS, unique=True)
    _replace_constraint()


def downgrade() -> None:
    with op.get_context().autocommit_block():
        _build("ix_score_rollups_pair", "score_rollups", _PAIR)
        _drop("ix_score_rollups_means", "score_rollups")
        _build("ix_assessments_sums", "assessments", _ANSWER, unique=True)
    _replace_constraint()
    op.drop_column("assessments", "passages")


def _build(
    name: str,
    table: str,
    columns: list[str],
    include: list[str] | None = None,
    *,
    unique: bool = False,
) -> None:
    _drop(name, table)
    op.create_index(
        name,
        table,
        columns,
        unique=unique,
        postgresql_include=include,
        postgresql_concurrently=True,
    )


def _drop(name: str, table: str) -> None:
    op.drop_index(name, table_name=table, if_exists=True, postgresql_concurrently=True)


def _replace_constraint() -> None:
    # The constraint takes the index over, with its own name: no second building, and a lock of a moment.
    op.execute(
        f"ALTER TABLE assessments DROP CONSTRAINT {_ASSESSED},"
        f" ADD CONSTRAINT {_ASSESSED} UNIQUE USING INDEX ix_assessments_sums"
    )
