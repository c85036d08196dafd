"""The ids of metadata that tables had at versions which their indexes do not hold any more.

The release before writes none: what it makes anew from a checkpoint has the later ids alone.

Revision: 0010, after 0009
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "past_metadata_ids",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("metadata_id", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "metadata_id", name="past_metadata_ids_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"],
            ["tables.id"],
            name="past_metadata_ids_table_id_fkey",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    op.drop_table("past_metadata_ids")
