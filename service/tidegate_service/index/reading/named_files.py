"""Which files the versions of a table name, read along the index of files alone.

Each page is one statement on a connection of its own, from where the last one ended. Rows of files
come past SQLAlchemy in Postgres's binary form.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from uuid import UUID

from tidegate_service.core.ports.files.named_files import NamedFiles, NamingTable, StillNamed
from tidegate_service.core.ports.records import Glance, TableState
from tidegate_service.index.postgres.binary import BinaryRow, binary_rows
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.reading import reads
from tidegate_service.index.reading.reads import table_id_of
from tidegate_service.index.rows.keys import key

FILES_A_PAGE = 10_000

_NAMED = """(
    files.removed_version IS NULL
    OR files.removed_version >= %(since)s
    OR files.deletion_timestamp >= %(removed_ms)s
)"""
_PAGE = f"""
    SELECT files.path, files.dv_id
    FROM files
    WHERE files.table_id = %(table_id)s
      AND (files.path, files.dv_id) > (%(path)s, %(dv_id)s)
      AND files.path <= %(until)s
      AND {_NAMED}
    ORDER BY files.path, files.dv_id
    LIMIT {FILES_A_PAGE}
"""
KEYS_A_PAGE = 1_000
LINES_BYTES = 4 * 1024 * 1024
"""Of log lines in a batch, beside its last one."""
# A length is read off a value's header, so nothing is fetched of what has no room.
_LINES = f"""
    SELECT page.number, page.action
    FROM (
        SELECT found.number, found.action, sum(octet_length(found.action)) OVER (
            ORDER BY found.number ROWS UNBOUNDED PRECEDING
        ) AS bytes
        FROM (
            SELECT asked.number, one.action
            FROM unnest(%(paths)s::text[], %(vectors)s::text[])
                WITH ORDINALITY AS asked(path, dv_id, number)
            CROSS JOIN LATERAL (
                SELECT files.action
                FROM files
                WHERE files.table_id = %(table_id)s
                  AND files.path = asked.path
                  AND files.dv_id = asked.dv_id
                LIMIT 1
            ) AS one
        ) AS found
    ) AS page
    WHERE page.bytes - octet_length(page.action) < {LINES_BYTES}
    ORDER BY page.number
"""
_STILL_NAMED = f"""
    SELECT tables.epoch, tables.first_version, tables.latest_version, tables.state, ARRAY(
        SELECT DISTINCT files.path
        FROM files
        WHERE files.table_id = tables.id AND files.path = ANY(%(paths)s::text[]) AND {_NAMED}
    )
    FROM tables
    WHERE tables.id = %(table_id)s
"""
# No order: it would have the planner walk along all files of the table.
_OTHERWISE = r"""
    SELECT files.path, files.dv_id
    FROM files
    WHERE files.table_id = %(table_id)s
      AND files.added_version > %(after)s
      AND (files.dv_id <> '' OR files.path ~ '^[/.]|:|//|/[.]')
      AND (
        files.path >= %(first)s AND files.path < %(end)s
        OR files.path ~ '^sha256:|^[A-Z]|//|/[.]'
        OR files.dv_id ~ '^(p|sha256:)'
      )
    LIMIT %(most)s
"""
_BETWEEN = """
    SELECT live.path
    FROM (
        SELECT files.path, row_number() OVER (ORDER BY files.path, files.dv_id) AS number
        FROM files
        WHERE files.table_id = %(table_id)s AND files.removed_version IS NULL
    ) AS live
    WHERE live.number %% %(step)s = 0
    ORDER BY live.path
"""
_TABLES_NAMING = """
    SELECT tables.id, tables.name, tables.epoch, tables.latest_version
    FROM tables
    WHERE tables.id <> %(table_id)s AND EXISTS (
        SELECT 1
        FROM files
        WHERE files.table_id = tables.id AND files.path >= %(first)s AND files.path < %(end)s
    )
    ORDER BY tables.name
"""
_LAST = "\U0010ffff"
"""Behind every path."""


class NamedFilesCalls:
    """Implements `core.ports.files.named_files.NamedFilesIndex`."""

    _connections: Connections

    async def named_files(
        self,
        table_id: str,
        *,
        since: int,
        removed_ms: int,
        after: str = "",
        until: str | None = None,
    ) -> AsyncIterator[NamedFiles]:
        # Behind all rows of that path.
        last = (after, _LAST)
        while True:
            rows = await self._files_rows(
                _PAGE,
                {
                    "table_id": _identity(table_id),
                    "since": since,
                    "removed_ms": removed_ms,
                    "path": last[0],
                    "dv_id": last[1],
                    "until": _LAST if until is None else until,
                },
            )
            if rows:
                yield NamedFiles(paths=[row[0] for row in rows], vectors=[row[1] for row in rows])
            if len(rows) < FILES_A_PAGE:
                return
            last = (rows[-1][0], rows[-1][1])

    async def lines_of(self, table_id: str, rows: NamedFiles) -> AsyncIterator[Sequence[bytes]]:
        done = 0
        while done < len(rows.paths):
            part = slice(done, done + KEYS_A_PAGE)
            paths, vectors = list(rows.paths[part]), list(rows.vectors[part])
            asked = {"table_id": _identity(table_id), "paths": paths, "vectors": vectors}
            found = await self._files_rows(_LINES, asked)
            if not found:
                done += KEYS_A_PAGE
                continue
            yield [bytes(action) for _, action in found]
            done += found[-1][0]

    async def still_named(
        self, table_id: str, paths: Sequence[str], *, since: int, removed_ms: int
    ) -> StillNamed | None:
        keys = {key(path): path for path in paths}
        asked = {
            "table_id": _identity(table_id),
            "paths": list(keys),
            "since": since,
            "removed_ms": removed_ms,
        }
        rows = await self._files_rows(_STILL_NAMED, asked)
        for epoch, first_version, latest_version, state, named in rows:
            return StillNamed(
                paths=frozenset(keys[each] for each in named),
                epoch=epoch,
                first_version=first_version,
                latest_version=latest_version,
                is_active=state == TableState.ACTIVE,
            )
        return None

    async def named_otherwise(
        self, table_id: str, *, after: int, most: int, prefix: str | None = None
    ) -> NamedFiles:
        asked = {
            "table_id": _identity(table_id),
            "after": after,
            "most": most,
            "first": "" if prefix is None else prefix,
            "end": ("" if prefix is None else prefix) + _LAST,
        }
        rows = await self._files_rows(_OTHERWISE, asked)
        return NamedFiles(paths=[row[0] for row in rows], vectors=[row[1] for row in rows])

    async def paths_between(self, table_id: str, count: int) -> Sequence[str]:
        identity = _identity(table_id)
        sized = "SELECT num_files FROM tables WHERE tables.id = %(table_id)s"
        for (files,) in await self._files_rows(sized, {"table_id": identity}):
            step = max(1, files // (count + 1))
            rows = await self._files_rows(_BETWEEN, {"table_id": identity, "step": step})
            return sorted({row[0] for row in rows})[:count]
        return ()

    async def other_tables(self, *, but: str) -> AsyncGenerator[Sequence[Glance]]:
        page = partial(reads.other_tables, but=_identity(but))
        tables = await self._connections.read(partial(page, after=None))
        while tables:
            yield tables
            after = _identity(tables[-1].table.id)
            tables = await self._connections.read(partial(page, after=after))

    async def tables_naming(self, prefix: str, *, but: str) -> Sequence[NamingTable]:
        values = {"table_id": _identity(but), "first": prefix, "end": prefix + _LAST}
        rows = await self._files_rows(_TABLES_NAMING, values)
        return [
            NamingTable(id=str(table_id), name=name, epoch=epoch, latest_version=latest_version)
            for table_id, name, epoch, latest_version in rows
        ]

    async def _files_rows(
        self, statement: str, values: Mapping[str, object]
    ) -> Sequence[BinaryRow]:
        return await self._connections.read(lambda c: binary_rows(c, statement, values))


def _identity(table_id: str) -> UUID:
    identity = table_id_of(table_id)
    if identity is None:
        raise ValueError(f"{table_id!r} is no table's id")
    return identity
