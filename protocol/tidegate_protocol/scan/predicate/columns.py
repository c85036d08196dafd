"""The columns of a schema as predicates name them."""

import operator
from collections.abc import Sequence

from tidegate_protocol.scan.predicate.evaluation import nodes
from tidegate_protocol.scan.predicate.evaluation.values import UNKNOWN, Value
from tidegate_protocol.schema.data_types import (
    VARIANT,
    ArrayType,
    DataType,
    Leaf,
    MapType,
    StructType,
)


def is_column(schema: StructType, word: str) -> bool:
    """Whether the table has a column of this name."""
    return schema.field(word) is not None


def column_node(
    schema: StructType, path: Sequence[str], columns: dict[Leaf, int]
) -> nodes.Scalar | None:
    """The column at a path, in its slot. A path that leads into an array, a map or a variant is
    a value that is not known, of the column that holds it."""
    leaf = schema.leaf(path)
    end = len(path)
    while leaf is None and end > 1:
        end -= 1
        leaf = schema.leaf(path[:end])
        if leaf is not None and not _has_inside(leaf.type):
            return None
    if leaf is None:
        return None
    index = columns.setdefault(leaf, len(columns))
    return nodes.Scalar(
        type=leaf.type if end == len(path) else None,
        run=operator.itemgetter(index) if end == len(path) else _unknown,
        columns=frozenset({index}),
    )


def _has_inside(type_: DataType) -> bool:
    return isinstance(type_, ArrayType | MapType) or type_ == VARIANT


def _unknown(_: nodes.Row) -> Value:
    return UNKNOWN
