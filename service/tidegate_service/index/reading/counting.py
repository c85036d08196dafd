"""What a table adds up to at its head or at a version before, as of one moment and in bounded time.

Rows of a table's removed files stay in the index, so how many are live does not say how many have
to be looked through: it is the rows that are bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Select, Table, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.checksum.histograms import SIZE_BINS
from tidegate_protocol.log.actions import Add
from tidegate_service.core.ports.checkpoints import Counted
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.limits import CountingLimits
from tidegate_service.index.rows.records import (
    COMMIT_COLUMNS,
    add_of,
    commit_record,
    domain_of,
    metadata_of,
    protocol_of,
    table_record,
    txn_of,
)
from tidegate_service.index.schema.tables import (
    app_transactions,
    commits,
    domain_metadata,
    files,
    metadata_versions,
    tables,
)

_BINS = text("""
    SELECT CASE WHEN size < 0 THEN -1
        ELSE width_bucket(size, CAST(:bins AS numeric[])) - 1 END AS place,
        count(*) AS number, sum(size) AS bytes
    FROM files WHERE table_id = :table_id AND added_version <= :version
        AND (removed_version IS NULL OR removed_version > :version) GROUP BY 1
""")
_STATE = select(metadata_versions.c.protocol, metadata_versions.c.metadata)
_DOMAINS = "domainMetadata"


async def counted(
    connection: AsyncConnection, table_id: UUID, version: int | None, limits: CountingLimits
) -> Counted | None:
    """Of one moment, that of the transaction."""
    row = (await connection.execute(select(tables).where(tables.c.id == table_id))).one_or_none()
    if row is None or row.latest_version < 0:
        return None
    table = table_record(row)
    few = await _has_few_rows(connection, table_id, limits.rows)
    is_head = version is None or version == table.latest_version
    version = table.latest_version if version is None else version
    if not is_head and (not few or not table.first_version <= version < table.latest_version):
        return None
    bins = await _bins(connection, table_id, version) if few else None
    if not is_head:
        assert bins is not None, "its rows are few"
        table = await _table_at(connection, table, table_id, version, bins)
    of_version = select(*COMMIT_COLUMNS).where(
        commits.c.table_id == table_id, commits.c.version == version
    )
    head = commit_record((await connection.execute(of_version)).one())
    txns = await _small(connection, app_transactions, table_id, version, limits)
    # A domain that was removed since has no row among these.
    assert table.protocol is not None, "it has a version"
    are_known = is_head or _DOMAINS not in (table.protocol.writer_features or ())
    domains = None
    if are_known:
        domains = await _small(connection, domain_metadata, table_id, version, limits)
    live = _live(table_id, version)
    return Counted(
        table=table,
        head=head,
        txns=None if txns is None else [txn_of(action) for action in txns],
        domains=None if domains is None else [domain_of(action) for action in domains],
        bins=bins,
        cardinalities=await _cardinalities(connection, live, limits) if few else None,
        files=await _files(connection, live, limits) if few else None,
    )


async def _table_at(
    connection: AsyncConnection,
    table: TableRecord,
    table_id: UUID,
    version: int,
    bins: Mapping[int, tuple[int, int]],
) -> TableRecord:
    """The table as it was at a version that the index holds."""
    state = (
        _STATE.where(
            metadata_versions.c.table_id == table_id, metadata_versions.c.version <= version
        )
        .order_by(metadata_versions.c.version.desc())
        .limit(1)
    )
    found = (await connection.execute(state)).one()
    return replace(
        table,
        latest_version=version,
        protocol=protocol_of(found.protocol),
        metadata=metadata_of(found.metadata),
        num_files=sum(number for number, _ in bins.values()),
        size_bytes=sum(size for _, size in bins.values()),
    )


async def _small(
    connection: AsyncConnection,
    source: Table,
    table_id: UUID,
    version: int,
    limits: CountingLimits,
) -> Sequence[bytes] | None:
    """None, too, where one was written since: what it was before is not held."""
    of_table = source.c.table_id == table_id
    query = select(source.c.action).where(of_table)
    found = await _few_actions(connection, query, limits.small_actions, limits.small_action_bytes)
    if found is None:
        return None
    # After the other question, so that it is asked of few rows: no index has their versions.
    later = select(source.c.version).where(of_table, source.c.version > version).limit(1)
    is_told = (await connection.execute(later)).one_or_none() is None
    return found if is_told else None


async def _has_few_rows(connection: AsyncConnection, table_id: UUID, most: int) -> bool:
    some = select(files.c.table_id).where(files.c.table_id == table_id).limit(most + 1).subquery()
    number: int = (await connection.execute(select(func.count()).select_from(some))).scalar_one()
    return number <= most


async def _bins(
    connection: AsyncConnection, table_id: UUID, version: int
) -> Mapping[int, tuple[int, int]]:
    values = {"table_id": table_id, "version": version, "bins": list(SIZE_BINS)}
    rows: Sequence[Row[Any]] = (await connection.execute(_BINS, values)).all()
    return {row.place: (row.number, int(row.bytes)) for row in rows}


async def _cardinalities(
    connection: AsyncConnection, live: Select[bytes], limits: CountingLimits
) -> Sequence[int] | None:
    with_vectors = live.where(files.c.dv_id != "")
    found = await _few_actions(connection, with_vectors, limits.vectors, limits.vector_bytes)
    if found is None:
        return None
    vectors = (add_of(raw).deletion_vector for raw in found)
    return [vector.cardinality for vector in vectors if vector is not None]


async def _files(
    connection: AsyncConnection, live: Select[bytes], limits: CountingLimits
) -> Sequence[Add] | None:
    found = await _few_actions(connection, live, limits.files, limits.file_bytes)
    return None if found is None else [add_of(raw) for raw in found]


async def _few_actions(
    connection: AsyncConnection, query: Select[bytes], most: int, most_bytes: int
) -> Sequence[bytes] | None:
    """The actions that a query finds; None where they are many, or long."""
    some = query.limit(most + 1).subquery()
    sizes = select(func.count(), func.coalesce(func.sum(func.octet_length(some.c.action)), 0))
    number, size = (await connection.execute(sizes.select_from(some))).one()
    if number > most or size > most_bytes:
        return None
    return (await connection.execute(query)).scalars().all()


def _live(table_id: UUID, version: int) -> Select[bytes]:
    return select(files.c.action).where(
        files.c.table_id == table_id,
        files.c.added_version <= version,
        files.c.removed_version.is_(None) | (files.c.removed_version > version),
    )
