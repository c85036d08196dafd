"""What transaction ids landed as, where a rebuilt index has no such version any more.

Revision: 0004, after 0003
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "past_commits",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("transaction_id", sa.Text(collation="C"), nullable=False),
        sa.Column("body_digest", sa.Text()),
        sa.Column("content_sha256", sa.Text()),
        sa.Column("isolation_level", sa.Text()),
        sa.Column("is_blind_append", sa.Boolean(), nullable=False),
        sa.Column("read_version", sa.BigInteger()),
        sa.Column("rebased_over", sa.BigInteger(), nullable=False),
        sa.Column("is_foreign", sa.Boolean(), nullable=False),
        sa.Column("num_added_files", sa.BigInteger(), nullable=False),
        sa.Column("num_removed_files", sa.BigInteger(), nullable=False),
        sa.Column("bytes_added", sa.Numeric(), nullable=False),
        sa.Column("bytes_removed", sa.Numeric(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("principal", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.PrimaryKeyConstraint("table_id", "transaction_id", name="past_commits_pkey"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="past_commits_table_id_fkey"),
    )


def downgrade() -> None:
    op.drop_table("past_commits")
