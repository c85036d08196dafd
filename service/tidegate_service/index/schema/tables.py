"""The index's tables, with the constraints that turn a bug into an error.

Migrations create exactly this; a test compares the two. Text that is compared has the
collation "C": order and equality then mean bytes, on every server. Bytes that have to come
back as they went in (actions, contents) are `bytea`; jsonb would reorder and rewrite them.
"""

from decimal import Decimal

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    event,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSON

MINIMUM_SERVER_VERSION = 150000
"""As `server_version_num`: 15 brought `UNIQUE NULLS NOT DISTINCT`, which `files` rests on."""

metadata = MetaData()

# What errors are told apart by (`failures.py`), so it has a name in code.
TABLES_NAME_KEY = "tables_name_key"
TABLES_LOCATION_KEY = "tables_location_key"


def bytes_order() -> Text:
    return Text(collation="C")


def _byte_count() -> Numeric[Decimal]:
    """Sizes are what writers claim; the sum of a few absurd ones would overflow a bigint."""
    return Numeric()


tables = Table(
    "tables",
    metadata,
    Column("id", Uuid, nullable=False),
    Column("name", bytes_order(), nullable=False),
    Column("location", bytes_order(), nullable=False),
    Column("catalog_managed", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("state_reason", Text),
    Column("latest_version", BigInteger, nullable=False),
    Column("published_version", BigInteger, nullable=False),
    Column("latest_timestamp", BigInteger, nullable=False),
    Column("protocol", LargeBinary),
    Column("metadata", LargeBinary),
    Column("num_files", BigInteger, nullable=False),
    Column("size_bytes", _byte_count(), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("first_version", BigInteger, nullable=False, server_default=text("0")),
    Column("epoch", BigInteger, nullable=False, server_default=text("0")),
    Column("quarantine_cause", Text),
    PrimaryKeyConstraint("id", name="tables_pkey"),
    UniqueConstraint("location", name=TABLES_LOCATION_KEY),
    CheckConstraint("state IN ('active', 'quarantined')", name="tables_state_check"),
    CheckConstraint(
        "(state = 'quarantined') = (state_reason IS NOT NULL)", name="tables_state_reason_check"
    ),
    CheckConstraint(
        "quarantine_cause IN ('log', 'set-back', 'given-up')", name="tables_quarantine_cause_check"
    ),
    CheckConstraint("latest_version >= -1", name="tables_latest_version_check"),
    CheckConstraint(
        "published_version BETWEEN -1 AND latest_version", name="tables_published_version_check"
    ),
    # A plain table's commit point is its file in the log.
    CheckConstraint(
        "catalog_managed OR published_version = latest_version", name="tables_plain_published_check"
    ),
    CheckConstraint(
        "latest_version = -1 OR (protocol IS NOT NULL AND metadata IS NOT NULL)",
        name="tables_head_check",
    ),
    CheckConstraint("num_files >= 0", name="tables_num_files_check"),
    CheckConstraint(
        "first_version BETWEEN 0 AND greatest(latest_version, 0)",
        name="tables_first_version_check",
    ),
    # Every commit updates its table's row: with room on the page and no index over what moves,
    # the new row stays beside the old one and no index is written.
    postgresql_with={"fillfactor": 50},
)
"""One row a table: its head. The row's lock is the table's commit lock. `first_version` is the
one that the index starts at: 0, where the log of a registered table can be read from, or where the
index was cut after its log was cleaned up. `epoch` moves on whenever the index of the table is made
anew: what is known of its versions from before holds no more."""

Index(TABLES_NAME_KEY, func.lower(tables.c.name), unique=True)
Index("tables_folded_location_idx", func.lower(tables.c.location))

commits = Table(
    "commits",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("previous_version", BigInteger),
    Column("timestamp", BigInteger, nullable=False),
    Column("transaction_id", bytes_order()),
    Column("body_digest", Text),
    Column("content_sha256", Text),
    Column("isolation_level", Text),
    Column("is_blind_append", Boolean, nullable=False),
    Column("read_version", BigInteger),
    Column("rebased_over", BigInteger, nullable=False),
    Column("is_foreign", Boolean, nullable=False),
    Column("num_added_files", BigInteger, nullable=False),
    Column("num_removed_files", BigInteger, nullable=False),
    Column("bytes_added", _byte_count(), nullable=False),
    Column("bytes_removed", _byte_count(), nullable=False),
    Column("attempts", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    # json, not jsonb: what writers put into commitInfo may hold U+0000, numbers beyond any
    # type and keys whose order they care for.
    Column("details", JSON, nullable=False),
    Column("published", Boolean, nullable=False),
    Column("content_held", Boolean, nullable=False),
    Column("content", LargeBinary),
    Column("principal", Text),
    Column("request_id", Text),
    PrimaryKeyConstraint("table_id", "version", name="commits_pkey"),
    UniqueConstraint("table_id", "transaction_id", name="commits_transaction_id_key"),
    # Also what the self reference is checked by when a table is forgotten.
    UniqueConstraint("table_id", "previous_version", name="commits_previous_version_key"),
    # No reference to `tables`: its check would look for the row among all its dead copies, and
    # whoever inserts a commit holds the row's lock.
    ForeignKeyConstraint(
        ["table_id", "previous_version"],
        ["commits.table_id", "commits.version"],
        name="commits_previous_version_fkey",
    ),
    CheckConstraint("version >= 0", name="commits_version_check"),
    # NULL at the base, of which a table has one, so the reference above leaves no gap.
    CheckConstraint("previous_version = version - 1", name="commits_previous_version_check"),
    # A base whose state came from a checkpoint may have no commit file any more.
    CheckConstraint(
        "(content IS NULL) = (content_sha256 IS NULL) "
        "AND (content IS NOT NULL OR previous_version IS NULL)",
        name="commits_content_check",
    ),
    CheckConstraint("published OR content_held", name="commits_content_held_check"),
)
"""One row a version. `content` is the zstd-compressed bytes of `<version>.json`.

It serves two masters with two life times: publishing and reading a version need it until the
version lies in storage (`content_held`, which can only be given up once `published`), winners
are decoded from it for as long as the index reaches back to the version.

The base, a table's first row, has no `previous_version`: it is `first_version` of its table.

`principal` and `request_id` say who made the commit by which request, as rows of the audit
trail do of other changes; both are NULL for what was written past the service.
"""

past_commits = Table(
    "past_commits",
    metadata,
    *(
        Column(
            column.name,
            column.type,
            nullable=column.nullable and column.name != "transaction_id",
        )
        for column in commits.c
        if column.name not in ("previous_version", "published", "content_held", "content")
    ),
    PrimaryKeyConstraint("table_id", "transaction_id", name="past_commits_pkey"),
)
"""What transaction ids landed as in versions that the index does not hold: ids are kept for ever.
`details` is empty, but for a long transaction id, where the version expired
(`index/upkeep/expired_versions.py`), and whole where a rebuild found a log without it."""

# One base a table.
Index(
    "commits_base_key",
    commits.c.table_id,
    unique=True,
    postgresql_where=commits.c.previous_version.is_(None),
)

# What waits for publishing, and what may be forgotten after it.
Index(
    "commits_held_idx",
    commits.c.table_id,
    commits.c.version,
    postgresql_where=commits.c.content_held,
)

files = Table(
    "files",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("path", bytes_order(), nullable=False),
    Column("dv_id", bytes_order(), nullable=False),
    Column("added_version", BigInteger, nullable=False),
    Column("removed_version", BigInteger),
    Column("size", _byte_count(), nullable=False),
    Column("partition_values", JSON, nullable=False),
    Column("stats", Text),
    Column("action", LargeBinary, nullable=False),
    Column("partition", bytes_order()),
    Column("deletion_timestamp", BigInteger),
    # One index does it all but for scans of partitions: at most one live row a file (NULLs are
    # equal here), the look-up of that row, and the order that snapshots are read in. No foreign
    # key: its check would cost more than the row, and rows are only written under the table's lock.
    UniqueConstraint(
        "table_id",
        "path",
        "dv_id",
        "removed_version",
        name="files_key",
        postgresql_nulls_not_distinct=True,
    ),
    CheckConstraint("removed_version > added_version", name="files_removed_version_check"),
)
"""One row per added file; live while `removed_version` is NULL. `path` is the decoded path,
`dv_id` the deletion vector's id ('' for none), both as `keys.key` stores them; `action` is the
whole log line of the add, in which its statistics are read: `stats`, where earlier releases put
them a second time, is NULL. A file that is added again while it is live gets a new row. `partition`
is `partitions.partition_key` of the partition values; NULL where that is not known, as in rows of
the release before: such files are looked at one by one. `deletion_timestamp` (ms) is of the remove
that closed the row; NULL where it has none, and of rows that the release before closed: the
version's own timestamp then stands for it."""

# Files without partitions do not pay for it.
Index(
    "files_partition_idx",
    files.c.table_id,
    files.c.partition,
    files.c.path,
    files.c.dv_id,
    postgresql_where=text("partition IS DISTINCT FROM ''"),
)

# For the files that some versions changed, among very many. It costs a commit next to nothing: an
# entry is of many pages, and rows of one time lie together.
Index(
    "files_versions_idx",
    files.c.added_version,
    files.c.removed_version,
    postgresql_using="brin",
    postgresql_with={"autosummarize": "on"},
)

app_transactions = Table(
    "app_transactions",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("app_id", bytes_order(), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("action", LargeBinary, nullable=False),
    PrimaryKeyConstraint("table_id", "app_id", name="app_transactions_pkey"),
    # No foreign key, as of `commits`: for each of thousands of rows its check would look for the
    # table's row among all dead copies of it.
)
"""The latest `txn` action of each application and the version that holds it, which may have
expired."""

domain_metadata = Table(
    "domain_metadata",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("domain", bytes_order(), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("action", LargeBinary, nullable=False),
    PrimaryKeyConstraint("table_id", "domain", name="domain_metadata_pkey"),
)
"""The latest `domainMetadata` action of each domain that is not removed; its version as above."""

metadata_versions = Table(
    "metadata_versions",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("protocol", LargeBinary, nullable=False),
    Column("metadata", LargeBinary, nullable=False),
    PrimaryKeyConstraint("table_id", "version", name="metadata_versions_pkey"),
    # Every table has some: this keeps the row of a table that has versions.
    ForeignKeyConstraint(["table_id"], ["tables.id"], name="metadata_versions_table_id_fkey"),
)
"""Protocol and metadata, both, at every version that changed either: of those that the index holds,
and of the last one before its first version, unless that one changed them itself."""

past_metadata_ids = Table(
    "past_metadata_ids",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("metadata_id", bytes_order(), nullable=False),
    PrimaryKeyConstraint("table_id", "metadata_id", name="past_metadata_ids_pkey"),
    # The release before forgets tables, and does not know of it.
    ForeignKeyConstraint(
        ["table_id"], ["tables.id"], name="past_metadata_ids_table_id_fkey", ondelete="CASCADE"
    ),
)
"""The ids, as `keys.key` stores them, that a table's metaData had before the versions that are in
the index."""

aborted_transactions = Table(
    "aborted_transactions",
    metadata,
    Column("table_id", Uuid, nullable=False),
    Column("transaction_id", bytes_order(), nullable=False),
    Column("aborted_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("unfenced_after", BigInteger),
    PrimaryKeyConstraint("table_id", "transaction_id", name="aborted_transactions_pkey"),
    ForeignKeyConstraint(["table_id"], ["tables.id"], name="aborted_transactions_table_id_fkey"),
)
"""Tombstones of transaction ids. An id is here or in `commits`, never in both: whoever writes
either holds the table's row lock and has looked into the other. `unfenced_after`, which an earlier
release set, is the head of a plain table whose log holds no fence for the tombstone: an attempt may
yet land."""

# Contents come compressed by us (zstd, a tenth of the time of Postgres's own), and Postgres
# would only try again.
_STORE_AS_IS = "ALTER TABLE commits ALTER COLUMN content SET STORAGE EXTERNAL"


@event.listens_for(commits, "after_create")
def _store_content_as_is(_target: Table, connection: Connection, **_: object) -> None:
    connection.exec_driver_sql(_STORE_AS_IS)
