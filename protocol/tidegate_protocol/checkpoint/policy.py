"""What a table asks of its checkpoints (Delta: DeltaConfig.scala, CheckpointPolicy.scala)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_protocol.log.actions import Metadata, Protocol

V2_FEATURE = "v2Checkpoint"
POLICY = "delta.checkpointPolicy"
STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"
DELETED_FILES = "delta.deletedFileRetentionDuration"
TRANSACTIONS = "delta.setTransactionRetentionDuration"

WEEK_MS = 7 * 24 * 60 * 60 * 1000

_UNITS_US = {
    "week": 7 * 24 * 60 * 60 * 1_000_000,
    "day": 24 * 60 * 60 * 1_000_000,
    "hour": 60 * 60 * 1_000_000,
    "minute": 60 * 1_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_PART = re.compile(r"\s*([0-9]+)\s+(week|day|hour|minute|second|millisecond|microsecond)s?\b")
_INTERVAL = re.compile(rf"\s*(?:interval\b)?(?:{_PART.pattern})+\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """`is_v2`: the checkpoint names its files in sidecars. `stats_as_json` and `stats_as_struct`
    say in which forms it has statistics; with the second it has typed partition values, too.

    Removed files stay in it for `deleted_files_ms`, application transactions for `transactions_ms`,
    where that is given.
    """

    is_v2: bool = False
    stats_as_json: bool = True
    stats_as_struct: bool = False
    deleted_files_ms: int = WEEK_MS
    transactions_ms: int | None = None


def policy_of(protocol: Protocol, metadata: Metadata) -> CheckpointPolicy:
    """What the table asks for. A property whose value nobody could set by now counts as absent:
    a checkpoint that readers wait for is not held up by it. V2 checkpoints are for tables that
    list their feature: other readers would not look for sidecars."""
    properties = metadata.configuration
    listed = (protocol.reader_features or frozenset()) & (protocol.writer_features or frozenset())
    kept = interval_ms(properties.get(DELETED_FILES))
    return CheckpointPolicy(
        is_v2=V2_FEATURE in listed and properties.get(POLICY, "").lower() == "v2",
        stats_as_json=_switch(properties, STATS_AS_JSON, default=True),
        stats_as_struct=_switch(properties, STATS_AS_STRUCT, default=False),
        deleted_files_ms=WEEK_MS if kept is None else kept,
        transactions_ms=interval_ms(properties.get(TRANSACTIONS)),
    )


def interval_ms(text: str | None) -> int | None:
    """The whole milliseconds of an interval such as `interval 7 days`; None for any other text."""
    if text is None or _INTERVAL.fullmatch(text) is None:
        return None
    parts = _PART.findall(text.lower().replace("interval", " ", 1))
    return sum(int(number) * _UNITS_US[unit] for number, unit in parts) // 1000


def _switch(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = properties.get(name, "").lower()
    return text == "true" if text in ("true", "false") else default
