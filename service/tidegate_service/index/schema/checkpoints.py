"""The index's tables of checkpoints (`core.ports.checkpoints`)."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from tidegate_service.index.schema.tables import bytes_order, metadata

__all__ = [
    "checkpoint_parts",
    "checkpoint_sidecars",
    "checkpoints",
    "metadata",
    "removed_domains",
    "tombstones",
]


def _of_table(name: str) -> ForeignKeyConstraint:
    # The release before forgets tables, and does not know of these.
    return ForeignKeyConstraint(
        ["table_id"], ["tables.id"], name=f"{name}_table_id_fkey", ondelete="CASCADE"
    )


tombstones = Table(
    "tombstones",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("path", bytes_order(), nullable=False),
    Column("dv_id", bytes_order(), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("deletion_timestamp", BigInteger, nullable=False),
    Column("action", LargeBinary, nullable=False),
    PrimaryKeyConstraint("table_id", "path", "dv_id", name="tombstones_pkey"),
    _of_table("tombstones"),
)
"""Files that were removed before the version that the index starts at, which its checkpoint names:
until they may be deleted, every later checkpoint names them, too. `path` and `dv_id` as in `files`;
`action` is the log line of the remove, `version` where the index starts."""

removed_domains = Table(
    "removed_domains",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("domain", bytes_order(), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("action", LargeBinary, nullable=False),
    Column("removed_version", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_id", "domain", name="removed_domains_pkey"),
    # No foreign key, as of `app_transactions`.
    Index("removed_domains_version_idx", "table_id", "removed_version"),
)
"""Domains that were removed, each with the last action that set the domain: snapshots from
`version` to before `removed_version` have that action. A row of the key `sha256:`, which no domain
has, says that removals up to its versions are not known."""

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("shape", Text, nullable=False),
    PrimaryKeyConstraint("table_id", name="checkpoints_pkey"),
    _of_table("checkpoints"),
)
"""The newest checkpoint that the service wrote of each table."""

checkpoint_sidecars = Table(
    "checkpoint_sidecars",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("after_path", bytes_order(), nullable=False),
    Column("after_dv_id", bytes_order(), nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
    Column("num_adds", BigInteger, nullable=False),
    Column("num_removes", BigInteger, nullable=False),
    Column("digest", BigInteger),
    PrimaryKeyConstraint("table_id", "after_path", "after_dv_id", name="checkpoint_sidecars_pkey"),
    _of_table("checkpoint_sidecars"),
)
"""The sidecars of that checkpoint, each with the key in `files` behind which its files begin;
`modified_at` in ms. The release before writes no `digest`."""

checkpoint_parts = Table(
    "checkpoint_parts",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("num_adds", BigInteger, nullable=False),
    Column("num_removes", BigInteger, nullable=False),
    Column("through", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_id", "number", name="checkpoint_parts_pkey"),
    _of_table("checkpoint_parts"),
)
"""The parts of that checkpoint that the next one may take over, where `version` is that
checkpoint's: the release before leaves those of an earlier one here. `through` is the last version
whose files a part and those before it hold."""
