"""What commits write. Every statement takes all the rows of its kind at once, of any table.

The statements run under the locks of the tables' rows, in the transaction of a commit section.
Their cost depends on the commits' own size: rows of `files` are found by key, never by scanning.
They go to Postgres as a pipeline, since for a small commit the round trip is most of their cost.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from uuid import UUID

import msgspec

from tidegate_protocol.log.actions import Metadata, Protocol, Txn
from tidegate_protocol.log.codec import encode
from tidegate_protocol.log.content import Content
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.ports.records import RatifiedCommit, TableRecord
from tidegate_service.core.sharing import offload
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.parameters import (
    bytea,
    int8,
    records,
    uuid,
)
from tidegate_service.index.postgres.pipeline import (
    Driver,
    Query,
    Statement,
    as_int,
    as_text,
    as_uuid,
)
from tidegate_service.index.rows import commit_rows, file_rows
from tidegate_service.index.rows.commit_rows import NewCommit
from tidegate_service.index.rows.effects import Effects, FileKey
from tidegate_service.index.rows.file_rows import ROWS, FileChange
from tidegate_service.index.rows.keyed_rows import (
    DomainRow,
    Keyed,
    domain_rows,
    set_app_transactions,
    set_domains,
)
from tidegate_service.index.rows.newest import newest_row
from tidegate_service.index.rows.partitions import (
    leaves_unpartitioned,
    makes_partitioned,
    unindex_unpartitioned,
)
from tidegate_service.index.rows.records import compressed, metadata_of, protocol_of
from tidegate_service.index.writing import bulk_files

_INSERT_STATE = Statement("""
    INSERT INTO metadata_versions (table_id, version, protocol, metadata) VALUES ($1, $2, $3, $4)
""")
_SET_STATE = Statement("UPDATE tables SET protocol = $1, metadata = $2 WHERE id = $3")

# Each row is looked up once and named by its ctid: a join's plan may read all rows of `tables`.
_MOVE_HEADS = Statement(f"""
    WITH moved AS MATERIALIZED (
        SELECT held.row_id, move.*
        FROM json_to_recordset($1) AS move (
            id uuid, head bigint, through bigint, published bigint, latest_timestamp bigint,
            files bigint, size numeric
        )
        CROSS JOIN LATERAL (
            {newest_row("move.id", "ctid AS row_id", where="tables.latest_version = move.head")}
        ) AS held
    )
    UPDATE tables
    SET latest_version = moved.through,
        published_version = greatest(tables.published_version, moved.published),
        latest_timestamp = moved.latest_timestamp,
        num_files = tables.num_files + moved.files,
        size_bytes = tables.size_bytes + moved.size
    FROM moved
    WHERE tables.ctid = moved.row_id
    RETURNING tables.id, tables.num_files, CAST(tables.size_bytes AS text)
""")

LONG_CONTENT = 256 * 1024
"""Content of so many bytes or more is compressed in a thread."""

Counts = tuple[int, int]
"""A table's number of files, and the sum of their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A commit to write, with the head that it follows and the effects of its actions."""

    table_id: UUID
    before: TableRecord
    commit: RatifiedCommit
    effects: Effects

    @property
    def version(self) -> int:
        return self.commit.record.version

    @property
    def weight(self) -> int:
        """How much work its rows are, in usual ones: a few may have megabytes."""
        return max(self.effects.size, self.commit.weight)


def head_after(staged: Staged) -> TableRecord:
    """The table's head once the commit is written, except the counts, which the writing returns."""
    record, effects, before = staged.commit.record, staged.effects, staged.before
    return replace(
        before,
        latest_version=record.version,
        published_version=record.version if staged.commit.published else before.published_version,
        latest_timestamp=record.timestamp,
        # As later reads will decode them.
        protocol=protocol_of(encode(effects.protocol)) if effects.protocol else before.protocol,
        metadata=metadata_of(encode(effects.metadata)) if effects.metadata else before.metadata,
    )


async def write(driver: Driver, staged: Sequence[Staged]) -> dict[UUID, Counts]:
    """Write the commits, each table's in the order of their versions. Returns each table's counts
    after them.

    Raises `ServiceError` where a head is not where the lock's holder saw it, which is a defect.
    """
    counts: dict[UUID, Counts] = {}
    for run in _runs(staged):
        counts |= await _write_run(driver, run)
    return counts


def _runs(staged: Iterable[Staged]) -> Iterator[list[Staged]]:
    """The commits in runs. One set of statements can write a run: no two of its commits name the
    same file, one of very many rows is a run by itself, and one that makes its table partitioned
    is the last one: the counts after it say whether it left files."""
    run: list[Staged] = []
    named: set[tuple[UUID, FileKey]] = set()
    for one in staged:
        table_id = one.table_id
        if one.weight > ROWS:
            if run:
                yield run
            yield [one]
            run, named = [], set()
            continue
        keys = {(table_id, key) for key in one.effects.files}
        if run and (len(named) + len(keys) > ROWS or not named.isdisjoint(keys)):
            yield run
            run, named = [], set()
        run.append(one)
        named |= keys
        if makes_partitioned(one.before.metadata, one.effects.metadata):
            yield run
            run, named = [], set()
    if run:
        yield run


async def _write_run(driver: Driver, run: Sequence[Staged]) -> dict[UUID, Counts]:
    first = run[0]
    stored = await _write_bulk(driver, first) if first.effects.bulk else None
    size = sum(one.weight for one in run)
    is_large = size > ROWS
    rows = _rows(run, apart=is_large)
    # A group of many small commits waits for no turn at a thread.
    weight = size if is_large else 0
    with offload.sharing if is_large else nullcontext():
        queries = await offload.run(weight, _next, rows)
        while (following := await offload.run(weight, _next, rows)) is not None:
            await pipeline.run(driver, queries or ())
            queries = following
    new = [
        NewCommit(
            table_id=one.table_id,
            commit=one.commit,
            is_base=one.before.latest_version == -1,
            stored=stored or await _stored(one.commit.content),
        )
        for one in run
    ]
    *_, moved = await pipeline.run(
        driver,
        [
            *(queries or ()),
            commit_rows.insert(new),
            *_set_states(run),
            # Last: it returns the counts, which the statements before it change.
            _move_heads(run),
        ],
    )
    counts = {as_uuid(row[0]): (as_int(row[1]), int(as_text(row[2]))) for row in moved}
    for one in run:
        if one.table_id not in counts:
            raise ServiceError(
                f"the head of table {one.table_id} is not before version {one.version} any more"
            )
        metadata = one.effects.metadata or one.before.metadata
        if await offload.run(
            one.weight,
            partial(
                leaves_unpartitioned, leaves_others=counts[one.table_id][0] > one.effects.opened
            ),
            one.before.metadata,
            metadata,
            one.effects.files.values(),
        ):
            await unindex_unpartitioned(driver, one.table_id, at=one.version)
    return counts


def _rows(run: Sequence[Staged], *, apart: bool) -> Iterator[list[Query]]:
    """The statements for the rows of files, application transactions and domains. Those that come
    together are packed in milliseconds: with `apart` one statement's, else what a pipeline takes.
    """
    queries: list[Query] = []
    for piece in file_rows.pieces(_changes(run)):
        if queries:
            yield queries
        queries = file_rows.close_and_open(piece)
    for query in chain(set_app_transactions(run_txns(run)), set_domains(run_domains(run))):
        if apart:
            yield queries
            queries = []
        queries.append(query)
    yield queries


def _next(rows: Iterator[list[Query]]) -> list[Query] | None:
    return next(rows, None)


def _changes(run: Sequence[Staged]) -> Iterator[FileChange]:
    for one in run:
        for key, add in one.effects.files.items():
            yield FileChange(one.table_id, one.version, key, add, one.effects.deleted_ms(key))


async def _stored(content: Content | None) -> bytes | None:
    """Long content as it is stored; None for any other content."""
    if content is None or (isinstance(content, bytes) and len(content) < LONG_CONTENT):
        return None
    return await asyncio.to_thread(compressed, content)


async def _write_bulk(driver: Driver, one: Staged) -> bytes:
    """Write the files of a very large commit, and return its content as it is stored. Both are done
    at once: one takes seconds of the database's time, the other seconds of this process's."""
    content = one.commit.content
    if content is None:
        raise ValueError("a commit that was proposed has its bytes")
    compressing = asyncio.create_task(asyncio.to_thread(compressed, content))
    with offload.sharing:
        try:
            await bulk_files.write(driver, one.table_id, one.version, one.effects.bulk)
        finally:
            await asyncio.wait([compressing])
    return compressing.result()


def _set_states(run: Sequence[Staged]) -> Iterator[Query]:
    """Write both protocol and metadata at each version that changes either."""
    for one in run:
        if one.effects.protocol is None and one.effects.metadata is None:
            continue
        head = head_after(one)
        state = (bytea(_encoded(head.protocol)), bytea(_encoded(head.metadata)))
        yield Query(_INSERT_STATE, uuid(one.table_id), int8(one.version), *state)
        yield Query(_SET_STATE, *state, uuid(one.table_id))


class _Move(msgspec.Struct, frozen=True, kw_only=True):
    """How the head of a table moves; `size` is a text, since it may exceed any integer type."""

    id: UUID
    head: int
    through: int
    published: int
    latest_timestamp: int
    files: int
    size: str


def _move_heads(run: Sequence[Staged]) -> Query:
    of_table: defaultdict[UUID, list[Staged]] = defaultdict(list)
    for one in run:
        of_table[one.table_id].append(one)
    moves = [
        _Move(
            id=table_id,
            head=move[0].before.latest_version,
            through=move[-1].version,
            published=_published(move),
            latest_timestamp=move[-1].commit.record.timestamp,
            files=sum(one.effects.opened for one in move),
            size=str(sum(one.effects.opened_bytes for one in move)),
        )
        for table_id, move in of_table.items()
    ]
    return Query(_MOVE_HEADS, records(moves))


def _published(move: Sequence[Staged]) -> int:
    return max((one.version for one in move if one.commit.published), default=-1)


def run_txns(run: Sequence[Staged]) -> dict[Keyed, tuple[int, Txn]]:
    """The last `txn` of each application, with its version."""
    return {
        (one.table_id, app_id): (one.version, txn)
        for one in run
        for app_id, txn in one.effects.txns.items()
    }


def run_domains(run: Sequence[Staged]) -> dict[Keyed, DomainRow]:
    return domain_rows(
        ((one.table_id, domain), one.version, action)
        for one in run
        for domain, action in one.effects.domains.items()
    )


def _encoded(action: Protocol | Metadata | None) -> bytes | None:
    return None if action is None else encode(action)
