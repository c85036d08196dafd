"""What of a table uses a feature, taken away before the feature is dropped (Delta:
PreDowngradeTableFeatureCommand).

What would bring the feature back into use is switched off first, so that what others write from
then on is without it. Each step is a commit of its own, after which everybody may go on; where the
way ends early, the next call goes on from there.
"""

from collections.abc import Callable, Mapping

from tidegate.models import DataFile
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.features.backfill import Begin, in_batches
from tidegate.spark.alter.features.remove_mapping import remove_mapping
from tidegate.spark.alter.properties import set_properties, unset_properties
from tidegate.spark.optimize.optimize import reorg
from tidegate.spark.optimize.plan import Reorganized
from tidegate_protocol.features.known import COLUMN_MAPPING, ROW_TRACKING
from tidegate_protocol.features.properties import ENABLE_ROW_TRACKING
from tidegate_protocol.features.row_tracking import ROW_TRACKING_SUSPENDED
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.proposal.operations import ROW_TRACKING_UNBACKFILL
from tidegate_protocol.schema.data_types import TYPE_CHANGES, walk

ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
ENABLE_TYPE_WIDENING = "delta.enableTypeWidening"


def remove_traces(begin: Begin, feature: str) -> Metadata | None:
    """Take away what of the table's files needs the feature.

    Returns None where the service refuses to drop a feature that files use again. Where it does not
    look at that, returns the metadata under which no file can use the feature; whoever drops it
    has to find the same metadata. Raises what OPTIMIZE and `Transaction.commit` raise.
    """
    remove = _REMOVERS.get(feature)
    return None if remove is None else remove(begin)


def _vectors(begin: Begin) -> None:
    """The rows that vectors name are left out of files that are written anew."""
    alteration = begin()
    if ENABLE_DELETION_VECTORS in alteration.metadata.configuration:
        unset_properties(alteration, [ENABLE_DELETION_VECTORS], if_exists=True)
        alteration = begin()
    if any(file.deletion_vector is not None for file in alteration.live_files()):
        _reorganize(alteration, Reorganized.LEFTOVERS)


def _types(begin: Begin) -> Metadata:
    """Files get the types that columns have now."""
    alteration = begin()
    if ENABLE_TYPE_WIDENING in alteration.metadata.configuration:
        unset_properties(alteration, [ENABLE_TYPE_WIDENING], if_exists=True)
        alteration = begin()
    if any(TYPE_CHANGES in field.metadata for _, field, _ in walk(alteration.layout.schema)):
        _reorganize(alteration, Reorganized.OLDER_TYPES)
    return alteration.metadata


def _row_ids(begin: Begin) -> None:
    """No more ids are given out, and those that files have are taken away."""
    alteration = begin()
    off = {ENABLE_ROW_TRACKING: "false", ROW_TRACKING_SUSPENDED: "true"}
    if not alteration.layout.properties.row_tracking_suspended:
        set_properties(alteration, off, begin=begin)
        alteration = begin()
    in_batches(
        begin,
        alteration,
        chosen=_has_ids,
        changed=lambda file: with_fields(
            file, {"dataChange": False, "baseRowId": None, "defaultRowCommitVersion": None}
        ),
        operation=ROW_TRACKING_UNBACKFILL,
    )


def _has_ids(file: DataFile) -> bool:
    return (file.base_row_id, file.default_row_commit_version) != (None, None)


def _reorganize(alteration: Alteration, what: Reorganized) -> None:
    reorg(
        alteration.transaction.table,
        alteration.spark,
        what=what,
        user_metadata=alteration.user_metadata,
    )


_REMOVERS: Mapping[str, Callable[[Begin], Metadata | None]] = {
    COLUMN_MAPPING: remove_mapping,
    "deletionVectors": _vectors,
    ROW_TRACKING: _row_ids,
    "typeWidening": _types,
    "typeWidening-preview": _types,
}
