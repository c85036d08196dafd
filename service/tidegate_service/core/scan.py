"""Which files a reader of a version needs, pruned by predicates."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from tidegate_protocol.actions import Add, Metadata, Protocol
from tidegate_protocol.codec import with_fields
from tidegate_protocol.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.problems import Code
from tidegate_protocol.schema import StructType, parse_schema, physical_name
from tidegate_protocol.statistics import FileStatistics, InvalidStatistics
from tidegate_protocol.text import excerpt
from tidegate_service.core.context import Context
from tidegate_service.core.data_paths import DataPaths
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.history import no_such_version
from tidegate_service.core.records import TableRecord
from tidegate_service.core.tables import get_table


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
    """A version's files in batches, with the protocol and metadata that they are read by."""

    table: TableRecord
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata
    files: AsyncIterator[Sequence[Add]]


async def scan(context: Context, ref: str, request: ScanRequest) -> Scan:
    """Raises `NotFound` for the table or version and `Refused` (`invalid-predicate`), all
    before the first file is read. Its files raise `Refused` (`invalid-path`) where another writer
    named one that readers must not be led to."""
    table = await get_table(context, ref)
    version = await _version(context, table, request)
    state = await context.index.state_at(table.id, version)
    commit = await context.index.commit(table.id, version)
    if state is None or commit is None or state.protocol is None or state.metadata is None:
        raise no_such_version(table, version)
    schema = parse_schema(state.metadata.schema_string)
    predicates = _predicates(request.predicates, schema, state.metadata.partition_columns)
    columns = None if request.columns is None else _columns(request.columns, schema)
    return Scan(
        table=table,
        version=version,
        timestamp=commit.timestamp,
        protocol=state.protocol,
        metadata=state.metadata,
        files=_pruned(
            context.index.files(table.id, version),
            predicates,
            columns,
            DataPaths(location=table.location, policy=context.locations),
        ),
    )


async def _version(context: Context, table: TableRecord, request: ScanRequest) -> int:
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
        return found
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
                f"it has {[field.name for field in schema.fields]}",
                code=Code.INVALID_REQUEST,
            )
    return frozenset(fields[name.lower()] for name in names)


def _predicates(
    texts: tuple[str, ...], schema: StructType, partition_columns: tuple[str, ...]
) -> tuple[Predicate, ...]:
    parsed = []
    for index, text in enumerate(texts):
        try:
            parsed.append(parse_predicate(text, schema, partition_columns))
        except InvalidPredicate as error:
            raise Refused(f"predicates[{index}]: {error}", code=Code.INVALID_PREDICATE) from None
    return tuple(parsed)


async def _pruned(
    batches: AsyncIterator[Sequence[Add]],
    predicates: tuple[Predicate, ...],
    columns: frozenset[str] | None,
    paths: DataPaths,
) -> AsyncIterator[Sequence[Add]]:
    async for batch in batches:
        kept = [add for add in batch if _may_match(add, predicates)] if predicates else batch
        for add in kept:
            paths.check(add)
        if kept:
            yield kept if columns is None else [_narrowed(add, columns) for add in kept]


def _may_match(add: Add, predicates: tuple[Predicate, ...]) -> bool:
    statistics = _statistics(add)
    return any(predicate.may_match(add.partition_values, statistics) for predicate in predicates)


def _statistics(add: Add) -> FileStatistics | None:
    """None where the file has none, or where a foreign writer left something else."""
    if add.stats is None:
        return None
    try:
        return FileStatistics.parse(add.stats)
    except InvalidStatistics:
        return None


def _narrowed(add: Add, columns: frozenset[str]) -> Add:
    if add.stats is None:
        return add
    statistics = json.loads(add.stats)
    for part in ("minValues", "maxValues", "nullCount"):
        if isinstance(statistics.get(part), dict):
            statistics[part] = {k: v for k, v in statistics[part].items() if k in columns}
    return with_fields(add, {"stats": json.dumps(statistics, separators=(",", ":"))})
