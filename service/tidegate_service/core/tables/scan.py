"""Which files a reader of a version needs, pruned by predicates."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence, Sized
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.log.spooled import statistics_in
from tidegate_protocol.scan.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.scan.pruning import Pruning, pruning_of
from tidegate_protocol.schema.table_schema import StructType, parse_schema, physical_name
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.instance.long_predicates import is_long, weighed
from tidegate_service.core.log.data_paths import DataPaths
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.scanned import StoredFiles, Wanted, ahead
from tidegate_service.core.sharing.pools import Rests, Share
from tidegate_service.core.tables.history import no_such_version
from tidegate_service.core.tables.lookup import get_head

S = TypeVar("S", bound=Sized)
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LONG_SCHEMA = 16 * 1024
"""In characters. A longer one is parsed, and looked into, in a thread."""
_INLINE = 1_000
"""Terms of predicates times files that are evaluated in a millisecond or so."""
_INLINE_BYTES = 256 * 1024
"""So much of log lines, or of partition values, is looked through in as long."""
_AT_ONCE = 20_000
"""The same of what a thread does before others have their turn, or nothing more is done because
the caller has gone."""

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
    commit = await context.index.commit(table.id, version)
    if state is None or commit is None or state.protocol is None or state.metadata is None:
        raise no_such_version(table, version)
    share = context.scan_threads.of(context.caller.principal.name)
    is_wide = len(state.metadata.schema_string) > _LONG_SCHEMA

    async def read(work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        return await share.run(work, *args) if is_wide else work(*args)

    schema = await read(parse_schema, state.metadata.schema_string)
    terms = await weighed(share, request.predicates)
    predicates = await _predicates(
        share if is_wide or is_long(request.predicates) else None,
        request.predicates,
        schema,
        state.metadata.partition_columns,
    )
    cut = _Cut(
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
    share: Share | None,
    texts: tuple[str, ...],
    schema: StructType,
    partition_columns: tuple[str, ...],
) -> tuple[Predicate, ...]:
    """In threads, where there are any, one by one: whoever leaves has no further one parsed."""
    parsed = []
    for index, text in enumerate(texts):
        try:
            if share is not None:
                found = await share.run(
                    partial(parse_predicate, text, schema, partition_columns, pause=Rests())
                )
            else:
                found = parse_predicate(text, schema, partition_columns)
            parsed.append(found)
        except InvalidPredicate as error:
            raise Refused(f"predicates[{index}]: {error}", code=Code.INVALID_PREDICATE) from None
    return tuple(parsed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What is left of the index's files for a reader. `terms` are those of all predicates; `share`
    is whose threads test them."""

    pruning: Pruning | None
    terms: int
    share: Share
    columns: frozenset[str] | None
    paths: DataPaths

    @property
    def wanted(self) -> Wanted:
        if self.pruning is None:
            return Wanted()
        return Wanted(
            partitions=self._needed_partitions if self.pruning.by_partition else None,
            with_statistics=self.pruning.by_file,
        )

    async def in_pieces(self, batch: StoredFiles) -> AsyncIterator[Sequence[bytes]]:
        """What is left of the batch, made in turn with what others ask for."""
        for piece in self._pieces(len(batch.actions)):
            part = batch.between(piece)
            lines = await self._run(self._lines, part, part.actions)
            if lines:
                yield lines

    async def _needed_partitions(self, values: Sequence[str]) -> Sequence[bool]:
        needed: list[bool] = []
        for piece in self._pieces(len(values)):
            part = values[piece.start : piece.stop]
            needed += await self._run(self._needed, part, part)
        return needed

    def _pieces(self, count: int) -> Iterator[range]:
        at_once = max(1, _AT_ONCE // self._work)
        return (range(count)[start : start + at_once] for start in range(0, count, at_once))

    async def _run(
        self, test: Callable[[S], T], files: S, looked_through: Sequence[bytes] | Sequence[str]
    ) -> T:
        few = len(files) * self._work <= _INLINE
        if few and sum(map(len, looked_through)) <= _INLINE_BYTES:
            return test(files)
        # Elsewhere, so that thousands of files, or giant ones, do not hold up everybody's requests.
        return await self.share.run(test, files)

    @property
    def _work(self) -> int:
        """Of one file. Without predicates it takes as much as judging it by ten terms."""
        return 10 + self.terms

    def _needed(self, values: Sequence[str]) -> list[bool]:
        assert self.pruning is not None
        rests, needed = Rests(), list[bool]()
        for each in values:
            rests()
            needed.append(self.pruning.needs_partition(each))
        return needed

    def _lines(self, batch: StoredFiles) -> Sequence[bytes]:
        if self.pruning is not None and self.pruning.by_file:
            stats = _statistics(batch)
            batch = batch.some(self.pruning.needed(batch.partitions, stats, pause=Rests()))
        self.paths.check_stored(batch)
        if self.columns is None:
            return batch.actions
        return [_narrowed(line, self.columns) for line in batch.actions]


async def _files(
    context: Context, table_id: str, version: int, cut: _Cut
) -> AsyncGenerator[Sequence[bytes], None]:
    if cut.pruning is not None and not cut.pruning.predicates:
        return
    stored = context.index.stored_files(table_id, version, cut.wanted)
    principal = context.caller.principal.name
    async with aclosing(ahead(stored, context.scan_pages, principal)) as batches:
        async for batch in batches:
            async for lines in cut.in_pieces(batch):
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
