"""The table features that Delta knows, and what of a table's metadata uses them
(PROTOCOL.md, "Valid Feature Names in Table Features"; Delta: TableFeature.scala)."""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate_protocol.schema.data_types import PHYSICAL_NAME, TIMESTAMP_NTZ, TYPE_CHANGES, VARIANT

CURRENT_DEFAULT = "CURRENT_DEFAULT"
GENERATION_EXPRESSION = "delta.generationExpression"
INVARIANTS = "delta.invariants"
IDENTITY_START = "delta.identity.start"
IDENTITY_STEP = "delta.identity.step"
IDENTITY_HIGH_WATER_MARK = "delta.identity.highWaterMark"
IDENTITY_EXPLICIT = "delta.identity.allowExplicitInsert"
"""Keys in a field's metadata."""

UNITY_TABLE_ID = "io.unitycatalog.tableId"
"""The property that names a catalog-managed table to clients of Unity Catalog's API."""

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """`legacy`: the (reader, writer) versions that imply it, 0 where readers need not know.
    `fails_concurrent`: adding it fails concurrent transactions
    (Delta: failConcurrentTransactionsAtUpgrade)."""

    name: str
    for_readers: bool = False
    legacy: tuple[int, int] | None = None
    fails_concurrent: bool = True
    requires: frozenset[str] = frozenset()


CATALOG_MANAGED = "catalogManaged"
IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
VACUUM_PROTOCOL_CHECK = "vacuumProtocolCheck"
COLUMN_MAPPING = "columnMapping"
CHECKPOINT_PROTECTION_FEATURE = "checkpointProtection"
CLUSTERING = "clustering"
ROW_TRACKING = "rowTracking"


def _writer(name: str, *, fails: bool = True, requires: Iterable[str] = ()) -> Feature:
    return Feature(name=name, fails_concurrent=fails, requires=frozenset(requires))


def _reader(name: str, *, fails: bool = True, requires: Iterable[str] = ()) -> Feature:
    return Feature(
        name=name, for_readers=True, fails_concurrent=fails, requires=frozenset(requires)
    )


def _legacy(name: str, writer: int, *, reader: int = 0, fails: bool = True) -> Feature:
    return Feature(
        name=name, for_readers=reader > 0, legacy=(reader, writer), fails_concurrent=fails
    )


FEATURES = {
    feature.name: feature
    for feature in (
        _legacy("appendOnly", 2, fails=False),
        _legacy("invariants", 2),
        _legacy("checkConstraints", 3),
        _legacy("changeDataFeed", 4, fails=False),
        _legacy("generatedColumns", 4),
        _legacy(COLUMN_MAPPING, 5, reader=2, fails=False),
        _legacy("identityColumns", 6),
        _writer("allowColumnDefaults"),
        _writer("checkpointProtection"),
        _writer("clustering", requires=["domainMetadata"]),
        _writer("collations-preview", requires=["domainMetadata"]),
        _writer(
            "coordinatedCommits-preview", requires=[IN_COMMIT_TIMESTAMP, "vacuumProtocolCheck"]
        ),
        _writer("domainMetadata", fails=False),
        _writer("icebergCompatV1", fails=False, requires=[COLUMN_MAPPING]),
        _writer("icebergCompatV2", fails=False, requires=[COLUMN_MAPPING]),
        _writer("icebergCompatV3", fails=False, requires=[COLUMN_MAPPING, "rowTracking"]),
        _writer(IN_COMMIT_TIMESTAMP, fails=False),
        _writer("materializePartitionColumns"),
        _writer("redirectWriterOnly-preview"),
        _writer("rowTracking", fails=False, requires=["domainMetadata"]),
        _reader(
            CATALOG_MANAGED, fails=False, requires=[IN_COMMIT_TIMESTAMP, "vacuumProtocolCheck"]
        ),
        _reader("deletionVectors", fails=False),
        _reader("geospatial"),
        _reader("geospatial-dev"),
        _reader("redirectReaderWriter-preview"),
        _reader("timestampNtz", fails=False),
        _reader("typeWidening", fails=False),
        _reader("typeWidening-preview", fails=False),
        _reader("v2Checkpoint", fails=False),
        _reader("vacuumProtocolCheck", fails=False),
        _reader("variantShredding", requires=["variantType"]),
        _reader("variantShredding-preview"),
        _reader("variantType"),
        _reader("variantType-preview"),
    )
}
SPELLING = {name.lower(): name for name in FEATURES}
LEGACY = {name: feature.legacy for name, feature in FEATURES.items() if feature.legacy}

NOT_CARRIED = {
    "coordinatedCommits-preview": "another commit coordinator owns the table's commits",
    "geospatial": "its types are not known here",
    "geospatial-dev": "its types are not known here",
    "redirectReaderWriter-preview": "reads and writes belong to another table",
    "redirectWriterOnly-preview": "writes belong to another table",
}
"""Features that are refused, and why."""
SUPPORTED_WRITER_FEATURES = frozenset(FEATURES.keys() - NOT_CARRIED.keys())
"""The features that a table may use; docs/features.md says what is done for each."""
SUPPORTED_READER_FEATURES = frozenset(
    name for name in SUPPORTED_WRITER_FEATURES if FEATURES[name].for_readers
)
FAILS_CONCURRENT_AT_UPGRADE = frozenset(
    name for name, feature in FEATURES.items() if feature.fails_concurrent
)
"""Known features whose addition fails concurrent transactions (see `fails_concurrent`)."""

PROPERTY_FEATURES = {
    "delta.appendOnly": "appendOnly",
    "delta.enableChangeDataCapture": "changeDataFeed",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
    "delta.enableInCommitTimestamps": IN_COMMIT_TIMESTAMP,
    "delta.enableMaterializePartitionColumnsFeature": "materializePartitionColumns",
    "delta.enableRowTracking": "rowTracking",
    "delta.enableTypeWidening": "typeWidening",
    "delta.enableVariantShredding": "variantShredding",
}
"""Boolean properties that use a feature when they are true."""
PRESENT_FEATURES = {
    "delta.coordinatedCommits.commitCoordinator-preview": "coordinatedCommits-preview",
    "delta.redirectReaderWriter-preview": "redirectReaderWriter-preview",
    "delta.redirectWriterOnly-preview": "redirectWriterOnly-preview",
}
"""Properties that use a feature when they are there."""
FIELD_FEATURES = {
    CURRENT_DEFAULT: "allowColumnDefaults",
    "__COLLATIONS": "collations-preview",
    PHYSICAL_NAME: COLUMN_MAPPING,
    GENERATION_EXPRESSION: "generatedColumns",
    IDENTITY_START: "identityColumns",
    IDENTITY_STEP: "identityColumns",
    INVARIANTS: "invariants",
    TYPE_CHANGES: "typeWidening",
}
"""Keys in a field's metadata that use a feature."""
TYPE_FEATURES = {TIMESTAMP_NTZ: "timestampNtz", VARIANT: "variantType"}
