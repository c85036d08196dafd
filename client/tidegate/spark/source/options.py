"""The options of `format("tidegate")`, parsed once."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Self

from tidegate.lake import TOKEN_VARIABLE, URL_VARIABLE, Lake, connect
from tidegate.spark.errors import UnsupportedSession
from tidegate_protocol.base.text import meant

STREAMING_NAMES = ("checkpointlocation", "queryname")
"""What Spark's own options of a streaming query are called here: it hands them to the sink, too."""
_NAMES = ("path", "table", "url", "token", "where", "version", "timestamp", "readVersion")

OF_READS: Mapping[str, str] = MappingProxyType(
    {"versionAsOf": "version", "timestampAsOf": "timestamp"}
)
OF_OVERWRITES: Mapping[str, str] = MappingProxyType({"replaceWhere": "where"})
"""Delta's names of options, and ours."""


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
    `timestamp` say what to read, neither the latest version; `read_version` is the one at which
    rows that are written were read of the table, None where they are of elsewhere. `chosen` are
    those of one kind of read or write, not parsed yet."""

    service: Service
    table: str
    where: str | None
    version: int | None
    timestamp: datetime | int | None
    read_version: int | None
    chosen: Mapping[str, str]

    @classmethod
    def parse(
        cls,
        options: Mapping[str, str],
        *,
        application_id: str | None = None,
        passed_over: Iterable[str] = (),
        known: Sequence[str] = (),
        deltas: Mapping[str, str] = OF_READS,
    ) -> Self:
        """Option names are matched in any case; `passed_over` are Spark's own, `known` those of
        this kind of read or write, and `deltas` what Delta calls others.

        Raises `UnsupportedSession` for a name that is none, because an option that is passed over
        could be one that guards rows.
        """
        given: dict[str, str] = {}
        same = {name.lower(): ours for name, ours in deltas.items()}
        for written, value in options.items():
            name = same.get(written.lower(), written.lower())
            if given.setdefault(name, value) != value:
                raise UnsupportedSession(
                    f"the options {name} and {written} are one, and were given two values; "
                    "expected one of them"
                )
        own = {name.lower() for name in known}
        names = [*_NAMES, *known, *deltas]
        if unknown := sorted(given.keys() - {*map(str.lower, names), *passed_over}):
            raise UnsupportedSession(
                f"format('tidegate') has no option {meant(unknown[0], names)} here; it has {names}"
            )
        table = given.get("path") or given.get("table")
        if not table:
            raise UnsupportedSession(
                "format('tidegate') needs a table: .save('catalog.schema.table') or .load(...)"
            )
        return cls(
            service=Service(
                url=given.get("url") or os.environ.get(URL_VARIABLE),
                token=given.get("token") or os.environ.get(TOKEN_VARIABLE),
                application_id=application_id,
            ),
            table=table,
            where=given.get("where"),
            version=_number(given, "version"),
            timestamp=moment(given.get("timestamp")),
            read_version=_number(given, "readVersion"),
            chosen={name: value for name, value in given.items() if name in own},
        )

    def check_not_for(self, what: str, *names: str) -> None:
        """Raise `UnsupportedSession` where one of these options is given, for which `what` has no
        use."""
        given = {
            "where": self.where,
            "version": self.version,
            "timestamp": self.timestamp,
            "readVersion": self.read_version,
        }
        for name in names:
            if given[name] is not None:
                raise UnsupportedSession(f"the option {name} is not for {what}")


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is not None and not text.isdecimal():
        raise UnsupportedSession(
            f"expected a number as option {name}, found {text!r}",
            error_class="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        )
    return None if text is None else int(text)


def moment(text: str | None) -> datetime | int | None:
    """A timestamp from an option: milliseconds, or ISO 8601. Raises `UnsupportedSession` for other
    texts, and for one without a zone: the process that plans a query does not know the session's.
    """
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise UnsupportedSession(
            f"expected a timestamp with its zone, such as 2026-01-31T00:00:00Z, found {text!r}",
            hint="give it a zone, or use Table.read, where the session's zone holds",
            error_class="DELTA_TIMESTAMP_INVALID",
        )
    return found
