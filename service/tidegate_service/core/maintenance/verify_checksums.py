"""Comparing a log's version checksums, ours and others', with the index.

The newest checksum is compared with the files of its version, too. The others are compared with
what the index knows of each version by itself: protocol, metadata, transaction id and timestamp.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Sequence

from msgspec.structs import replace

from tidegate_protocol.checksum.checksum import Checksum, InvalidChecksum, decode, differences
from tidegate_protocol.checksum.histograms import (
    DELETED_BINS,
    SIZE_BINS,
    DeletedRecordCountsHistogram,
    FileSizeHistogram,
    deleted_histogram,
    histogram_of_sizes,
)
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.file_names import checksum_name
from tidegate_service.core.checkpoints.checksum import checksum_of
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload

FILES = 5_000
"""Where a checksum names more files, they are only counted."""
BINS = 10_000
"""A histogram of sizes with more bins is not compared."""


async def checksum_differences(
    context: Context, table: TableHead, versions: Collection[int]
) -> AsyncIterator[tuple[int, str]]:
    """Which checksums of these versions differ from the index: the version of each, and what
    differs. Raises `Unavailable`."""
    log = context.storage.log(table.location, who=context.who)
    newest = max(versions, default=-1)
    for version in sorted(versions):
        try:
            found = await _read(log, version)
        except (InvalidChecksum, UnreadableFile) as error:
            yield version, f"its checksum cannot be read: {error}"
            continue
        known = None if found is None else await _known(context, table, version, found)
        if found is None or known is None:
            continue
        if version == newest:
            try:
                known = await _with_files(context, table, version, found, known)
            except NotFound:
                # The index was made anew meanwhile: the caller finds that out.
                continue
        weight = offload.HEAVY if _has_many(found) else 0
        for name, said in (await offload.run(weight, differences, found, known)).items():
            yield version, f"{name} of its checksum is not what the index has: {said}"


async def _read(log: Log, version: int) -> Checksum | None:
    """None where it was cleaned up since the log was listed."""
    content = await log.read_file(checksum_name(version))
    if content is None:
        return None
    return await offload.run(offload.weight_of_log(content), decode, content)


async def _known(
    context: Context, table: TableHead, version: int, found: Checksum
) -> Checksum | None:
    """What the index says of a version without reading its files; the numbers of files are those of
    the checksum. None where the index has no such version: the caller finds that out."""
    record = await context.index.commit(table.id, version)
    state = await context.index.state_at(table.id, version)
    if record is None or state is None or state.metadata is None or state.protocol is None:
        return None
    properties = TableProperties.parse(state.metadata.configuration)
    return Checksum(
        txn_id=record.transaction_id,
        table_size_bytes=found.table_size_bytes,
        num_files=found.num_files,
        in_commit_timestamp=record.timestamp if properties.in_commit_timestamps else None,
        metadata=state.metadata,
        protocol=state.protocol,
    )


async def _with_files(
    context: Context, table: TableHead, version: int, found: Checksum, known: Checksum
) -> Checksum:
    """The same, with what the index knows of the version's files and, at the head, all else that
    the table adds up to. Raises `NotFound` where the index was made anew."""
    histogram = found.file_size_histogram
    bins = SIZE_BINS if histogram is None else histogram.sorted_bin_boundaries
    files = FilesInSum(bins, named=None if found.all_files is None else len(found.all_files))
    async for batch in context.index.files(table.id, version):
        await offload.run(len(batch), files.take, batch)
    known = replace(
        known,
        num_files=files.count,
        table_size_bytes=files.size,
        num_deleted_records=files.deleted_records,
        num_deletion_vectors=files.vectors,
        file_size_histogram=files.sizes,
        deleted_record_counts_histogram=files.deleted,
        all_files=files.all,
    )
    counted = await context.upkeep.counted(table.id)
    if counted is None or counted.table.latest_version != version:
        return known
    head = checksum_of(counted)
    return replace(
        known, set_transactions=head.set_transactions, domain_metadata=head.domain_metadata
    )


def _has_many(checksum: Checksum) -> bool:
    return bool(checksum.all_files or checksum.set_transactions or checksum.domain_metadata)


class FilesInSum:
    """What the files of a version add up to, counted batch by batch into the bins of a checksum's
    histogram. The files themselves are kept, too, where the checksum names few (`named`)."""

    def __init__(self, bins: tuple[int, ...], *, named: int | None) -> None:
        self.count = self.size = self.deleted_records = self.vectors = 0
        self._bins = bins if len(bins) <= BINS else None
        self._counts = [0] * len(self._bins or ())
        self._totals = [0] * len(self._bins or ())
        self._deleted = [0] * len(DELETED_BINS)
        self._named = named if named is not None and named <= FILES else None
        self._files: list[Add] = []

    def take(self, batch: Sequence[Add]) -> None:
        sizes = [file.size for file in batch]
        vectors = [file.deletion_vector for file in batch]
        cardinalities = [vector.cardinality for vector in vectors if vector is not None]
        self.count += len(batch)
        self.size += sum(sizes)
        self.vectors += len(cardinalities)
        self.deleted_records += sum(cardinalities)
        if self._bins is not None:
            histogram = histogram_of_sizes(sizes, self._bins)
            self._counts = _added(self._counts, histogram.file_counts)
            self._totals = _added(self._totals, histogram.total_bytes)
        deleted = deleted_histogram(len(batch) - len(cardinalities), cardinalities)
        self._deleted = _added(self._deleted, deleted.deleted_record_counts)
        # One that is too many is enough to tell that they are not the same.
        if self._named is not None and len(self._files) <= self._named:
            self._files += batch

    @property
    def sizes(self) -> FileSizeHistogram | None:
        if self._bins is None:
            return None
        return FileSizeHistogram(
            sorted_bin_boundaries=self._bins,
            file_counts=tuple(self._counts),
            total_bytes=tuple(self._totals),
        )

    @property
    def deleted(self) -> DeletedRecordCountsHistogram:
        return DeletedRecordCountsHistogram(deleted_record_counts=tuple(self._deleted))

    @property
    def all(self) -> tuple[Add, ...] | None:
        return None if self._named is None else tuple(self._files)


def _added(sums: Iterable[int], more: Iterable[int]) -> list[int]:
    return [one + other for one, other in zip(sums, more, strict=True)]
