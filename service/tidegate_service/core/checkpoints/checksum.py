"""What the checksum of a version says (PROTOCOL.md, "Version Checksum File")."""

from tidegate_protocol.checksum.checksum import Checksum, encode
from tidegate_protocol.checksum.histograms import deleted_histogram, histogram_of_bins
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.upkeep import SET_TRANSACTION_RETENTION
from tidegate_protocol.log.codec import with_fields
from tidegate_service.core.limits import UPKEEP_LIMITS, UpkeepLimits
from tidegate_service.core.observe.faults import ChecksumStep, FaultPoints, around
from tidegate_service.core.ports.checkpoints import Counted
from tidegate_service.core.ports.store.storage import Log

DELETION_VECTORS = "deletionVectors"


def may_have_checksum(counted: Counted, limits: UpkeepLimits = UPKEEP_LIMITS) -> bool:
    """Whether the version gets a checksum. The log may have no commit of a version that came from a
    checkpoint alone, and long metadata would be written again with every version."""
    metadata = counted.table.metadata
    assert metadata is not None, "it has a version"
    is_long = len(metadata.raw) > limits.checksum_metadata_bytes
    return counted.head.content_sha256 is not None and not is_long


async def put_checksum(log: Log, counted: Counted, faults: FaultPoints) -> None:
    """Put the checksum of a version that the log has, if the version gets one. A checksum of
    another writer is never overwritten."""
    if may_have_checksum(counted):
        async with around(faults, ChecksumStep.CHECKSUM_PUT):
            await log.put_checksum(counted.head.version, encode(checksum_of(counted)))


def checksum_of(counted: Counted) -> Checksum:
    """All that is known of a version. Raises `ValueError` where its counters differ from what its
    rows add up to: that is a defect, and must not be told to readers as the truth."""
    table = counted.table
    assert table.protocol is not None, "it has a version"
    assert table.metadata is not None, "it has a version"
    if counted.bins is not None:
        rows = sum(number for number, _ in counted.bins.values())
        if rows != table.num_files:
            raise ValueError(f"the index counts {table.num_files} files and has {rows}")
    cardinalities = counted.cardinalities
    has_vectors = DELETION_VECTORS in (table.protocol.writer_features or ())
    vectors = cardinalities if has_vectors else None
    # Which of them are still told depends on the reader's clock then.
    all_told = SET_TRANSACTION_RETENTION not in table.metadata.configuration
    properties = TableProperties.parse(table.metadata.configuration)
    return Checksum(
        txn_id=counted.head.transaction_id,
        table_size_bytes=table.size_bytes,
        num_files=table.num_files,
        num_deleted_records=None if vectors is None else sum(vectors),
        num_deletion_vectors=None if vectors is None else len(vectors),
        in_commit_timestamp=counted.head.timestamp if properties.in_commit_timestamps else None,
        set_transactions=tuple(counted.txns) if counted.txns is not None and all_told else None,
        domain_metadata=None if counted.domains is None else tuple(counted.domains),
        metadata=table.metadata,
        protocol=table.protocol,
        file_size_histogram=None if counted.bins is None else histogram_of_bins(counted.bins),
        deleted_record_counts_histogram=None
        if vectors is None
        else deleted_histogram(table.num_files - len(vectors), vectors),
        # As readers have them that put a snapshot together.
        all_files=None
        if counted.files is None
        else tuple(with_fields(file, {"dataChange": False}) for file in counted.files),
    )
