"""What is kept of forgotten tables: their heads, what their transaction ids landed as, tombstones.

The release before forgets a table without keeping anything of it: stop its instances before
forgetting one (docs/operations.md).

Revision: 0008, after 0007
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "forgotten_tables",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("location", sa.Text(collation="C"), nullable=False),
        sa.Column("catalog_managed", sa.Boolean(), nullable=False),
        sa.Column("metadata_ids", sa.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.Column("latest_version", sa.BigInteger(), nullable=False),
        sa.Column("content_sha256", sa.Text()),
        sa.Column(
            "forgotten_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.clock_timestamp(),
        ),
        sa.PrimaryKeyConstraint("id", name="forgotten_tables_pkey"),
    )
    op.create_index("forgotten_tables_location_idx", "forgotten_tables", ["location"])
    op.create_table(
        "forgotten_commits",
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
        sa.PrimaryKeyConstraint("table_id", "transaction_id", name="forgotten_commits_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["forgotten_tables.id"], name="forgotten_commits_table_id_fkey"
        ),
    )
    op.create_table(
        "forgotten_aborts",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("transaction_id", sa.Text(collation="C"), nullable=False),
        sa.Column("aborted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("unfenced_after", sa.BigInteger()),
        sa.PrimaryKeyConstraint("table_id", "transaction_id", name="forgotten_aborts_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["forgotten_tables.id"], name="forgotten_aborts_table_id_fkey"
        ),
    )


def downgrade() -> None:
    op.drop_table("forgotten_aborts")
    op.drop_table("forgotten_commits")
    op.drop_table("forgotten_tables")
