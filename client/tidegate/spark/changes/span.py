"""Which versions a feed is asked for, with Delta's answers to questions that have none."""

from dataclasses import dataclass
from datetime import datetime

from tidegate.errors import VersionNotFound
from tidegate.handle import TableHandle
from tidegate.models import Scan
from tidegate.spark.errors import ChangesUnavailable

Timestamp = datetime | int
_NOTHING = "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The versions from `first` to `last`, both included; `latest` is the table's."""

    first: int
    last: int
    latest: int


def span_of(
    table: TableHandle,
    *,
    from_version: int | None = None,
    to_version: int | None = None,
    from_timestamp: Timestamp | None = None,
    to_timestamp: Timestamp | None = None,
) -> Span:
    """The versions between a start, which has to be given, and an end, the latest without one.

    A timestamp is one of the moments at which versions were committed: the first at or after it
    begins, the last at or before it ends. An end behind the latest version is that. Raises
    `ChangesUnavailable` for a start behind the latest version, an end before the start, two starts
    or ends, and an end before every version.
    """
    _check_one(from_version, from_timestamp, "starting")
    _check_one(to_version, to_timestamp, "ending")
    latest = table.version
    if from_version is not None:
        first = from_version
        if first > latest:
            raise ChangesUnavailable(
                f"Start version {first} for change data feed exceeds the latest table version "
                f"{latest}.",
                error_class="DELTA_CDC_START_VERSION_AFTER_LATEST",
            )
    elif from_timestamp is not None:
        first = first_version_at(table, from_timestamp)
    else:
        raise ChangesUnavailable(
            "No startingVersion or startingTimestamp provided for CDC read.",
            error_class="DELTA_NO_START_FOR_CDC_READ",
        )
    if to_timestamp is not None:
        to_version = _last_version_at(table, to_timestamp)
    last = latest if to_version is None else min(to_version, latest)
    if last < first:
        raise ChangesUnavailable(
            f"CDC range from start {first} to end {last} was invalid. End cannot be before start.",
            error_class="DELTA_INVALID_CDC_RANGE",
        )
    return Span(first=first, last=last, latest=latest)


def first_version_at(table: TableHandle, timestamp: Timestamp) -> int:
    """The first version that was committed at or after a moment. Raises `ChangesUnavailable` where
    none was."""
    try:
        before = table.scan(_NOTHING, timestamp=timestamp)
    except VersionNotFound:
        return _earliest(table)
    if before.timestamp == _milliseconds(timestamp):
        return before.version
    latest = table.head()
    if before.version >= latest.version:
        raise ChangesUnavailable(
            f"Timestamp {timestamp} is after the table's "
            f"latest version ({latest.version}, of {latest.timestamp} ms). Use a timestamp at or "
            "before that.",
            error_class="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        )
    return before.version + 1


def _last_version_at(table: TableHandle, timestamp: Timestamp) -> int:
    try:
        found: Scan = table.scan(_NOTHING, timestamp=timestamp)
    except VersionNotFound as error:
        raise ChangesUnavailable(
            f"The provided timestamp ({timestamp}) "
            f"is before the earliest version available to this table: {error.detail}",
            error_class="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        ) from None
    return found.version


def _earliest(table: TableHandle) -> int:
    """The first version whose commit can be read."""
    first = 0
    for commit in reversed(table.history()):
        if commit.content_sha256 is not None:
            return commit.version
        first = commit.version + 1
    return first


def _milliseconds(timestamp: Timestamp) -> int:
    if isinstance(timestamp, int):
        return timestamp
    return round(timestamp.timestamp() * 1000)


def _check_one(version: int | None, timestamp: Timestamp | None, which: str) -> None:
    if version is not None and timestamp is not None:
        raise ChangesUnavailable(
            f"Multiple {which} arguments provided for CDC read. "
            f"Please provide one of either {which}Timestamp or {which}Version.",
            error_class="DELTA_MULTIPLE_CDC_BOUNDARY",
        )
