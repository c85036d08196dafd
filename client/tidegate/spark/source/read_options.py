"""The options of reading through the data source, in batch and as a stream, by Delta's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.source.options import moment

FEED_NAMES = (
    "readChangeFeed",
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
)
"""Those of a batch."""
STREAM_NAMES = (
    "readChangeFeed",
    "startingVersion",
    "startingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "failOnDataLoss",
)
READ_NAMES = tuple(dict.fromkeys((*FEED_NAMES, *STREAM_NAMES)))
"""Of either: Spark asks for the schema before it says which it is."""
MAX_FILES = 1000
"""Of a batch of a stream, where no limit is given, as in Delta."""
_LATEST = "latest"
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """Which versions' changes a batch reads."""

    from_version: int | None
    to_version: int | None
    from_timestamp: datetime | int | None
    to_timestamp: datetime | int | None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self | None:
        """From options by their names in lower case; None where the feed is not asked for. Raises
        `UnsupportedSession`."""
        if not is_feed(given):
            others = [name for name in FEED_NAMES[1:] if name.lower() in given]
            if others:
                raise UnsupportedSession(
                    f"the options {others} are for readChangeFeed and for streams; expected "
                    "readChangeFeed = true with them"
                )
            return None
        return cls(
            from_version=_number(given, "startingVersion"),
            to_version=_number(given, "endingVersion"),
            from_timestamp=moment(given.get("startingtimestamp")),
            to_timestamp=moment(given.get("endingtimestamp")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Where a stream begins, how much a batch takes, and which commits it goes past.

    `starts_behind` is `startingVersion` `latest`: with the version after the latest one.
    """

    is_feed: bool = False
    from_version: int | None = None
    starts_behind: bool = False
    from_timestamp: datetime | int | None = None
    max_files: int | None = None
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """From options by their names in lower case. Raises `UnsupportedSession`."""
        if "startingversion" in given and "startingtimestamp" in given:
            raise UnsupportedSession(
                "Please either provide 'startingVersion' or 'startingTimestamp'",
                error_class="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            )
        is_latest = given.get("startingversion", "").lower() == _LATEST
        max_bytes = given.get("maxbytespertrigger")
        return cls(
            is_feed=is_feed(given),
            from_version=None if is_latest else _number(given, "startingVersion"),
            starts_behind=is_latest,
            from_timestamp=moment(given.get("startingtimestamp")),
            max_files=_number(given, "maxFilesPerTrigger", least=1),
            max_bytes=None if max_bytes is None else _bytes(max_bytes),
            ignore_deletes=_switch(given, "ignoreDeletes", default=False),
            ignore_changes=_switch(given, "ignoreChanges", default=False),
            skip_change_commits=_switch(given, "skipChangeCommits", default=False),
            fail_on_data_loss=_switch(given, "failOnDataLoss", default=True),
        )


def is_feed(given: Mapping[str, str]) -> bool:
    """Whether the change data feed is asked for, and not the table's rows."""
    return _switch(given, "readChangeFeed", default=False)


def _switch(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise _illegal(f"expected true or false as option {name}, found {text!r}")
    return text == "true"


def _number(given: Mapping[str, str], name: str, *, least: int = 0) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise _illegal(f"expected a number of at least {least} as option {name}, found {text!r}")
    return int(text)


def _bytes(text: str) -> int:
    """A number of bytes as Spark writes it: `1024`, `10m`, `1gb`."""
    plain = text.strip().lower()
    number = plain.rstrip("bkmgt")
    unit = plain[len(number) :].removesuffix("b") or "b"
    if not number.isdecimal() or int(number) == 0 or unit not in _UNITS:
        raise _illegal(
            f"expected a number of bytes such as 10m as option maxBytesPerTrigger, found {text!r}"
        )
    return int(number) * _UNITS[unit]


def _illegal(detail: str) -> UnsupportedSession:
    return UnsupportedSession(detail, error_class="DELTA_ILLEGAL_OPTION")
