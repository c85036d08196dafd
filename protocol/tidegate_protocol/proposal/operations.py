"""What an operation's name tells about its commit (Delta: DeltaOperations.scala).

A name that is not in the tables below gets the strictest answer: it changes data, creates
deletion vectors, and leaves the partitioning alone.
"""

from collections.abc import Mapping
from typing import Any

DROP_FEATURE = "DROP FEATURE"
REMOVE_COLUMN_MAPPING = "REMOVE COLUMN MAPPING"
RESTORE = "RESTORE"
ROW_TRACKING_BACKFILL = "ROW TRACKING BACKFILL"
ROW_TRACKING_UNBACKFILL = "ROW TRACKING UNBACKFILL"
VACUUM_START = "VACUUM START"
VACUUM_END = "VACUUM END"

_KEEPS_DATA = frozenset(
    {
        "ADD COLUMNS",
        "ADD CONSTRAINT",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "CLUSTER BY",
        "COMPUTE STATS",
        "CREATE TABLE",
        "DOMAIN METADATA CLEANUP",
        "DROP COLUMNS",
        "DROP CONSTRAINT",
        DROP_FEATURE,
        "Deletion Vector Tombstones",
        "Empty Commit",
        "Manual Update",
        "OPTIMIZE",
        "OPTIMIZE CHECKPOINT",
        REMOVE_COLUMN_MAPPING,
        "RENAME COLUMN",
        "REORG",
        "REORG TABLE UPGRADE UNIFORM",
        "REPLACE COLUMNS",
        ROW_TRACKING_BACKFILL,
        ROW_TRACKING_UNBACKFILL,
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPDATE SCHEMA",
        "UPGRADE PROTOCOL",
        VACUUM_END,
        VACUUM_START,
    }
)

_UPDATES_FILES_IN_PLACE = frozenset(
    {"COMPUTE STATS", DROP_FEATURE, ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL}
)

# They copy or recompute statistics of files that had their deletion vector before.
_MAY_KEEP_TIGHT_BOUNDS = frozenset(
    {
        "CLONE",
        "COMPUTE STATS",
        "Manual Update",
        "OPTIMIZE CHECKPOINT",
        RESTORE,
        ROW_TRACKING_BACKFILL,
        ROW_TRACKING_UNBACKFILL,
    }
)

_REPLACES_TABLE = frozenset(
    {
        "CLONE",
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
    }
)

_DROPS_CLUSTERING = _REPLACES_TABLE - {"CLONE"}

_MAY_REPARTITION = frozenset({"Manual Update", "RENAME COLUMN", RESTORE})


def changes_data(operation: str) -> bool:
    """Whether the operation exists to change rows (Delta: `Operation.changesData`)."""
    return operation not in _KEEPS_DATA


def updates_files_in_place(operation: str) -> bool:
    """Whether it commits files again with other statistics, tags or row ids."""
    return operation in _UPDATES_FILES_IN_PLACE


def may_keep_tight_bounds(operation: str) -> bool:
    """Whether a file with a deletion vector may come with tight statistics."""
    return operation in _MAY_KEEP_TIGHT_BOUNDS


def replaces_table(operation: str) -> bool:
    """Whether it is a drop and a creation in one commit."""
    return operation in _REPLACES_TABLE


def drops_clustering(operation: str) -> bool:
    """Whether the clustering that the table has is gone, unless the commit says otherwise."""
    return operation in _DROPS_CLUSTERING


def brings_columns_back(operation: str) -> bool:
    """Whether the schema is one that another version or another table had."""
    return operation in ("CLONE", RESTORE)


def overwrites_schema(operation: str, parameters: Mapping[str, Any]) -> bool:
    """Whether the new schema need not go with the data that was there before."""
    if operation == "STREAMING UPDATE":
        return _text(parameters.get("outputMode")) == "complete"
    as_write = operation == "WRITE" and _text(parameters.get("mode")) == "overwrite"
    anew = replaces_table(operation) or brings_columns_back(operation)
    return anew or (as_write and _overwrites_schema(parameters))


def may_change_partitioning(operation: str, parameters: Mapping[str, Any]) -> bool:
    """Whether partition columns may change (Delta: `Operation.canChangePartitionColumns`)."""
    if operation == "WRITE":
        return _text(parameters.get("mode")) == "overwrite" and _overwrites_schema(parameters)
    if replaces_table(operation):
        as_v1_overwrite = _text(parameters.get("isV1SaveAsTableOverwrite")) == "true"
        return not as_v1_overwrite or _overwrites_schema(parameters)
    return operation in _MAY_REPARTITION


def _overwrites_schema(parameters: Mapping[str, Any]) -> bool:
    return _text(parameters.get("canOverwriteSchema")) == "true"


def _text(value: object) -> str:
    """A parameter's value in lower case; JSON's true and the text "true" are one."""
    return str(value).lower()
