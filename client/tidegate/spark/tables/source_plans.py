"""What a leaf of a plan that `format("tidegate")` has made reads.

PySpark keeps a data source as it was once it had told its schema, pickled, in the leaf: with the
version that it settled on by then. Spark has no method that gives it out.
"""

import pickle
from typing import Any

from py4j.protocol import Py4JError

from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.tables.layout import Reading

NAME = "tidegate"
_LEAF = "DataSourceV2Relation"
_TABLE = "PythonTable"


def said_by_source(leaf: JavaObject) -> tuple[str, Reading] | None:
    """The place of the table that the data source reads in a batch, and what it reads of it. None
    for other leaves, for change feeds, and where this Spark keeps the data source elsewhere."""
    if leaf.getClass().getSimpleName() != _LEAF:
        return None
    table = leaf.table()
    if table.getClass().getSimpleName() != _TABLE or table.name().lower() != NAME:
        return None
    try:
        created = _field(_field(table, "ds"), "dataSourceInPython")
        pickled = None if created is None else created.dataSource()
    except Py4JError:
        return None
    # The session's own: it was registered here, and what is in it is what this process has sent.
    found: Any = None if pickled is None else pickle.loads(pickled)
    return getattr(found, "reads", None)


def _field(of: JavaObject, name: str) -> JavaObject:
    field = of.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)
