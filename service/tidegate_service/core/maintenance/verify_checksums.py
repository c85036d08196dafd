"""Comparing a log's version checksums, ours and others', with the index.

The newest one is compared with the files of its version. Of the others, it is what the index knows
of each version by itself: protocol, metadata, transaction id and timestamp.
"""

from collections.abc import AsyncIterator, Collection

from msgspec.structs import replace

from tidegate_protocol.checksum.checksum import Checksum, InvalidChecksum, decode, differences
from tidegate_protocol.checksum.histograms import (
    SIZE_BINS,
    deleted_histogram,
    histogram_of_sizes,
)
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.file_names import checksum_name
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.index import Log, UnreadableFile
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.sharing import offload
from tidegate_service.core.upkeep.checksums import checksum_of


async def checksum_differences(
    context: Context, table: TableRecord, versions: Collection[int]
) -> AsyncIterator[tuple[int, str]]:
    """For each checksum of these versions that says otherwise than the index: its version, and what
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
                # Made anew meanwhile, which the caller finds out.
                continue
        for name, said in differences(found, known).items():
            yield version, f"{name} of its checksum is not what the index has: {said}"


async def _read(log: Log, version: int) -> Checksum | None:
    """None where it was cleaned up since the log was listed."""
    content = await log.read_file(checksum_name(version))
    if content is None:
        return None
    return await offload.run(offload.weight_of_log(content), decode, content)


async def _known(
    context: Context, table: TableRecord, version: int, found: Checksum
) -> Checksum | None:
    """What the index says of a version without a look at its files, whose numbers are taken as
    found. None where it has no such version, which the caller finds out."""
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
    context: Context, table: TableRecord, version: int, found: Checksum, known: Checksum
) -> Checksum:
    """Also what the index knows of the version's files; of the head, all else that it adds up to.
    Raises `NotFound` where the index was made anew."""
    sizes: list[int] = []
    cardinalities: list[int] = []
    files: list[Add] = []
    async for batch in context.index.files(table.id, version):
        sizes += [file.size for file in batch]
        vectors = [file.deletion_vector for file in batch]
        cardinalities += [vector.cardinality for vector in vectors if vector is not None]
        if found.all_files is not None and len(files) <= len(found.all_files):
            files += batch
    histogram = found.file_size_histogram
    bins = SIZE_BINS if histogram is None else histogram.sorted_bin_boundaries
    known = replace(
        known,
        num_files=len(sizes),
        table_size_bytes=sum(sizes),
        num_deleted_records=sum(cardinalities),
        num_deletion_vectors=len(cardinalities),
        file_size_histogram=await offload.run(len(sizes), histogram_of_sizes, sizes, bins),
        deleted_record_counts_histogram=deleted_histogram(
            len(sizes) - len(cardinalities), cardinalities
        ),
        all_files=tuple(files),
    )
    counted = await context.upkeep.counted(table.id)
    if counted is None or counted.table.latest_version != version:
        return known
    head = checksum_of(counted)
    return replace(
        known, set_transactions=head.set_transactions, domain_metadata=head.domain_metadata
    )
