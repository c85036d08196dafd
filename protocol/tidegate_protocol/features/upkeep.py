"""What table properties say of a log's upkeep (Delta: DeltaConfig.scala, MetadataCleanup.scala).

Values that other writers left there and that mean nothing here count as the defaults: nobody is
kept from the table by them. But nothing is deleted by a duration that cannot be read: what its
writer meant may be longer than the default.
"""

import re
from collections.abc import Mapping

from tidegate_protocol.features.properties import (
    CHECKPOINT_PROTECTION,
    MOST_CHECKPOINT_INTERVAL,
)
from tidegate_protocol.log.actions import Metadata, Protocol

CHECKPOINT_INTERVAL = "delta.checkpointInterval"
LOG_RETENTION = "delta.logRetentionDuration"
DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
EXPIRED_LOG_CLEANUP = "delta.enableExpiredLogCleanup"
SYMLINK_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
CHECKPOINT_PROTECTION_FEATURE = "checkpointProtection"

DEFAULT_CHECKPOINT_INTERVAL = 10
DAY_MS = 24 * 60 * 60 * 1000
DEFAULT_LOG_RETENTION_MS = 30 * DAY_MS
DEFAULT_DELETED_FILE_RETENTION_MS = 7 * DAY_MS
LONGEST_RETENTION_MS = 2**62
"""Longer than any log is old: readers hold such numbers in 64 bits."""

_UNITS_US = {
    "week": 7 * DAY_MS * 1000,
    "day": DAY_MS * 1000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
_PART = re.compile(rf"([0-9]{{1,18}})\s+({'|'.join(_UNITS_US)})s?\s*")
_INTERVAL = re.compile(rf"\s*(?:interval\s+)?((?:{_PART.pattern})+)")
_COUNT = re.compile(r"[0-9]{1,18}")


def checkpoint_interval(configuration: Mapping[str, str]) -> int:
    """After how many versions a checkpoint is due; at least 1, and at most
    `MOST_CHECKPOINT_INTERVAL`, whatever another writer has set."""
    text = configuration.get(CHECKPOINT_INTERVAL, "").strip()
    count = int(text) if _COUNT.fullmatch(text) else 0
    return min(count, MOST_CHECKPOINT_INTERVAL) or DEFAULT_CHECKPOINT_INTERVAL


def interval_ms(text: str | None) -> int | None:
    """The whole milliseconds of an interval such as `interval 7 days`; None for any other text."""
    found = None if text is None else _INTERVAL.fullmatch(text.lower())
    if found is None:
        return None
    parts = _PART.findall(found[1])
    whole_us = sum(int(count) * _UNITS_US[unit] for count, unit in parts)
    return min(whole_us // 1000, LONGEST_RETENTION_MS)


def log_retention_ms(configuration: Mapping[str, str]) -> int | None:
    """How long versions of the log are kept at least, in ms; None where that cannot be read."""
    if LOG_RETENTION not in configuration:
        return DEFAULT_LOG_RETENTION_MS
    return interval_ms(configuration[LOG_RETENTION])


def deleted_file_retention_ms(configuration: Mapping[str, str]) -> int:
    """How long removed files are kept at least, in ms: for ever, where that cannot be read."""
    if DELETED_FILE_RETENTION not in configuration:
        return DEFAULT_DELETED_FILE_RETENTION_MS
    found = interval_ms(configuration[DELETED_FILE_RETENTION])
    return LONGEST_RETENTION_MS if found is None else found


def set_transaction_retention_ms(configuration: Mapping[str, str]) -> int | None:
    """How long application transactions are kept, in ms; None for ever, as where that cannot be
    read."""
    return interval_ms(configuration.get(SET_TRANSACTION_RETENTION))


def cleans_expired_logs(configuration: Mapping[str, str]) -> bool:
    """Whether versions may be deleted once they are older than that."""
    return configuration.get(EXPIRED_LOG_CLEANUP, "true").strip().lower() != "false"


def writes_manifests(configuration: Mapping[str, str]) -> bool:
    """Whether symlink manifests are written after commits."""
    return configuration.get(SYMLINK_MANIFESTS, "").strip().lower() == "true"


def protected_before(protocol: Protocol, metadata: Metadata) -> int:
    """The version before which the log may be cleaned up only as a whole, by the feature
    `checkpointProtection`; 0 where it may be anywhere."""
    if CHECKPOINT_PROTECTION_FEATURE not in (protocol.writer_features or ()):
        return 0
    text = metadata.configuration.get(CHECKPOINT_PROTECTION, "").strip()
    return int(text) if _COUNT.fullmatch(text) else 0
