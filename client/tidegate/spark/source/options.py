"""The options of `format("tidegate")`, parsed once."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from tidegate.lake import TOKEN_VARIABLE, URL_VARIABLE, Lake, connect
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.read.read import instant

STREAMING_NAMES = ("checkpointlocation", "queryname")
"""What Spark's own options of a streaming query are called here: it hands them to the sink, too."""
_NAMES = ("path", "table", "url", "token", "where", "version", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Which service to ask. The driver's environment is read where an option is missing, since
    what runs on other machines may have none."""

    url: str | None
    token: str | None = field(repr=False)
    application_id: str | None = None

    def connect(self) -> Lake:
        return connect(self.url, token=self.token, application_id=self.application_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """`table` is the full name or id, `where` a predicate over partition columns; `version` or
    `timestamp` say what to read, neither the latest version. `chosen` are those of one kind of read
    or write, not parsed yet."""

    service: Service
    table: str
    where: str | None
    version: int | None
    timestamp: datetime | int | None
    chosen: Mapping[str, str]

    @classmethod
    def parse(
        cls,
        options: Mapping[str, str],
        *,
        application_id: str | None = None,
        passed_over: Iterable[str] = (),
        known: Sequence[str] = (),
    ) -> Self:
        """Option names are matched in any case; `passed_over` are Spark's own, and `known` those of
        this kind of read or write.

        Raises `UnsupportedSession` for a name that is none, because an option that is passed over
        could be one that guards rows.
        """
        given = {name.lower(): value for name, value in options.items()}
        own = {name.lower() for name in known}
        if unknown := sorted(given.keys() - {*_NAMES, *passed_over, *own}):
            raise UnsupportedSession(
                f"format('tidegate') has no options {unknown} here; it has {[*_NAMES, *known]}"
            )
        table = given.get("path") or given.get("table")
        if not table:
            raise UnsupportedSession(
                "format('tidegate') needs a table: .save('catalog.schema.table') or .load(...)"
            )
        version, timestamp = given.get("version"), given.get("timestamp")
        if version is not None and not version.isdecimal():
            raise UnsupportedSession(f"expected a number as option version, found {version!r}")
        return cls(
            service=Service(
                url=given.get("url") or os.environ.get(URL_VARIABLE),
                token=given.get("token") or os.environ.get(TOKEN_VARIABLE),
                application_id=application_id,
            ),
            table=table,
            where=given.get("where"),
            version=None if version is None else int(version),
            timestamp=moment(timestamp),
            chosen={name: value for name, value in given.items() if name in own},
        )


def moment(text: str | None) -> datetime | int | None:
    """A timestamp from an option: milliseconds, or ISO 8601. Raises `ValueError`."""
    if text is None or not text.isdecimal():
        return instant(text)
    return int(text)
