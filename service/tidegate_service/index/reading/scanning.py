"""Reading a snapshot's files a page at a time, all of them or those of some partitions.

Each page is one statement on a connection of its own, from where the last one ended: what is live
at a version that exists never changes, so they make one snapshot, and a reader that takes its time
holds neither a connection nor a transaction. The rows go past SQLAlchemy and come in Postgres's
binary form, which takes a third of the time.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable, NotFound
from tidegate_service.core.ports.files.scanned import PartitionTest, StoredFiles, Wanted
from tidegate_service.index.postgres.binary import BinaryRow as Row
from tidegate_service.index.postgres.binary import binary_rows
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.rows.effects import FileKey
from tidegate_service.index.rows.partitions import HASHED

PAGE_BYTES = 4 * 1024 * 1024
"""Of actions in a page, beside its last one."""

Values = dict[str, object]

_COLUMNS = "files.path, files.dv_id, files.action"
# A length is read off a value's header, so nothing is fetched of what has no room in the page.
_IN_ROOM = f"""
    SELECT page.*
    FROM (
        SELECT rows.*, sum(octet_length(rows.action)) OVER (
            ORDER BY rows.number, rows.path, rows.dv_id ROWS UNBOUNDED PRECEDING
        ) AS bytes
        FROM ({{rows}}) AS rows
    ) AS page
    WHERE page.bytes - octet_length(page.action) < {PAGE_BYTES}
    ORDER BY page.number, page.path, page.dv_id
"""
# As a text, by releases before this one as the JSON string of it.
_STATISTICS = ", (files.partition_values #>> '{}') AS partition_values, files.stats"
_LIVE = """
          AND files.added_version <= %(version)s
          AND (files.removed_version IS NULL OR files.removed_version > %(version)s)
        ORDER BY files.path, files.dv_id
        LIMIT %(limit)s
"""

# Beside every page, and once more after the last: what is gone or made anew is no short snapshot.
_FIRST_VERSION = (
    "(SELECT ARRAY[tables.first_version, tables.latest_version, tables.epoch] FROM tables "
    "WHERE tables.id = %(table_id)s)"
)

_OF_TABLE = """
        SELECT {first_version} AS held, 0 AS number, {columns}
        FROM files
        WHERE files.table_id = %(table_id)s
          AND (files.path, files.dv_id) > (%(path)s, %(dv_id)s)
"""

# Of files in no index of partitions there are none in a partitioned table, and those of the
# release before are under NULL there.
_OF_UNKNOWN_PARTITION = """
        SELECT {first_version} AS held, 0 AS number, {columns}
        FROM files
        WHERE files.table_id = %(table_id)s
          AND files.partition IS NULL
          AND files.partition IS DISTINCT FROM ''
          AND (files.path, files.dv_id) > (%(path)s, %(dv_id)s)
"""

# The planner knows the ordinality's order, so partitions are read one after the other until
# there are enough files, each by one walk along the index.
_OF_PARTITIONS = """
        SELECT {first_version} AS held, wanted.number, file.*
        FROM unnest(%(partitions)s::text[], %(paths)s::text[], %(dv_ids)s::text[])
            WITH ORDINALITY AS wanted (partition, path, dv_id, number)
        CROSS JOIN LATERAL (
            SELECT {columns}
            FROM files
            WHERE files.table_id = %(table_id)s
              AND files.partition = wanted.partition
              AND files.partition IS DISTINCT FROM ''
              AND (files.path, files.dv_id) > (wanted.path, wanted.dv_id)
              {live}
        ) AS file
        ORDER BY wanted.number, file.path, file.dv_id
        LIMIT %(limit)s
"""

# One step along the index for each partition, however many files it has. Only a digest does not
# say what the partition's values are: these are no longer than the line of a file, whose length is
# read off its header. The last partition is the one that fills the page.
_IS_HASHED = f"starts_with({{}}.partition, '{HASHED}')"
_ONE_FILE_OF = """
        FROM files
        WHERE files.table_id = %(table_id)s
          AND files.partition = {}.partition
          AND files.partition IS DISTINCT FROM ''
        LIMIT 1
"""
_BYTES = f"""
    CASE WHEN {_IS_HASHED.format("next")}
    THEN (SELECT octet_length(files.action) {_ONE_FILE_OF.format("next")})
    ELSE octet_length(next.partition) END
"""
_NEXT = """
        (
            SELECT files.partition
            FROM files
            WHERE files.table_id = %(table_id)s
              AND files.partition > {}
              AND files.partition IS DISTINCT FROM ''
            ORDER BY files.partition
            LIMIT 1
        ) AS next
"""
PARTITIONS = f"""
    WITH RECURSIVE found (partition, bytes) AS (
        SELECT next.partition, {_BYTES} FROM {_NEXT.format("%(after)s")}
        UNION ALL
        SELECT next.partition, found.bytes + {_BYTES}
        FROM found CROSS JOIN LATERAL {_NEXT.format("found.partition")}
        WHERE found.bytes < {PAGE_BYTES}
    )
    SELECT found.partition, CASE WHEN {_IS_HASHED.format("found")} THEN (
        SELECT (files.partition_values #>> '{{}}') {_ONE_FILE_OF.format("found")}
    ) ELSE found.partition END AS partition_values, found.bytes
    FROM found
    LIMIT %(limit)s
"""


def page_statement(which: str, *, with_statistics: bool) -> str:
    """The statement of a page: of `table`, `unknown` or `partitions`. Its columns are the
    table's first version, the partition's number (from 1), path, deletion vector's id and action,
    with statistics the partition values and the statistics, and last the bytes of the page's
    actions up to this one."""
    columns = _COLUMNS + (_STATISTICS if with_statistics else "")
    bodies = {
        "table": _OF_TABLE + _LIVE,
        "unknown": _OF_UNKNOWN_PARTITION + _LIVE,
        "partitions": _OF_PARTITIONS,
    }
    rows = bodies[which].format(first_version=_FIRST_VERSION, columns=columns, live=_LIVE)
    return _IN_ROOM.format(rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of a table at a version, `batch_size` a page, chosen by its partitions,
    `partitions_a_page`."""

    connections: Connections
    table_id: UUID
    version: int
    batch_size: int
    partitions_a_page: int
    epochs: set[int] = field(default_factory=set)
    databases: set[str] = field(default_factory=set)

    async def files(self, wanted: Wanted) -> AsyncIterator[StoredFiles]:
        """The wanted files: all in the order of their keys, or by partition. Raises `NotFound`
        where the table is gone or its index does not reach back to the version any more, and
        `IndexUnavailable` where it was made anew meanwhile, or the database failed over: pages of
        two indexes make no whole, nor does one that has not come to the version."""
        if wanted.partitions is not None:
            await self._check()
        async for rows in self._wanted(wanted):
            yield _stored(rows, wanted.with_statistics)
        await self._check()

    async def _check(self) -> None:
        for (first_version,) in await self._rows(f"SELECT {_FIRST_VERSION}", {}):
            self._check_in_index(first_version)

    async def _wanted(self, wanted: Wanted) -> AsyncIterator[Sequence[Row]]:
        if wanted.partitions is None:
            async for rows in self._pages("table", wanted.with_statistics):
                yield rows
            return
        async for rows in self._pages("unknown", with_statistics=True):
            chosen = await _chosen(wanted.partitions, rows, [row[5] for row in rows])
            if chosen:
                yield chosen
        async for keys in self._matching(wanted.partitions):
            async for rows in self._pages_of(keys, wanted.with_statistics):
                yield rows

    async def _pages(self, which: str, with_statistics: bool) -> AsyncIterator[Sequence[Row]]:
        statement = page_statement(which, with_statistics=with_statistics)
        after: FileKey = ("", "")
        rows: Sequence[Row] | None = None
        while rows is None or self._is_full(rows):
            rows = await self._page(statement, {"path": after[0], "dv_id": after[1]})
            if rows:
                after = (rows[-1][2], rows[-1][3])
                yield rows

    async def _pages_of(
        self, keys: Sequence[str], with_statistics: bool
    ) -> AsyncIterator[Sequence[Row]]:
        statement = page_statement("partitions", with_statistics=with_statistics)
        left, after = list(keys), ("", "")
        while left:
            others = len(left) - 1
            rows = await self._page(
                statement,
                {
                    "partitions": left,
                    "paths": [after[0], *[""] * others],
                    "dv_ids": [after[1], *[""] * others],
                },
            )
            if rows:
                yield rows
            if not self._is_full(rows):
                return
            _, number, path, dv_id, *_ = rows[-1]
            left, after = left[number - 1 :], (path, dv_id)

    async def _page(self, statement: str, values: Values) -> Sequence[Row]:
        rows = await self._rows(
            statement, {**values, "version": self.version, "limit": self.batch_size}
        )
        if rows:
            self._check_in_index(rows[0][0])
        return rows

    def _is_full(self, rows: Sequence[Row]) -> bool:
        """Whether more rows may follow those of a page."""
        return len(rows) == self.batch_size or (bool(rows) and rows[-1][-1] >= PAGE_BYTES)

    def _check_in_index(self, found: Sequence[int] | None) -> None:
        if found is None:
            raise NotFound(f"there is no table {self.table_id}", code=Code.TABLE_NOT_FOUND)
        first_version, latest_version, epoch = found
        self.epochs.add(epoch)
        if len(self.epochs) > 1:
            raise IndexUnavailable("the table's index was made anew during the scan; scan again")
        if len(self.databases) > 1 or self.version > latest_version:
            raise IndexUnavailable("the database failed over during the scan; scan again")
        if self.version < first_version:
            # Made anew since, from a log that reaches back no further.
            raise NotFound(
                f"version {self.version} of the table is not held any more; the first one is "
                f"{first_version}",
                code=Code.VERSION_NOT_FOUND,
            )

    async def _matching(self, test: PartitionTest) -> AsyncIterator[Sequence[str]]:
        """The keys of wanted partitions. Those that have no file any more are among them."""
        after: str | None = ""
        while after is not None:
            rows = await self._rows(PARTITIONS, {"after": after, "limit": self.partitions_a_page})
            chosen = await _chosen(test, rows, [values for _, values, _ in rows])
            if chosen:
                yield [key for key, *_ in chosen]
            is_full = len(rows) == self.partitions_a_page or (rows and rows[-1][2] >= PAGE_BYTES)
            after = rows[-1][0] if is_full else None

    async def _rows(self, statement: str, values: Values) -> Sequence[Row]:
        values = {**values, "table_id": self.table_id}

        async def fetch(connection: AsyncConnection) -> Sequence[Row]:
            self.databases.add(database_of(connection))
            return await binary_rows(connection, statement, values)

        return await self.connections.read(fetch)


async def _chosen(test: PartitionTest, rows: Sequence[Row], values: Sequence[Any]) -> Sequence[Row]:
    """The rows with partition values, in JSON, that the test says yes to."""
    wanted = await test(values)
    return [row for row, is_wanted in zip(rows, wanted, strict=True) if is_wanted]


def _stored(rows: Sequence[Row], with_statistics: bool) -> StoredFiles:
    return StoredFiles(
        paths=[row[2] for row in rows],
        vectors=[row[3] for row in rows],
        actions=[row[4] for row in rows],
        partitions=[row[5] for row in rows] if with_statistics else (),
        stats=[row[6] for row in rows] if with_statistics else (),
    )
