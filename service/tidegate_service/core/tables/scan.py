"""Which files a reader of a version needs, pruned by predicates."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from tidegate_protocol.actions import Metadata, Protocol
from tidegate_protocol.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.problems import Code
from tidegate_protocol.pruning import Pruning, pruning_of
from tidegate_protocol.schema import StructType, parse_schema, physical_name
from tidegate_protocol.spooled import statistics_in
from tidegate_protocol.text import excerpt
from tidegate_service.core.context import Context
from tidegate_service.core.data_paths import DataPaths
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.history import no_such_version
from tidegate_service.core.ports import Index
from tidegate_service.core.records import TableRecord
from tidegate_service.core.scanned import StoredFiles, Wanted, ahead
from tidegate_service.core.tables import get_table

_AT_ONCE = 100
"""Files that are judged in a millisecond or so."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_NULL = b"null"


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

    table: TableRecord
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata
    files: AsyncIterator[Sequence[bytes]]


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
    cut = _Cut(
        pruning=pruning_of(predicates),
        columns=None if request.columns is None else _columns(request.columns, schema),
        paths=DataPaths(location=table.location, policy=context.locations),
    )
    return Scan(
        table=table,
        version=version,
        timestamp=commit.timestamp,
        protocol=state.protocol,
        metadata=state.metadata,
        files=_files(context.index, table.id, version, cut),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What is left of the index's files for a reader."""

    pruning: Pruning | None
    columns: frozenset[str] | None
    paths: DataPaths

    @property
    def wanted(self) -> Wanted:
        if self.pruning is None:
            return Wanted()
        return Wanted(
            partitions=self.pruning.needs_partition if self.pruning.by_partition else None,
            with_statistics=self.pruning.by_file,
        )

    def lines(self, batch: StoredFiles) -> Sequence[bytes]:
        if self.pruning is not None and self.pruning.by_file:
            batch = batch.some(self.pruning.needed(batch.partitions, _statistics(batch)))
        self.paths.check_stored(batch)
        if self.columns is None:
            return batch.actions
        return [_narrowed(line, self.columns) for line in batch.actions]


async def _files(
    index: Index, table_id: str, version: int, cut: _Cut
) -> AsyncIterator[Sequence[bytes]]:
    if cut.pruning is not None and not cut.pruning.predicates:
        return
    async with aclosing(ahead(index.stored_files(table_id, version, cut.wanted))) as batches:
        async for batch in batches:
            if len(batch.actions) <= _AT_ONCE:
                lines = cut.lines(batch)
            else:
                # Elsewhere, so that thousands of files do not hold up everybody's requests.
                lines = await asyncio.to_thread(cut.lines, batch)
            if lines:
                yield lines


def _statistics(batch: StoredFiles) -> Sequence[str | None]:
    return [
        statistics_in(line) if known is None else known
        for known, line in zip(batch.stats, batch.actions, strict=True)
    ]


def _narrowed(line: bytes, columns: frozenset[str]) -> bytes:
    """The line with the statistics of these columns only; as it is where another writer left no
    such thing."""
    body = _FIELDS.decode(_FIELDS.decode(line)["add"])
    try:
        statistics = _FIELDS.decode(_TEXT.decode(body.get("stats", _NULL)))
        cut: dict[str, object] = dict(statistics)
        for part in ("minValues", "maxValues", "nullCount"):
            if bytes(statistics.get(part, _NULL)) != _NULL:
                of_columns = _FIELDS.decode(statistics[part])
                cut[part] = {k: v for k, v in of_columns.items() if k in columns}
    except msgspec.DecodeError:
        return line
    return msgspec.json.encode({"add": {**body, "stats": msgspec.json.encode(cut).decode()}})
