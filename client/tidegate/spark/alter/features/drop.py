"""DROP FEATURE: the protocol no longer asks a feature of those who read or write the table.

What of the table's files uses the feature is taken away by commits before (`traces.py`); its
metadata goes in the commit that drops it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.errors import MetadataChangedException
from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.features.backfill import Begin
from tidegate.spark.alter.features.protected_history import check_history_gone
from tidegate.spark.alter.features.traces import (
    ENABLE_DELETION_VECTORS,
    ENABLE_TYPE_WIDENING,
    remove_traces,
)
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import (
    CHECKPOINT_PROTECTION_FEATURE,
    COLUMN_MAPPING,
    FEATURES,
    IN_COMMIT_TIMESTAMP,
    ROW_TRACKING,
    SPELLING,
)
from tidegate_protocol.features.properties import (
    CHECKPOINT_PROTECTION,
    ENABLE_ROW_TRACKING,
    IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP,
    IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)
from tidegate_protocol.features.row_tracking import DOMAIN, ROW_TRACKING_SUSPENDED
from tidegate_protocol.features.table_features import implied_features, with_features
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.schema.data_types import TYPE_CHANGES, without_metadata
from tidegate_protocol.schema.table_schema import parse_schema, to_json

_NOTHING = Protocol(min_reader_version=1, min_writer_version=1)
_PROPERTIES: Mapping[str, Sequence[str]] = {
    "checkConstraints": (),
    CHECKPOINT_PROTECTION_FEATURE: (CHECKPOINT_PROTECTION,),
    COLUMN_MAPPING: (),
    "deletionVectors": (ENABLE_DELETION_VECTORS,),
    IN_COMMIT_TIMESTAMP: (
        IN_COMMIT_TIMESTAMPS,
        IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
        IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP,
    ),
    "materializePartitionColumns": ("delta.enableMaterializePartitionColumnsFeature",),
    ROW_TRACKING: (
        ENABLE_ROW_TRACKING,
        ROW_TRACKING_SUSPENDED,
        ROW_ID_COLUMN,
        ROW_COMMIT_VERSION_COLUMN,
    ),
    "typeWidening": (ENABLE_TYPE_WIDENING,),
    "typeWidening-preview": (ENABLE_TYPE_WIDENING,),
    "v2Checkpoint": ("delta.checkpointPolicy",),
    "vacuumProtocolCheck": (),
}
"""The features that can be dropped here, and the properties that go with each."""


def drop_feature(begin: Begin, given: str, *, truncate_history: bool) -> Receipt:
    """Drop a feature, after commits that take away what of the table needs it. Where readers had to
    know it, the protocol gets `checkpointProtection`: older versions still need it. The history is
    never truncated; `checkpointProtection` is dropped once the service has cleaned it up.

    Raises `InvalidCommand`, `MetadataChangedException` where others changed the table so that it
    may use the feature again, and what `Transaction.commit` and the commands raise that write files
    again.
    """
    name = SPELLING.get(given.lower(), given)
    alteration = begin()
    _check(alteration, name, truncate_history=truncate_history)
    left = remove_traces(begin, name)
    alteration = begin()
    if left is not None and alteration.metadata != left:
        raise MetadataChangedException(
            "Cannot drop feature because a concurrent transaction modified the table: its metadata "
            f"is another one than when files that use {name} were written again",
            code=Code.METADATA_CHANGED,
            definite=True,
            error_class="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        )
    features = implied_features(alteration.protocol) - {name}
    if FEATURES[name].for_readers:
        features |= {CHECKPOINT_PROTECTION_FEATURE}
    alteration.set_protocol(with_features(_NOTHING, features))
    changes = _without(alteration.metadata, name)
    if changes:
        alteration.set_metadata(changes)
    if name == ROW_TRACKING:
        gone = {"domain": DOMAIN, "configuration": "{}", "removed": True}
        alteration.transaction.action({"domainMetadata": gone})
    parameters = {"featureName": name, "truncateHistory": truncate_history}
    return alteration.commit("DROP FEATURE", parameters)


def _without(metadata: Metadata, name: str) -> dict[str, Any]:
    """The fields of the metadata, by the log's names, that speak of the feature, without it."""
    known = metadata.configuration
    kept = {key: value for key, value in known.items() if key not in _PROPERTIES[name]}
    changes: dict[str, Any] = {} if kept == known else {"configuration": kept}
    if name.startswith("typeWidening"):
        schema = parse_schema(metadata.schema_string)
        changes["schemaString"] = to_json(without_metadata(schema, [TYPE_CHANGES]))
    return changes


def _check(alteration: Alteration, name: str, *, truncate_history: bool) -> None:
    """Raise `InvalidCommand` for a feature that the table has not, or has to keep."""
    features = implied_features(alteration.protocol)
    if name not in FEATURES:
        raise InvalidCommand(
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            f"Cannot drop {name} because it is no table feature that is known",
        )
    if name not in features:
        raise InvalidCommand(
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
            f"Cannot drop {name} from this table because it is not currently present in the "
            "table's protocol",
        )
    dependent = sorted(
        each for each in features if each in FEATURES and name in FEATURES[each].requires
    )
    if dependent:
        raise InvalidCommand(
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            f"Cannot drop table feature `{name}` because some other features "
            f"({', '.join(dependent)}) in this table depend on it",
        )
    if name not in _PROPERTIES:
        raise InvalidCommand(
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
            f"Cannot drop {name} because dropping this feature is not supported here; "
            f"{', '.join(_PROPERTIES)} are",
        )
    if name == CHECKPOINT_PROTECTION_FEATURE:
        check_history_gone(alteration, truncate_history=truncate_history)
    elif truncate_history:
        raise InvalidCommand(
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            f"{name} is dropped without truncating the history, which is not done here",
        )
    if name == "checkConstraints":
        _check_no_constraints(alteration)


def _check_no_constraints(alteration: Alteration) -> None:
    names = sorted(alteration.layout.properties.constraints)
    if names:
        raise InvalidCommand(
            "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            "Cannot drop the CHECK constraints table feature. The following constraints must be "
            f"dropped first: {', '.join(names)}",
        )
