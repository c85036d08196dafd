"""The table's columns after a MERGE that evolves them: those of the source that it assigns to."""

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidegate.spark.columns.schema_change import merged
from tidegate.spark.expressions.assignments import Path
from tidegate.spark.expressions.errors import not_mergeable
from tidegate.spark.tables.schemas import nullable

_TIMES = (DateType, TimestampType, TimestampNTZType)


def evolved(
    table: StructType,
    source: StructType,
    *,
    paths: Sequence[Path],
    has_star: bool,
    widens: bool,
) -> StructType:
    """The table's columns, with what the source has beyond them where a clause assigns to it by
    name, or a star to all. Types stay the table's, unless it `widens` them. Raises `InvalidCommand`
    for columns whose types do not go together, and `SchemaMismatch` for a new column without a
    type."""
    lowered = [tuple(part.lower() for part in path) for path in paths]
    wanted = _filtered(source, (), lowered, has_star=has_star)
    _check(table, wanted, "")
    return merged(table, wanted, widens=widens)


def _filtered(
    source: StructType, above: Path, paths: Sequence[Path], *, has_star: bool
) -> StructType:
    kept = []
    for field in source.fields:
        path = (*above, field.name.lower())
        if path in paths:
            kept.append(field)
        elif isinstance(field.dataType, StructType) and (
            has_star or any(each[: len(path)] == path for each in paths)
        ):
            inner = _filtered(field.dataType, path, paths, has_star=has_star)
            kept.append(StructField(field.name, inner, field.nullable, field.metadata))
        elif has_star:
            kept.append(field)
    return StructType(kept)


def _check(table: DataType, source: DataType, name: str) -> None:
    match table, source:
        case StructType(), StructType():
            given = {field.name.lower(): field for field in source.fields}
            for field in table.fields:
                found = given.get(field.name.lower())
                if found is not None:
                    inner = f"{name}.{field.name}" if name else field.name
                    _check(field.dataType, found.dataType, inner)
        case ArrayType(), ArrayType():
            _check(table.elementType, source.elementType, name)
        case MapType(), MapType():
            _check(table.keyType, source.keyType, name)
            _check(table.valueType, source.valueType, name)
        case _ if nullable(table) != nullable(source) and not _converts(source, table):
            raise not_mergeable(name, table.simpleString(), source.simpleString())


def _converts(source: DataType, table: DataType) -> bool:
    """Whether Spark converts the one into the other by itself; a column of the type void becomes
    one of the source's."""
    return (
        isinstance(source, NullType)
        or isinstance(table, NullType)
        or (isinstance(source, NumericType) and isinstance(table, NumericType))
        or (isinstance(source, _TIMES) and isinstance(table, _TIMES))
        or (isinstance(source, StringType) and isinstance(table, (NumericType, *_TIMES)))
        or (isinstance(source, StringType) and table.typeName() == "binary")
        or (isinstance(source, AtomicType) and isinstance(table, StringType))
    )
