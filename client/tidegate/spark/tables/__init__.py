"""A table as its reader and its writer see it: columns, partitions, predicates, and what is
refused. Users find `DeltaTable` here, where Delta's Python API has it in `delta.tables`.
"""

import importlib

_OF_USERS = {
    "DeltaTable": "tidegate.spark.delta.delta_table",
    "DeltaMergeBuilder": "tidegate.spark.merge.builder",
    "DeltaTableBuilder": "tidegate.spark.delta.table_builder",
    "IdentityGenerator": "tidegate.spark.delta.table_builder",
    "DeltaOptimizeBuilder": "tidegate.spark.optimize.builder",
}


def __getattr__(name: str) -> type:
    # It stands on this room, and so is imported when it is asked for.
    if name in _OF_USERS:
        found = getattr(importlib.import_module(_OF_USERS[name]), name)
        assert isinstance(found, type)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
