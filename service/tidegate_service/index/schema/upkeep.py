"""The index's tables of how the upkeep of tables stands (`core.ports.upkeep.upkeep`), and
of which ones are being forgotten (`core.ports.upkeep.forgettings`).

Declared on the same metadata as the rest.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)

from tidegate_service.index.schema.forgotten import metadata

__all__ = ["forgettings", "hooks", "metadata", "table_upkeep"]

table_upkeep = Table(
    "table_upkeep",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("kind", Text(collation="C"), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("done_at", DateTime(timezone=True)),
    Column("due_version", BigInteger),
    Column("due_at", DateTime(timezone=True)),
    Column("failures", BigInteger, nullable=False, server_default=text("0")),
    Column("trouble", Text),
    Column("claimed_by", Text),
    Column("claimed_until", DateTime(timezone=True)),
    PrimaryKeyConstraint("table_id", "kind", name="table_upkeep_pkey"),
    # The release before forgets tables, and does not know of it.
    ForeignKeyConstraint(
        ["table_id"], ["tables.id"], name="table_upkeep_table_id_fkey", ondelete="CASCADE"
    ),
    CheckConstraint("version >= -1", name="table_upkeep_version_check"),
    CheckConstraint(
        "(claimed_by IS NULL) = (claimed_until IS NULL)", name="table_upkeep_claimed_check"
    ),
    # Every run updates its row: with room on the page, no index is written.
    postgresql_with={"fillfactor": 50},
)
"""One row a table and kind of upkeep, from the first time on that it was begun. It is due once the
table is published up to `due_version`, at `due_at`, or when the table's epoch is another one:
`version` then says nothing. While it is claimed, nobody else begins it."""

hooks = Table(
    "hooks",
    metadata,
    Column("name", Text(collation="C"), nullable=False),
    Column("enabled_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("name", name="hooks_pkey"),
)
"""Since when each hook is known. How far it is with a table is a row of `table_upkeep`."""

forgettings = Table(
    "forgettings",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("principal", Text, nullable=False),
    Column("request_id", Text),
    Column("asked_at", DateTime(timezone=True), nullable=False),
    Column("failures", BigInteger, nullable=False, server_default=text("0")),
    Column("claimed_by", Text, nullable=False),
    Column("claimed_until", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("table_id", name="forgettings_pkey"),
    # It goes with what it is about, in that transaction; the release before does not know of it.
    ForeignKeyConstraint(
        ["table_id"], ["tables.id"], name="forgettings_table_id_fkey", ondelete="CASCADE"
    ),
)
"""Tables that somebody asked to have forgotten, for as long as nobody has had an answer. Where the
claim has ended, whoever worked on it has, too, and any instance goes on."""
