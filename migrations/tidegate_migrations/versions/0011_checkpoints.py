"""Checkpoints: when files were removed, tombstones from before the index, and what was written.

The release before closes rows without a `deletion_timestamp`, and drops the tombstones of the
checkpoints that it registers tables from; a rebuild reads them.

Revision: 0011, after 0010
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    # Without a default, so no row is touched.
    op.add_column("files", sa.Column("deletion_timestamp", sa.BigInteger()))
    op.create_table(
        "tombstones",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(collation="C"), nullable=False),
        sa.Column("dv_id", sa.Text(collation="C"), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("deletion_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "path", "dv_id", name="tombstones_pkey"),
        _of_table("tombstones"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("shape", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", name="checkpoints_pkey"),
        _of_table("checkpoints"),
    )
    op.create_table(
        "checkpoint_sidecars",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("after_path", sa.Text(collation="C"), nullable=False),
        sa.Column("after_dv_id", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.Column("num_adds", sa.BigInteger(), nullable=False),
        sa.Column("num_removes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "table_id", "after_path", "after_dv_id", name="checkpoint_sidecars_pkey"
        ),
        _of_table("checkpoint_sidecars"),
    )
    # Reads the table once, and sorts nothing.
    op.create_index(
        "files_versions_idx",
        "files",
        ["added_version", "removed_version"],
        postgresql_using="brin",
        postgresql_with={"autosummarize": "on"},
    )


def downgrade() -> None:
    op.drop_index("files_versions_idx", "files")
    op.drop_table("checkpoint_sidecars")
    op.drop_table("checkpoints")
    op.drop_table("tombstones")
    op.drop_column("files", "deletion_timestamp")


def _of_table(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["table_id"], ["tables.id"], name=f"{name}_table_id_fkey", ondelete="CASCADE"
    )
