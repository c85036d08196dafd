"""Taking a feature from a table's protocol (Delta: DROP FEATURE, `Protocol.canDowngradeTo`,
`RemovableFeature.validateDropInvariants`).

One commit under the name DROP FEATURE takes one feature away, and only when nothing of the table
needs it any more. Older versions of the log may: whether they are cut off or kept behind the
feature `checkpointProtection` is the writer's duty.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import table_features
from tidegate_protocol.features.column_mapping import MARKS
from tidegate_protocol.features.known import (
    CHECKPOINT_PROTECTION_FEATURE,
    COLUMN_MAPPING,
    FEATURES,
    IN_COMMIT_TIMESTAMP,
    ROW_TRACKING,
)
from tidegate_protocol.features.properties import (
    CHECKPOINT_PROTECTION,
    IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP,
    IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    TableProperties,
)
from tidegate_protocol.features.row_tracking import ROW_TRACKING_SUSPENDED
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.prepare.table import TableAfter
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.schema.data_types import TYPE_CHANGES, walk


def check_removal(old: Protocol, new: Protocol, parameters: Mapping[str, Any]) -> Invalid | None:
    """What is wrong with the new protocol of a DROP FEATURE. `parameters` are the operation's;
    `featureName`, where they have it, is the feature that goes."""
    dropped = table_features.added_features(old, new)
    added = table_features.added_features(new, old) - {CHECKPOINT_PROTECTION_FEATURE}
    named = parameters.get("featureName")
    if added:
        return _downgrade(f"a commit that drops a feature adds {sorted(added)}")
    if len(dropped) > 1 or (dropped and named is not None and dropped != {named}):
        what = "one feature" if named is None else f"the feature {named!r}"
        return _downgrade(f"expected {what} to be dropped, found {sorted(dropped)}")
    for name in sorted(dropped):
        if name not in _LEFT_OVER:
            return _downgrade(f"the feature {name} cannot be dropped")
        dependent = sorted(
            other
            for other in table_features.implied_features(new)
            if other in FEATURES and name in FEATURES[other].requires
        )
        if dependent:
            return _downgrade(f"the feature {name} is needed by {dependent}")
    return None


def check_left_over(
    dropped: frozenset[str], table: TableAfter, before: TableProperties
) -> Invalid | None:
    """What of the table after the commit still needs a feature that it drops. `before` are the
    properties that the table had."""
    suspended = before.row_tracking_suspended or table.properties.row_tracking_suspended
    if ROW_TRACKING in dropped and not suspended:
        return _downgrade(
            f"the feature {ROW_TRACKING} cannot be dropped: {ROW_TRACKING_SUSPENDED} is not true"
        )
    for name in sorted(dropped & _LEFT_OVER.keys()):
        reason = _LEFT_OVER[name](table)
        if reason is not None:
            return _downgrade(f"the feature {name} cannot be dropped: {reason}")
    return None


def demands_of(dropped: frozenset[str]) -> tuple[FileDemand, ...]:
    """What must hold of every file of a table that these features are dropped from."""
    return tuple(_DEMANDS[name] for name in sorted(dropped & _DEMANDS.keys()))


def protects_history(dropped: frozenset[str]) -> bool:
    """Whether older versions of the log may need a feature that is dropped to be read."""
    return any(FEATURES[name].for_readers for name in dropped & FEATURES.keys())


def _downgrade(detail: str) -> Invalid:
    return Invalid(
        code=Code.PROTOCOL_DOWNGRADE, detail=f"the protocol of a table cannot be lowered: {detail}"
    )


def _nothing(_: TableAfter) -> str | None:
    return None


def _switched_on(*names: str) -> Callable[[TableAfter], str | None]:
    def left_over(table: TableAfter) -> str | None:
        found = sorted(table.properties.enabled.intersection(names))
        return f"{found} is true" if found else None

    return left_over


def _constraints(table: TableAfter) -> str | None:
    names = sorted(table.properties.constraints)
    return f"the table has the constraints {names}" if names else None


def _mapping(table: TableAfter) -> str | None:
    if table.properties.column_mapping:
        return "delta.columnMapping.mode is not 'none'"
    marked = any(MARKS & field.metadata.keys() for _, field, _ in walk(table.schema))
    return "the schema has column mapping ids or physical names" if marked else None


def _row_tracking(table: TableAfter) -> str | None:
    return "delta.enableRowTracking is true" if table.properties.row_tracking else None


def _widening(table: TableAfter) -> str | None:
    if table.properties.type_widening:
        return "delta.enableTypeWidening is true"
    told = any(TYPE_CHANGES in field.metadata for _, field, _ in walk(table.schema))
    return f"the schema has {TYPE_CHANGES}" if told else None


def _checkpoints(table: TableAfter) -> str | None:
    policy = table.metadata.configuration.get("delta.checkpointPolicy", "classic")
    return None if policy.lower() == "classic" else f"delta.checkpointPolicy is {policy!r}"


def _timestamps(table: TableAfter) -> str | None:
    if table.properties.in_commit_timestamps:
        return "delta.enableInCommitTimestamps is true"
    since = (IN_COMMIT_TIMESTAMPS_SINCE_VERSION, IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP)
    left = sorted(table.metadata.configuration.keys() & set(since))
    return f"the table has the properties {left}" if left else None


def _protection(table: TableAfter) -> str | None:
    held = CHECKPOINT_PROTECTION in table.metadata.configuration
    return f"the table has the property {CHECKPOINT_PROTECTION}" if held else None


_LEFT_OVER: dict[str, Callable[[TableAfter], str | None]] = {
    "checkConstraints": _constraints,
    CHECKPOINT_PROTECTION_FEATURE: _protection,
    COLUMN_MAPPING: _mapping,
    "deletionVectors": _switched_on("delta.enableDeletionVectors"),
    IN_COMMIT_TIMESTAMP: _timestamps,
    "materializePartitionColumns": _switched_on("delta.enableMaterializePartitionColumnsFeature"),
    ROW_TRACKING: _row_tracking,
    "typeWidening": _widening,
    "typeWidening-preview": _widening,
    "v2Checkpoint": _checkpoints,
    "vacuumProtocolCheck": _nothing,
}
"""The features that can be dropped, and what of a table still needs one. Delta can drop
`domainMetadata`, too, from a table without domains, and what a catalog or another coordinator
owns."""
_DEMANDS = {
    "deletionVectors": FileDemand.NO_DELETION_VECTORS,
    ROW_TRACKING: FileDemand.NO_ROW_IDS,
}
