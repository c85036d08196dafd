"""What the index says of one version, compared with the actions that made it.

By induction over a table's versions this proves its snapshots: each version opened the files it
adds, with the bytes it gave them, closed those it names, and touched no other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from uuid import UUID

from sqlalchemy import TextClause, Uuid, bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.table_features import may_have_vectors
from tidegate_protocol.log.actions import Action, Add, DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.log.codec import decode, encode
from tidegate_service.core.ports.files.comparison import Comparison, FileCounts
from tidegate_service.core.sharing.pools import Share
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import Connections, driver_of
from tidegate_service.index.postgres.parameters import (
    Parameter,
    byteas,
    int8,
    texts,
    uuid,
)
from tidegate_service.index.postgres.pipeline import (
    Query,
    Row,
    Statement,
    as_bool,
    as_int,
    as_text,
)
from tidegate_service.index.rows.effects import Effects, FileKey, effects_of
from tidegate_service.index.rows.file_rows import sized
from tidegate_service.index.rows.partitions import filled_in_key, partition_key, values_text
from tidegate_service.index.schema.tables import metadata_versions

T = TypeVar("T")

_MOST_NAMED = 5
"""Files that one difference names; the rest is counted."""


def _by_table(statement: str) -> TextClause:
    return text(statement).bindparams(bindparam("table_id", type_=Uuid))


_OF_FILES = Statement("""
    SELECT file.path,
           file.action IS NULL
               OR coalesce(bool_or(
                   life.added_version = $2
                   AND life.action = file.action
                   AND (life.stats IS NULL OR life.stats = file.stats)
                   AND CAST(life.partition_values AS text) = file.partition_values
                   AND coalesce(life.partition IN (file.key, file.filled_in_key), true)
               ), false) AS opened,
           count(*) FILTER (WHERE life.removed_version = $2) AS closed,
           coalesce(bool_or(
               life.added_version < $2
               AND (life.removed_version IS NULL OR life.removed_version > $2)
           ), false) AS survived,
           file.action IS NULL AND NOT coalesce(bool_or(
               life.added_version < $2
               AND (life.removed_version IS NULL OR life.removed_version >= $2)
           ), false) AS missed
    FROM unnest($3, $4, $5, $6, $7, $8, $9)
        AS file (path, dv_id, action, stats, partition_values, key, filled_in_key)
    LEFT JOIN LATERAL (
        SELECT added_version, removed_version, action, stats, partition_values, partition
        FROM files
        WHERE files.table_id = $1
          AND files.path = file.path
          AND files.dv_id = file.dv_id
    ) AS life ON true
    GROUP BY file.path, file.dv_id, file.action
""")

# One pass over the table's files answers for a whole page of versions.
_COUNTS = _by_table("""
    SELECT version, sum(opened) AS opened, sum(closed) AS closed
    FROM (
        SELECT added_version AS version, 1 AS opened, 0 AS closed FROM files
        WHERE table_id = :table_id AND added_version BETWEEN :first AND :last
        UNION ALL
        SELECT removed_version, 0, 1 FROM files
        WHERE table_id = :table_id AND removed_version BETWEEN :first AND :last
    ) AS change
    GROUP BY version
""")

_HEAD = _by_table("""
    SELECT tables.latest_version, tables.first_version, tables.num_files,
           tables.size_bytes, tables.protocol, tables.metadata, live.files, live.bytes,
           state.protocol AS protocol_then,
           state.metadata AS metadata_then, (
               SELECT count(*) FROM commits
               WHERE table_id = :table_id
                 AND version BETWEEN tables.first_version AND tables.latest_version
           ) AS versions
    FROM tables
    CROSS JOIN (
        SELECT count(*) AS files, coalesce(sum(size), 0) AS bytes
        FROM files WHERE table_id = :table_id AND removed_version IS NULL
    ) AS live
    LEFT JOIN LATERAL (
        SELECT protocol, metadata FROM metadata_versions
        WHERE table_id = :table_id ORDER BY version DESC LIMIT 1
    ) AS state ON true
    WHERE tables.id = :table_id
""")

_DOUBLED = _by_table(f"""
    SELECT path, count(*) OVER () AS paths
    FROM (
        SELECT path FROM files WHERE table_id = :table_id AND removed_version IS NULL
        GROUP BY path HAVING count(*) > 1
    ) AS doubled
    ORDER BY path LIMIT {_MOST_NAMED}
""")

_APP_TRANSACTIONS = Statement("""
    SELECT written.key FROM unnest($3, $4) AS written (key, action)
    LEFT JOIN app_transactions AS held
        ON held.table_id = $1 AND held.app_id = written.key
    WHERE held.version IS NULL OR held.version < $2
       OR (held.version = $2 AND held.action <> written.action)
""")

_DOMAINS = Statement("""
    SELECT written.key FROM unnest($3, $4) AS written (key, action)
    JOIN domain_metadata AS held ON held.table_id = $1 AND held.domain = written.key
    WHERE held.version < $2 OR (held.version = $2 AND held.action <> written.action)
""")


async def file_counts(
    connection: AsyncConnection, table_id: UUID, first: int, last: int
) -> dict[int, FileCounts]:
    rows = await connection.execute(_COUNTS, {"table_id": table_id, "first": first, "last": last})
    return {row.version: FileCounts(int(row.opened), int(row.closed)) for row in rows}


async def compare(
    connections: Connections,
    table_id: UUID,
    version: int,
    actions: Sequence[Action],
    *,
    threads: Share,
    limits: IndexLimits,
) -> Comparison:
    """Piece by piece, each made in a thread and asked for by itself: what a version changed is the
    same in all of them, and one of a million files takes longer than a statement may."""
    effects = await threads.run(effects_of, actions)
    asking = _Asking(connections, (uuid(table_id), int8(version)), threads)
    unopened, surviving, missed, closed = _Names(), _Names(), _Names(), 0
    in_pieces = partial(sized, most_rows=limits.compared_rows, most_bytes=limits.compared_bytes)

    def of_file(row: Row) -> None:
        nonlocal closed
        path, opened, closed_here, survived, is_missed = row
        closed += as_int(closed_here)
        if not as_bool(opened):
            unopened.add(path)
        if as_bool(survived):
            surviving.add(path)
        if as_bool(is_missed):
            missed.add(path)

    await asking.each(
        _OF_FILES, in_pieces(effects.files.items(), _bytes_of_file), _file_columns, of_file
    )
    missing, kept = _Names(), _Names()
    await asking.each(
        _APP_TRANSACTIONS,
        in_pieces(effects.txns.items(), _bytes_of_keyed),
        _keyed_columns,
        lambda row: missing.add(row[0]),
    )
    domains = (item for item in effects.domains.items() if not item[1].removed)
    await asking.each(
        _DOMAINS, in_pieces(domains, _bytes_of_keyed), _keyed_columns, lambda row: kept.add(row[0])
    )
    told = (
        (unopened, "files it adds are missing or differ"),
        (surviving, "files it removes or replaces live on"),
        (missing, "application transactions it sets are missing or differ"),
        (kept, "domains it sets are missing or differ"),
    )
    found = [f"{what}: {names}" for names, what in told if names.count]
    found += await connections.read(lambda c: _state(c, table_id, version, effects))
    broken = (f"files it removes were not live: {missed}",) if missed.count else ()
    counts = FileCounts(effects.opened, closed)
    return Comparison(differences=tuple(found), broken=broken, counts=counts)


@dataclass(slots=True)
class _Names:
    """Names in a difference: the first ones, and how many."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: bytes | None) -> None:
        self.count += 1
        if self.count <= _MOST_NAMED:
            self.first.append(as_text(name))

    def __str__(self) -> str:
        named = ", ".join(excerpt(name) for name in self.first)
        more = self.count - len(self.first)
        return f"{named} and {more} more" if more else named


@dataclass(frozen=True, slots=True)
class _Asking:
    """Asks about a version; `which` are the first parameters of each statement."""

    connections: Connections
    which: tuple[Parameter, Parameter]
    threads: Share

    async def each(
        self,
        statement: Statement,
        pieces: Iterator[Sequence[T]],
        columns: Callable[[Sequence[T]], Sequence[Parameter]],
        take: Callable[[Row], None],
    ) -> None:
        """Look at each row that the statement has for the columns of each piece."""

        def following() -> Query | None:
            piece = next(pieces, None)
            return None if piece is None else Query(statement, *self.which, *columns(piece))

        while (query := await self.threads.run(following)) is not None:
            for row in await self.connections.read(partial(_rows, query)):
                take(row)


async def _rows(query: Query, connection: AsyncConnection) -> list[Row]:
    (rows,) = await pipeline.run(await driver_of(connection), [query])
    return rows


def _bytes_of_file(file: tuple[FileKey, Add | None]) -> int:
    _, add = file
    return 0 if add is None else len(add.raw)


def _bytes_of_keyed(keyed: tuple[str, Txn | DomainMetadata]) -> int:
    return len(keyed[1].raw)


def _file_columns(files: Sequence[tuple[FileKey, Add | None]]) -> Sequence[Parameter]:
    adds = [add for _, add in files]
    partitions = [None if add is None else add.partition_values for add in adds]
    return (
        texts([path for (path, _), _ in files]),
        texts([dv_id for (_, dv_id), _ in files]),
        byteas([None if add is None else encode(add) for add in adds]),
        # What scans prune by, where it is not what they read in the action.
        texts([None if add is None else add.stats for add in adds]),
        texts([None if values is None else values_text(values).decode() for values in partitions]),
        texts([None if values is None else partition_key(values) for values in partitions]),
        texts([None if values is None else filled_in_key(values) for values in partitions]),
    )


def _keyed_columns(keyed: Sequence[tuple[str, Txn | DomainMetadata]]) -> Sequence[Parameter]:
    return texts([key for key, _ in keyed]), byteas([encode(action) for _, action in keyed])


async def _state(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> list[str]:
    query = select(metadata_versions.c.protocol, metadata_versions.c.metadata).where(
        metadata_versions.c.table_id == table_id, metadata_versions.c.version == version
    )
    row = (await connection.execute(query)).one_or_none()
    expected: tuple[tuple[str, Protocol | Metadata | None], ...] = (
        ("protocol", effects.protocol),
        ("metadata", effects.metadata),
    )
    return [
        f"the {name} it sets is missing or differs"
        for name, action in expected
        if action is not None and (row is None or getattr(row, name) != encode(action))
    ]


async def compare_head(connection: AsyncConnection, table_id: UUID) -> Comparison:
    """What the table's row says and the rows it sums up do not."""
    row = (await connection.execute(_HEAD, {"table_id": table_id})).one_or_none()
    if row is None:
        return Comparison(differences=())
    found = []
    if row.num_files != row.files or row.size_bytes != row.bytes:
        found.append(
            f"the head counts {row.num_files} files of {row.size_bytes} bytes, and "
            f"{row.files} of {row.bytes} bytes are live"
        )
    if row.protocol != row.protocol_then or row.metadata != row.metadata_then:
        found.append("the head's protocol or metadata are not those that were set last")
    expected = row.latest_version - row.first_version + 1
    if row.versions != expected:
        found.append(f"expected {expected} versions up to the head, found {row.versions}")
    broken: tuple[str, ...] = ()
    protocol = None if row.protocol is None else decode(row.protocol)
    if isinstance(protocol, Protocol) and may_have_vectors(protocol):
        doubled = (await connection.execute(_DOUBLED, {"table_id": table_id})).all()
        if doubled:
            names = _Names(doubled[0].paths, [each.path for each in doubled])
            broken = (f"paths are live with several deletion vectors: {names}",)
    return Comparison(differences=tuple(found), broken=broken)
