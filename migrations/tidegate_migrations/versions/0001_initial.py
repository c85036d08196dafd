"""The commit index.

Revision: 0001, the first
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    _tables()
    _commits()
    _files()
    _by_version("app_transactions", "app_id")
    _by_version("domain_metadata", "domain")
    _metadata_versions()
    _aborted_transactions()


def downgrade() -> None:
    for table in (
        "aborted_transactions",
        "metadata_versions",
        "domain_metadata",
        "app_transactions",
        "files",
        "commits",
        "tables",
    ):
        op.drop_table(table)


def _tables() -> None:
    op.create_table(
        "tables",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("location", sa.Text(collation="C"), nullable=False),
        sa.Column("catalog_managed", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("state_reason", sa.Text()),
        sa.Column("latest_version", sa.BigInteger(), nullable=False),
        sa.Column("published_version", sa.BigInteger(), nullable=False),
        sa.Column("latest_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("protocol", sa.LargeBinary()),
        sa.Column("metadata", sa.LargeBinary()),
        sa.Column("num_files", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.Numeric(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.text("now()"),
        ),
        sa.PrimaryKeyConstraint("id", name="tables_pkey"),
        sa.UniqueConstraint("location", name="tables_location_key"),
        sa.CheckConstraint("state IN ('active', 'quarantined')", name="tables_state_check"),
        sa.CheckConstraint(
            "(state = 'quarantined') = (state_reason IS NOT NULL)",
            name="tables_state_reason_check",
        ),
        sa.CheckConstraint("latest_version >= -1", name="tables_latest_version_check"),
        sa.CheckConstraint(
            "published_version BETWEEN -1 AND latest_version",
            name="tables_published_version_check",
        ),
        sa.CheckConstraint(
            "catalog_managed OR published_version = latest_version",
            name="tables_plain_published_check",
        ),
        sa.CheckConstraint(
            "latest_version = -1 OR (protocol IS NOT NULL AND metadata IS NOT NULL)",
            name="tables_head_check",
        ),
        sa.CheckConstraint("num_files >= 0", name="tables_num_files_check"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index("tables_name_key", "tables", [sa.text("lower(name)")], unique=True)


def _commits() -> None:
    op.create_table(
        "commits",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("previous_version", sa.BigInteger()),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("transaction_id", sa.Text(collation="C")),
        sa.Column("body_digest", sa.Text()),
        sa.Column("content_sha256", sa.Text(), nullable=False),
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
        sa.Column("details", postgresql.JSON(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("content_held", sa.Boolean(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "version", name="commits_pkey"),
        sa.UniqueConstraint("table_id", "transaction_id", name="commits_transaction_id_key"),
        sa.UniqueConstraint("table_id", "previous_version", name="commits_previous_version_key"),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name="commits_table_id_fkey"),
        sa.ForeignKeyConstraint(
            ["table_id", "previous_version"],
            ["commits.table_id", "commits.version"],
            name="commits_previous_version_fkey",
        ),
        sa.CheckConstraint("version >= 0", name="commits_version_check"),
        sa.CheckConstraint(
            "previous_version IS NOT DISTINCT FROM NULLIF(version - 1, -1)",
            name="commits_previous_version_check",
        ),
        sa.CheckConstraint("published OR content_held", name="commits_content_held_check"),
    )
    op.execute("ALTER TABLE commits ALTER COLUMN content SET STORAGE EXTERNAL")
    op.create_index(
        "commits_held_idx",
        "commits",
        ["table_id", "version"],
        postgresql_where=sa.text("content_held"),
    )


def _files() -> None:
    op.create_table(
        "files",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("path", sa.Text(collation="C"), nullable=False),
        sa.Column("dv_id", sa.Text(collation="C"), nullable=False),
        sa.Column("added_version", sa.BigInteger(), nullable=False),
        sa.Column("removed_version", sa.BigInteger()),
        sa.Column("size", sa.Numeric(), nullable=False),
        sa.Column("partition_values", postgresql.JSON(), nullable=False),
        sa.Column("stats", sa.Text()),
        sa.Column("action", sa.LargeBinary(), nullable=False),
        sa.UniqueConstraint(
            "table_id",
            "path",
            "dv_id",
            "removed_version",
            name="files_key",
            postgresql_nulls_not_distinct=True,
        ),
        sa.CheckConstraint("removed_version > added_version", name="files_removed_version_check"),
    )


def _by_version(name: str, key: str) -> None:
    op.create_table(
        name,
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column(key, sa.Text(collation="C"), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", key, name=f"{name}_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id", "version"],
            ["commits.table_id", "commits.version"],
            name=f"{name}_version_fkey",
        ),
    )


def _metadata_versions() -> None:
    op.create_table(
        "metadata_versions",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("protocol", sa.LargeBinary(), nullable=False),
        sa.Column("metadata", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "version", name="metadata_versions_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id", "version"],
            ["commits.table_id", "commits.version"],
            name="metadata_versions_version_fkey",
        ),
    )


def _aborted_transactions() -> None:
    op.create_table(
        "aborted_transactions",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("transaction_id", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "aborted_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.text("now()"),
        ),
        sa.PrimaryKeyConstraint("table_id", "transaction_id", name="aborted_transactions_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name="aborted_transactions_table_id_fkey"
        ),
    )
