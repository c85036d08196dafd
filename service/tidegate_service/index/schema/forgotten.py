"""The index's tables of what is kept of forgotten tables (`core.ports.forgotten`)."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY

from tidegate_service.index.schema.checkpoints import metadata
from tidegate_service.index.schema.tables import bytes_order, past_commits

__all__ = ["forgotten_aborts", "forgotten_commits", "forgotten_tables", "metadata"]


forgotten_tables = Table(
    "forgotten_tables",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("name", bytes_order(), nullable=False),
    Column("location", bytes_order(), nullable=False),
    Column("catalog_managed", Boolean, nullable=False),
    Column("metadata_ids", ARRAY(bytes_order()), nullable=False),
    Column("latest_version", BigInteger, nullable=False),
    Column("content_sha256", Text),
    Column(
        "forgotten_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.clock_timestamp(),
    ),
    PrimaryKeyConstraint("id", name="forgotten_tables_pkey"),
)
"""One row a forgotten table, under the id that it had. `metadata_ids` are all the ids that
its metaData is known to have had, as `keys.key` stores them; `content_sha256` is of its latest
version's bytes."""

Index("forgotten_tables_location_idx", forgotten_tables.c.location)
Index("forgotten_tables_folded_location_idx", func.lower(forgotten_tables.c.location))

forgotten_commits = Table(
    "forgotten_commits",
    metadata,
    *(Column(column.name, column.type, nullable=column.nullable) for column in past_commits.c),
    PrimaryKeyConstraint("table_id", "transaction_id", name="forgotten_commits_pkey"),
    ForeignKeyConstraint(
        ["table_id"], ["forgotten_tables.id"], name="forgotten_commits_table_id_fkey"
    ),
)
"""What its transaction ids landed as, as in `past_commits`."""

forgotten_aborts = Table(
    "forgotten_aborts",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("transaction_id", bytes_order(), nullable=False),
    Column("aborted_at", DateTime(timezone=True), nullable=False),
    Column("unfenced_after", BigInteger),
    PrimaryKeyConstraint("table_id", "transaction_id", name="forgotten_aborts_pkey"),
    ForeignKeyConstraint(
        ["table_id"], ["forgotten_tables.id"], name="forgotten_aborts_table_id_fkey"
    ),
)
"""Its tombstones, as in `aborted_transactions`."""
