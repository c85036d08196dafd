"""Table properties, typed (metaData.configuration; Delta: DeltaConfig.scala).

The log's names are case-sensitive and are read so; a new table's are matched whatever their
case and stored as Delta spells them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from tidegate_protocol.base.memo import remember
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.hooks import HOOKS, parse_names
from tidegate_protocol.features.property_values import boolean, integer, interval, one_of
from tidegate_protocol.proposal.transaction import IsolationLevel
from tidegate_protocol.schema import column_paths

CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
MIN_READER_VERSION = "delta.minReaderVersion"
MIN_WRITER_VERSION = "delta.minWriterVersion"
STATISTICS_DISJOINTNESS = "tidegate.statisticsDisjointness"
COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
MAX_PROPERTIES = 2_000
"""Of a table. Each commit looks at its table's."""
MAX_PROPERTY_LENGTH = 64 * 1024
"""Of a value, in characters. Each commit may have to parse it."""
COLUMN_MAPPING_MAX_ID = "delta.columnMapping.maxColumnId"
MOST_CHECKPOINT_INTERVAL = 100_000
"""Whoever opens a table reads so many commits behind its checkpoint; more would be none."""
CHECKPOINT_PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"
ENABLE_ROW_TRACKING = "delta.enableRowTracking"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
CHANGE_DATA_FEED = frozenset({"delta.enableChangeDataFeed", "delta.enableChangeDataCapture"})
"""Two spellings of one switch; the second is what Delta wrote at first."""
IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
IN_COMMIT_TIMESTAMPS_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"

_T = TypeVar("_T")
_Items = tuple[tuple[str, str], ...]
_RESERVED = ("delta.", "tidegate.")
_OPEN_PREFIXES = (CONSTRAINT_PREFIX, FEATURE_PREFIX, "delta.universalformat.config.")


class InvalidProperty(ValueError):
    """A table property has a value or name that is not allowed; the message says which, and
    `condition` is Delta's error class, where Delta has one."""

    def __init__(self, detail: str, *, condition: str | None = None) -> None:
        super().__init__(detail)
        self.condition = condition


_BOOLEANS = (
    "delta.appendOnly",
    "delta.autoOptimize",
    "delta.autoOptimize.optimizeWrite",
    "delta.castIcebergTimeType",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    "delta.compatibility.symlinkFormatManifest.enabled",
    "delta.enableChangeDataCapture",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableExpiredLogCleanup",
    "delta.enableFullRetentionRollback",
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
    "delta.enableIcebergCompatV3",
    "delta.enableInCommitTimestamps",
    "delta.enableMaterializePartitionColumnsFeature",
    "delta.enableRowTracking",
    "delta.enableTypeWidening",
    "delta.enableVariantShredding",
    "delta.ignoreIcebergBucketPartition",
    "delta.ignoreProtocolDefaults",
    "delta.randomizeFilePrefixes",
    "delta.rowTrackingSuspended",
    "delta.universalFormat.iceberg.atomicConversion.supported",
    "delta.writePartitionColumnsToParquet",
    STATISTICS_DISJOINTNESS,
)
_SWITCHES = frozenset(_BOOLEANS)
_HEEDED = frozenset(
    {
        "delta.appendOnly",
        "delta.enableDeletionVectors",
        "delta.enableTypeWidening",
        "delta.rowTrackingSuspended",
        ENABLE_ROW_TRACKING,
        IN_COMMIT_TIMESTAMPS,
        STATISTICS_DISJOINTNESS,
        *CHANGE_DATA_FEED,
    }
)
"""Switches that rules of ours go by: a value that is none is an error in any table."""
_INTERVALS = (
    "delta.checkpointRetentionDuration",
    "delta.deletedFileRetentionDuration",
    "delta.dropFeatureTruncateHistory.retentionDuration",
    "delta.logRetentionDuration",
    "delta.sampleRetentionDuration",
    "delta.setTransactionRetentionDuration",
)
_KNOWN: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(_BOOLEANS, boolean),
    **dict.fromkeys(_INTERVALS, interval),
    "delta.autoOptimize.autoCompact": one_of("true", "false", "auto", "legacy"),
    "delta.checkpointInterval": integer(1, MOST_CHECKPOINT_INTERVAL),
    "delta.checkpointPolicy": one_of("classic", "v2"),
    COLUMN_MAPPING_MAX_ID: integer(0),
    COLUMN_MAPPING_MODE: one_of("none", "name", "id"),
    "delta.coordinatedCommits.commitCoordinator-preview": str,
    "delta.coordinatedCommits.commitCoordinatorConf-preview": str,
    "delta.coordinatedCommits.tableConf-preview": str,
    "delta.dataSkippingNumIndexedCols": integer(-1),
    "delta.dataSkippingStatsColumns": column_paths.parse_list,
    "delta.dataSkippingStringPrefixLength": integer(0),
    "delta.inCommitTimestampEnablementTimestamp": integer(),
    "delta.inCommitTimestampEnablementVersion": integer(0),
    "delta.isolationLevel": one_of("Serializable", "WriteSerializable"),
    "delta.parquet.compression.codec": str,
    "delta.parquet.format.version": str,
    "delta.randomPrefixLength": integer(1),
    "delta.redirectReaderWriter-preview": str,
    "delta.redirectWriterOnly-preview": str,
    CHECKPOINT_PROTECTION: integer(0),
    ROW_COMMIT_VERSION_COLUMN: str,
    ROW_ID_COLUMN: str,
    "delta.universalFormat.enabledFormats": str,
    MIN_READER_VERSION: integer(1),
    MIN_WRITER_VERSION: integer(1),
    HOOKS: parse_names,
}
_PROTOCOL_ONLY = (MIN_READER_VERSION, MIN_WRITER_VERSION, "delta.ignoreProtocolDefaults")
_CONDITIONS = {
    "delta.isolationLevel": "DELTA_INVALID_ISOLATION_LEVEL",
    MIN_READER_VERSION: "DELTA_PROTOCOL_PROPERTY_NOT_INT",
    MIN_WRITER_VERSION: "DELTA_PROTOCOL_PROPERTY_NOT_INT",
}
"""Delta's error classes for values that a property cannot have."""
_SPELLING = {name.lower(): name for name in _KNOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """What the properties of a table say; the defaults are Delta's and ours.

    `num_indexed_columns` is -1 for all; `stats_columns`, where given, takes its place.
    `in_commit_timestamp_enablement_*`: since when the table's commits have them (version, ms).
    `string_prefix_length`: what minima and maxima of strings are cut to in statistics.
    `column_mapping_mode` is `none`, `name` or `id`, `column_mapping` whether it is one of the last
    two; `max_column_id` the highest id that a column was given.
    `enabled` holds the names of all boolean properties that are true, `constraints` the SQL of
    CHECK constraints by name, `requested_*` what a new table asks of its protocol, and
    `configuration` every property as it stands.
    """

    isolation_level: IsolationLevel = IsolationLevel.SERIALIZABLE
    append_only: bool = False
    in_commit_timestamps: bool = False
    in_commit_timestamp_enablement_version: int | None = None
    in_commit_timestamp_enablement_timestamp: int | None = None
    num_indexed_columns: int = 32
    stats_columns: tuple[tuple[str, ...], ...] | None = None
    string_prefix_length: int = 32
    deletion_vectors: bool = False
    statistics_disjointness: bool = False
    column_mapping: bool = False
    column_mapping_mode: str = "none"
    max_column_id: int | None = None
    row_tracking: bool = False
    row_tracking_suspended: bool = False
    change_data_feed: bool = False
    type_widening: bool = False
    enabled: frozenset[str] = frozenset()
    constraints: Mapping[str, str] = field(default_factory=dict)
    requested_features: frozenset[str] = frozenset()
    requested_versions: tuple[int, int] | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, configuration: Mapping[str, str]) -> "TableProperties":
        """The properties of a metaData action; those of a table to be go through `canonical`
        first. Unknown ones are kept in `configuration`. Raises `InvalidProperty` for a value that
        this class cannot hold or that is too long, and for too many."""
        if len(configuration) > MAX_PROPERTIES:
            raise InvalidProperty(
                f"there are {len(configuration)} table properties; no more than {MAX_PROPERTIES} "
                "are taken"
            )
        return _remembered(tuple(configuration.items()))

    @classmethod
    def _parse(cls, items: _Items) -> "TableProperties":
        configuration = dict(items)
        long = [name for name, value in items if len(value) > MAX_PROPERTY_LENGTH]
        if long:
            raise InvalidProperty(f"{long[0]} has more than {MAX_PROPERTY_LENGTH} characters")
        enabled = frozenset(
            name for name in configuration if name in _SWITCHES and _is_enabled(configuration, name)
        )
        reader = _value(configuration, MIN_READER_VERSION, 1)
        writer = _value(configuration, MIN_WRITER_VERSION, 2)
        asks = MIN_READER_VERSION in configuration or MIN_WRITER_VERSION in configuration
        return cls(
            isolation_level=IsolationLevel(
                _value(configuration, "delta.isolationLevel", IsolationLevel.SERIALIZABLE.value)
            ),
            append_only="delta.appendOnly" in enabled,
            in_commit_timestamps="delta.enableInCommitTimestamps" in enabled,
            in_commit_timestamp_enablement_version=_value(
                configuration, "delta.inCommitTimestampEnablementVersion", None
            ),
            in_commit_timestamp_enablement_timestamp=_value(
                configuration, "delta.inCommitTimestampEnablementTimestamp", None
            ),
            num_indexed_columns=_value(configuration, "delta.dataSkippingNumIndexedCols", 32),
            stats_columns=_value(configuration, "delta.dataSkippingStatsColumns", None),
            string_prefix_length=_value(configuration, "delta.dataSkippingStringPrefixLength", 32),
            deletion_vectors="delta.enableDeletionVectors" in enabled,
            statistics_disjointness=STATISTICS_DISJOINTNESS in enabled,
            column_mapping=_value(configuration, COLUMN_MAPPING_MODE, "none") != "none",
            column_mapping_mode=_value(configuration, COLUMN_MAPPING_MODE, "none"),
            max_column_id=_value(configuration, COLUMN_MAPPING_MAX_ID, None),
            row_tracking=ENABLE_ROW_TRACKING in enabled,
            row_tracking_suspended="delta.rowTrackingSuspended" in enabled,
            change_data_feed=bool(enabled & CHANGE_DATA_FEED),
            type_widening="delta.enableTypeWidening" in enabled,
            enabled=enabled,
            constraints=_constraints(configuration),
            requested_features=_requested_features(configuration),
            requested_versions=(reader, writer) if asks else None,
            configuration=configuration,
        )


_remembered = remember(
    TableProperties._parse, weigh=lambda items: sum([len(n) + len(text) for n, text in items])
)


def check_new(configuration: Mapping[str, str]) -> None:
    """Raise `InvalidProperty` for a `delta.*` or `tidegate.*` name that nobody knows, for a value
    that a known property cannot have, and for one property under two spellings."""
    seen: set[str] = set()
    for name, value in configuration.items():
        lower = name.lower()
        if lower in seen:
            raise InvalidProperty(f"the property {name!r} is set twice, in different spellings")
        seen.add(lower)
        if "\0" in name or "\0" in value:
            raise InvalidProperty(f"the property {excerpt(name)} contains the character NUL")
        known = _SPELLING.get(lower)
        if known is not None:
            _parsed(known, value)
        elif lower.startswith(_RESERVED) and not lower.startswith(_OPEN_PREFIXES):
            raise InvalidProperty(
                f"Unknown configuration was specified: {excerpt(name)[1:-1]}; names that start "
                "with 'delta.' or 'tidegate.' are reserved, others are free",
                condition="DELTA_UNKNOWN_CONFIGURATION",
            )
    _requested_features(configuration)


def canonical(configuration: Mapping[str, str]) -> dict[str, str]:
    """A new table's properties with every known name as Delta spells it."""
    return {_SPELLING.get(name.lower(), name): value for name, value in configuration.items()}


def storable(configuration: Mapping[str, str]) -> dict[str, str]:
    """What of a new table's properties goes into metaData.configuration, known names as Delta
    spells them: all but those that only ask for a protocol (delta.minReaderVersion,
    delta.minWriterVersion, delta.ignoreProtocolDefaults, delta.feature.*)."""
    return {
        name: value
        for name, value in canonical(configuration).items()
        if name not in _PROTOCOL_ONLY and not name.lower().startswith(FEATURE_PREFIX)
    }


def _parsed(name: str, text: str) -> object:
    try:
        return _KNOWN[name](text)
    except ValueError as error:
        raise InvalidProperty(
            f"{name} is {excerpt(text)}: {error}", condition=_CONDITIONS.get(name)
        ) from None


def _value(configuration: Mapping[str, str], name: str, default: _T) -> _T:
    text = configuration.get(name)
    return default if text is None else cast(_T, _parsed(name, text))


def _is_enabled(configuration: Mapping[str, str], name: str) -> bool:
    """A switch that only others turn by may stand at anything that they once took."""
    if name in _HEEDED:
        return _value(configuration, name, False)
    return configuration.get(name, "").lower() == "true"


def _constraints(configuration: Mapping[str, str]) -> dict[str, str]:
    return {
        name[len(CONSTRAINT_PREFIX) :]: sql
        for name, sql in configuration.items()
        if name.lower().startswith(CONSTRAINT_PREFIX)
    }


def _requested_features(configuration: Mapping[str, str]) -> frozenset[str]:
    requested = set()
    for name, status in configuration.items():
        if name.lower().startswith(FEATURE_PREFIX):
            # "enabled" is what Delta wrote before it told supported features from active ones.
            if status.lower() not in ("supported", "enabled"):
                raise InvalidProperty(
                    f"{name} is {excerpt(status)}: expected 'supported'",
                    condition="DELTA_UNSUPPORTED_FEATURE_STATUS",
                )
            requested.add(name[len(FEATURE_PREFIX) :])
    return frozenset(requested)
