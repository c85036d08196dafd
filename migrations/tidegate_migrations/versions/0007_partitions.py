"""Partitions of files, so that scans read the files of those that they ask for.

The release before goes on working on it: it leaves the column NULL, and scans look at such files
one by one. Rows that are there are filled in while commits go on, a few thousand at a time, and
only those of partitioned tables: for others the column's default is what they need.

Revision: 0007, after 0006
"""

import json
from collections.abc import Sequence
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_AT_ONCE = 5_000

# A default that is given with the column is no work, however many rows there are. It is not to
# stay: what the release before writes is not known to have no partition.
_ADD = """
    ALTER TABLE files ADD COLUMN IF NOT EXISTS partition text COLLATE "C" DEFAULT '';
    ALTER TABLE files ALTER COLUMN partition DROP DEFAULT
"""

# While it has no entries, so that commits wait for no longer than reading the rows takes. Not
# CONCURRENTLY: that would wait for other instances that wait for the end of this migration.
_INDEX = """
    CREATE INDEX IF NOT EXISTS files_partition_idx
    ON files (table_id, partition, path, dv_id) WHERE partition IS DISTINCT FROM ''
"""

# `#>>` gives the JSON itself, and of the JSON string that the release before keeps it as, its text.
# A text as bytes, by an input function that reads backslashes as escapes.
_FILL = sa.text("""
    WITH page AS (
        SELECT ctid AS row_id, path, dv_id
        FROM files
        WHERE table_id = :table_id AND partition = '' AND (path, dv_id) >= (:path, :dv_id)
        ORDER BY path, dv_id
        LIMIT :at_once
    ), filled AS (
        UPDATE files
        SET partition = CASE
            WHEN octet_length(partition_values #>> '{}') <= 256
                THEN partition_values #>> '{}'
            ELSE 'sha256:' || encode(sha256(CAST(
                replace(partition_values #>> '{}', E'\\\\', E'\\\\\\\\') AS bytea
            )), 'hex')
        END
        FROM page WHERE files.ctid = page.row_id
    )
    SELECT path, dv_id FROM page ORDER BY path DESC, dv_id DESC LIMIT 1
""").bindparams(sa.bindparam("table_id", type_=sa.Uuid))

_STATES = sa.text("""
    SELECT table_id, version, metadata
    FROM metadata_versions
    WHERE (table_id, version) > (:table_id, :version)
    ORDER BY table_id, version
    LIMIT 200
""").bindparams(sa.bindparam("table_id", type_=sa.Uuid))


def upgrade() -> None:
    # A run that was cut off has done a part of this; each step can be done again.
    op.execute(_ADD)
    with op.get_context().autocommit_block():
        op.execute(_INDEX)
        connection = op.get_bind()
        connection.exec_driver_sql("SET enable_seqscan = off")
        for table_id in sorted(_partitioned(connection)):
            _fill(connection, table_id)
        connection.exec_driver_sql("RESET enable_seqscan")


def downgrade() -> None:
    op.drop_index("files_partition_idx", "files")
    op.drop_column("files", "partition")


def _partitioned(connection: sa.Connection) -> set[UUID]:
    """The tables that are partitioned at any version."""
    found: set[UUID] = set()
    after: tuple[UUID, int] | None = (UUID(int=0), -1)
    while after is not None:
        states = connection.execute(_STATES, {"table_id": after[0], "version": after[1]}).all()
        for table_id, _, metadata in states:
            if json.loads(metadata)["metaData"].get("partitionColumns"):
                found.add(table_id)
        after = (states[-1].table_id, states[-1].version) if states else None
    return found


def _fill(connection: sa.Connection, table_id: UUID) -> None:
    # A file that a commit removes meanwhile is another row then, behind us: look again.
    while _fill_once(connection, table_id):
        pass


def _fill_once(connection: sa.Connection, table_id: UUID) -> bool:
    """Whether there was anything to fill."""
    pages = 0
    last: Sequence[str] | None = ("", "")
    while last is not None:
        # From the last one, not after it: it may have lives that the page had no room for.
        values = {"table_id": table_id, "path": last[0], "dv_id": last[1], "at_once": _AT_ONCE}
        last = connection.execute(_FILL, values).one_or_none()
        pages += last is not None
    return pages > 0
