"""What a table asks of its checkpoints (Delta: DeltaConfig.scala, CheckpointPolicy.scala)."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_protocol.features.upkeep import (
    DEFAULT_DELETED_FILE_RETENTION_MS,
    deleted_file_retention_ms,
    set_transaction_retention_ms,
)
from tidegate_protocol.log.actions import Metadata, Protocol

V2_FEATURE = "v2Checkpoint"
POLICY = "delta.checkpointPolicy"
STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """`is_v2`: the checkpoint names its files in sidecars. `stats_as_json` and `stats_as_struct`
    say in which forms it has statistics; with the second it has typed partition values, too. A
    table that `has_v2_feature` has no multi-part checkpoints (PROTOCOL.md, "Multi-part
    checkpoint").

    Removed files stay in it for `deleted_files_ms`, application transactions for `transactions_ms`,
    where that is given.
    """

    has_v2_feature: bool = False
    is_v2: bool = False
    stats_as_json: bool = True
    stats_as_struct: bool = False
    deleted_files_ms: int = DEFAULT_DELETED_FILE_RETENTION_MS
    transactions_ms: int | None = None


def policy_of(protocol: Protocol, metadata: Metadata) -> CheckpointPolicy:
    """What the table asks for. A property whose value nobody could set by now counts as absent:
    a checkpoint that readers wait for is not held up by it. What stays for a time that cannot be
    read stays for ever. V2 checkpoints are for tables that list their feature: other readers would
    not look for sidecars."""
    properties = metadata.configuration
    listed = (protocol.reader_features or frozenset()) & (protocol.writer_features or frozenset())
    return CheckpointPolicy(
        has_v2_feature=V2_FEATURE in listed,
        is_v2=V2_FEATURE in listed and properties.get(POLICY, "").lower() == "v2",
        stats_as_json=_switch(properties, STATS_AS_JSON, default=True),
        stats_as_struct=_switch(properties, STATS_AS_STRUCT, default=False),
        deleted_files_ms=deleted_file_retention_ms(properties),
        transactions_ms=set_transaction_retention_ms(properties),
    )


def _switch(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = properties.get(name, "").lower()
    return text == "true" if text in ("true", "false") else default
