"""Which parts of a table's newest checkpoint the next one may take over.

The release before does not know of them, and writes its checkpoints whole; those that it leaves
here are of an earlier version than the newest checkpoint, and count for nothing.

Revision: 0018, after 0017
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "checkpoint_parts",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("num_adds", sa.BigInteger(), nullable=False),
        sa.Column("num_removes", sa.BigInteger(), nullable=False),
        sa.Column("through", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "number", name="checkpoint_parts_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name="checkpoint_parts_table_id_fkey", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("checkpoint_parts")
