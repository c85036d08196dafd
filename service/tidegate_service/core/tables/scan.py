"""Which files a reader of a version needs, pruned by predicates."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.proposal.transaction import predicates_length
from tidegate_protocol.scan.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.scan.pruning import pruning_of
from tidegate_protocol.schema.table_schema import StructType, parse_schema, physical_name
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.instance.long_predicates import is_long, weighed
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.ports.files.scanned import ahead
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.tables.cutting import Cut
from tidegate_service.core.tables.history import no_such_version
from tidegate_service.core.tables.lookup import get_head

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LONG_SCHEMA = 16 * 1024
"""In characters. A longer one is parsed, and looked into, in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """`version` or `timestamp` (ms; the latest version at or before it), else the latest.
    A file is returned if any of the predicates may match a row of it, or if there are none.
    With `columns`, the statistics of the files are cut down to these top-level columns."""

    version: int | None = None
    timestamp: int | None = None
    predicates: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A version's files in batches, with the protocol and metadata that they are read by. A file
    is its `add` action's line in the log, the bytes it came with unless its statistics are cut."""

    table: TableHead
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata
    files: AsyncGenerator[Sequence[bytes], None]


async def scan(context: Context, ref: str, request: ScanRequest) -> Scan:
    """Raises `NotFound` for the table or version and `Refused` (`invalid-predicate`, `too-large`),
    all before the first file is read. Its files raise `Refused` (`invalid-path`) where another
    writer named one that the caller must not be led to."""
    table = await get_head(context, ref)
    version = await _version(context, table, request)
    # What the version had may be longer than what the head has.
    async with context.wide_tables.turn(context.who):
        state = await context.index.state_at(table.id, version)
    commit = await context.index.glance_at_commit(table.id, version)
    if state is None or commit is None or state.protocol is None or state.metadata is None:
        raise no_such_version(table, version)
    share = context.scan_threads.of(context.caller.principal.name)
    is_wide = len(state.metadata.schema_string) > _LONG_SCHEMA

    async def read(work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        return await share.run(work, *args) if is_wide else work(*args)

    schema = await read(parse_schema, state.metadata.schema_string)
    terms = await weighed(share, request.predicates)
    predicates = await _predicates(
        context,
        request.predicates,
        schema,
        state.metadata.partition_columns,
        in_threads=is_wide,
    )
    cut = Cut(
        pruning=await read(pruning_of, predicates),
        terms=terms,
        share=share,
        columns=None if request.columns is None else await read(_columns, request.columns, schema),
        paths=DataPaths(
            location=table.location, policy=context.locations, reader=context.caller.principal
        ),
    )
    return Scan(
        table=table,
        version=version,
        timestamp=commit.timestamp,
        protocol=state.protocol,
        metadata=state.metadata,
        files=_files(context, table.id, version, cut),
    )


async def _version(context: Context, table: TableHead, request: ScanRequest) -> int:
    if request.version is not None and request.timestamp is not None:
        raise Refused("expected a version or a timestamp, found both", code=Code.INVALID_REQUEST)
    if request.timestamp is not None:
        found = await context.index.version_at(table.id, request.timestamp)
        if found is None:
            raise NotFound(
                f"table {table.name} has no version at or before the timestamp "
                f"{request.timestamp}; the first one here is {table.first_version}",
                code=Code.VERSION_NOT_FOUND,
            )
        # One that came meanwhile is behind the head that may be told.
        return min(found, table.latest_version)
    version = table.latest_version if request.version is None else request.version
    if not table.first_version <= version <= table.latest_version:
        raise no_such_version(table, version)
    return version


def _columns(names: tuple[str, ...], schema: StructType) -> frozenset[str]:
    fields = {field.name.lower(): physical_name(field) for field in schema.fields}
    for index, name in enumerate(names):
        if name.lower() not in fields:
            raise Refused(
                f"columns[{index}]: the table has no column {excerpt(name)}; "
                f"it has {excerpt(', '.join(field.name for field in schema.fields))}",
                code=Code.INVALID_REQUEST,
            )
    return frozenset(fields[name.lower()] for name in names)


async def _predicates(
    context: Context,
    texts: tuple[str, ...],
    schema: StructType,
    partition_columns: tuple[str, ...],
    *,
    in_threads: bool,
) -> tuple[Predicate, ...]:
    """The predicates, long ones parsed one by one in threads, so that no more is parsed once the
    caller has left."""
    threads, principal = context.long_predicates.threads, context.caller.principal.name
    in_threads = in_threads or is_long(texts)
    parsed = []
    for index, text in enumerate(texts):
        parse = partial(parse_predicate, text, schema, partition_columns)
        try:
            if in_threads:
                parsed.append(await threads.read(principal, predicates_length([text]), parse))
            else:
                parsed.append(parse())
        except InvalidPredicate as error:
            raise Refused(f"predicates[{index}]: {error}", code=Code.INVALID_PREDICATE) from None
    return tuple(parsed)


async def _files(
    context: Context, table_id: str, version: int, cut: Cut
) -> AsyncGenerator[Sequence[bytes], None]:
    if cut.pruning is not None and not cut.pruning.predicates:
        return
    stored = context.index.stored_files(table_id, version, cut.wanted)
    principal = context.caller.principal.name
    async with aclosing(ahead(stored, context.scan_pages, principal)) as batches:
        async for batch in batches:
            async for lines in cut.in_pieces(batch):
                yield lines
