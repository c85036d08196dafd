"""Versions that need features which the table has no more: `checkpointProtection` is there for them
(PROTOCOL.md, "Checkpoint Protection")."""

from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.storage.opening import store_at
from tidegate_protocol.features.properties import CHECKPOINT_PROTECTION
from tidegate_protocol.features.upkeep import LOG_RETENTION
from tidegate_protocol.log.file_names import (
    CheckpointFile,
    CommitFile,
    CompactedFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse,
)
from tidegate_protocol.log.paths import LOG_FOLDER

_OF_VERSIONS = (CommitFile, CheckpointFile, MultiPartCheckpoint, V2Checkpoint)


def check_history_gone(alteration: Alteration, *, truncate_history: bool) -> None:
    """Raise `InvalidCommand` where the log still has versions that need features which the
    table has no more."""
    if not truncate_history:
        raise InvalidCommand(
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            "Could not drop the Checkpoint Protection feature. This feature can only be dropped by "
            "truncating history",
            hint="DROP FEATURE checkpointProtection TRUNCATE HISTORY",
        )
    configuration = alteration.metadata.configuration
    protected_until = int(configuration.get(CHECKPOINT_PROTECTION, "0"))
    if _has_versions_before(alteration, protected_until):
        retention = configuration.get(LOG_RETENTION, "its default")
        raise InvalidCommand(
            "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
            "The operation did not succeed because there are still traces of dropped features in "
            f"the table history: versions before {protected_until}. CheckpointProtection cannot be "
            "dropped until these historical versions have expired",
            hint=f"wait until the log is cleaned up ({LOG_RETENTION} = {retention})",
        )


def _has_versions_before(alteration: Alteration, version: int) -> bool:
    """Whether the log has what tells of versions before this one, or is yet to have it."""
    if alteration.transaction.table.head().published_version < version - 1:
        return True
    store = store_at(alteration.layout.location, alteration.spark)
    found = (parse(file.path.rpartition("/")[2]) for file in store.files(LOG_FOLDER))
    return any(
        (isinstance(file, CompactedFile) and file.start < version)
        or (isinstance(file, _OF_VERSIONS) and file.version < version)
        for file in found
    )
