"""Values of a DataFrame's columns as values of the table's, by Spark's store assignment.

Which types ANSI takes for which is Spark's own rule (`Cast.canANSIStoreAssign`). Values that the
target has no room for are refused then whatever `spark.sql.ansi.enabled` says.
"""

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidegate.spark.errors import SchemaMismatch, marked
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.store_assignment import Policy, StoreAssignment, not_up_cast

_UNQUALIFIED = "__tidegate_rows"
_POINTS_IN_TIME = (DateType, TimestampType, TimestampNTZType)


def assign(
    value: Column,
    source: DataType,
    target: DataType,
    *,
    name: str,
    storing: StoreAssignment | None = None,
) -> Column:
    """The value of type `source` as one of type `target`; `name` is the column, for messages.
    `storing` is the session's policy, ANSI without it.

    Fields of structs are matched by name in any case, missing ones become null. Raises
    `SchemaMismatch` where the types do not go together; the column raises for a row whose value
    does not fit or is null where the target has NOT NULL (`errors.refused_rows`).
    """
    if same_type(source, target):
        return value
    if isinstance(source, NullType):
        return F.lit(None).cast(target)
    if isinstance(target, StructType) and isinstance(source, StructType):
        return _assign_struct(value, source, target, name=name, storing=storing)
    if isinstance(target, ArrayType) and isinstance(source, ArrayType):
        inner = f"{name}.element"
        return F.transform(
            value,
            lambda item: _nested(
                item,
                source.elementType,
                target.elementType,
                name=inner,
                nullable=target.containsNull,
                storing=storing,
            ),
        )
    if isinstance(target, MapType) and isinstance(source, MapType):
        return _assign_map(value, source, target, name=name, storing=storing)
    if storing is not None and storing.policy is not Policy.ANSI:
        return _otherwise(value, source, target, name=name, storing=storing)
    if not _assignable(source, target):
        raise _unlike(source, target, name=name)
    if isinstance(target, StringType):
        return value.cast(target)
    converted = value.try_cast(target)
    text = f"column {name} holds a value that is no {target.simpleString()}"
    refusal = F.raise_error(F.lit(marked(text, error_class="CAST_OVERFLOW_IN_TABLE_INSERT")))
    return F.when(value.isNotNull() & converted.isNull(), refusal).otherwise(converted)


def _otherwise(
    value: Column, source: DataType, target: DataType, *, name: str, storing: StoreAssignment
) -> Column:
    """The value by another policy than ANSI."""
    if storing.policy is Policy.STRICT:
        if not storing.is_up_cast(source, target):
            raise SchemaMismatch(
                not_up_cast(source, target, name=name), error_class="CANNOT_UP_CAST_DATATYPE"
            )
        return value.cast(target)
    if not storing.is_cast(source, target):
        raise _unlike(source, target, name=name)
    return storing.cast(value, target)


def _unlike(source: DataType, target: DataType, *, name: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"column {name} is {source.simpleString()} in the DataFrame and "
        f"{target.simpleString()} in the table; Spark does not store the one as the other",
        error_class="DELTA_FAILED_TO_MERGE_FIELDS",
    )


def required(value: Column, *, name: str) -> Column:
    """The value of a NOT NULL column, which raises for a row where it is null."""
    return F.when(value.isNull(), _null_in(name)).otherwise(value)


def required_inside(value: Column, data_type: DataType, *, name: str) -> Column:
    """The value, which raises for a row where a NOT NULL field of a struct is null, also where the
    struct itself is, as Delta has it. What is inside of lists and maps is not looked at."""
    for path in _required_fields(data_type, ()):
        found = value
        for part in path:
            found = found.getField(part)
        where = ".".join((name, *path))
        value = F.when(found.isNull(), _null_in(where)).otherwise(value)
    return value


def has_required(data_type: DataType) -> bool:
    """Whether a field of a struct inside is NOT NULL."""
    return any(_required_fields(data_type, ()))


def _required_fields(data_type: DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            inner = (*path, field.name)
            if not field.nullable:
                yield inner
            yield from _required_fields(field.dataType, inner)


def _null_in(name: str) -> Column:
    text = f"column {name} is NOT NULL, but a row holds null there"
    return F.raise_error(F.lit(marked(text, error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED")))


def quoted(name: str) -> Column:
    """The top-level column of exactly this name, dots and backticks included."""
    return F.col("`" + name.replace("`", "``") + "`")


@few_calls()
def chosen(df: DataFrame, columns: Mapping[str, Column | None]) -> DataFrame:
    """The DataFrame with these columns by name; None is for one that it has and that stays as it
    is, for which Spark is asked nothing where all of them do."""
    if all(value is None for value in columns.values()) and list(columns) == df.columns:
        return df
    return df.select(
        *(quoted(name) if value is None else value.alias(name) for name, value in columns.items())
    )


def unqualified(df: DataFrame) -> DataFrame:
    """The DataFrame as expressions of a table have it: for them `s.a` is a field of the column `s`,
    also where the DataFrame is called `s` and has a column `a`, which Spark would take first."""
    return df.alias(_UNQUALIFIED)


def _assign_struct(
    value: Column,
    source: StructType,
    target: StructType,
    *,
    name: str,
    storing: StoreAssignment | None,
) -> Column:
    known = {field.name.lower(): field for field in source.fields}
    extra = known.keys() - {field.name.lower() for field in target.fields}
    if extra:
        raise SchemaMismatch(
            f"column {name} has the fields {sorted(known[key].name for key in extra)} in the "
            f"DataFrame, which the table does not have",
            hint="leave them out, or add them to the table by the option mergeSchema",
            error_class="DELTA_METADATA_MISMATCH",
        )
    fields = []
    for field in target.fields:
        inner = f"{name}.{field.name}"
        found = known.get(field.name.lower())
        if found is None and not field.nullable:
            raise SchemaMismatch(
                f"field {inner} is NOT NULL and missing in the DataFrame",
                error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
            )
        if found is None:
            assigned = F.lit(None).cast(field.dataType)
        else:
            assigned = _nested(
                value.getField(found.name),
                found.dataType,
                field.dataType,
                name=inner,
                nullable=field.nullable,
                storing=storing,
            )
        fields.append(assigned.alias(field.name))
    return F.when(value.isNotNull(), F.struct(*fields))


def _assign_map(
    value: Column, source: MapType, target: MapType, *, name: str, storing: StoreAssignment | None
) -> Column:
    key, item = f"{name}.key", f"{name}.value"
    if not same_type(source.keyType, target.keyType):
        value = F.transform_keys(
            value,
            lambda k, _: assign(k, source.keyType, target.keyType, name=key, storing=storing),
        )
    return F.transform_values(
        value,
        lambda _, v: _nested(
            v,
            source.valueType,
            target.valueType,
            name=item,
            nullable=target.valueContainsNull,
            storing=storing,
        ),
    )


def _nested(
    value: Column,
    source: DataType,
    target: DataType,
    *,
    name: str,
    nullable: bool,
    storing: StoreAssignment | None,
) -> Column:
    assigned = assign(value, source, target, name=name, storing=storing)
    return assigned if nullable else required(assigned, name=name)


def _assignable(source: DataType, target: DataType) -> bool:
    return (
        same_type(source, target)
        or (isinstance(source, NumericType) and isinstance(target, NumericType))
        or (isinstance(source, _POINTS_IN_TIME) and isinstance(target, _POINTS_IN_TIME))
        or (isinstance(source, AtomicType) and isinstance(target, StringType))
    )


def same_type(source: DataType, target: DataType) -> bool:
    """Whether values of one type are values of the other as they stand: the same types and names
    all the way down, and nothing NOT NULL inside that would have to be checked."""
    match source, target:
        case StructType(), StructType():
            return len(source.fields) == len(target.fields) and all(
                old.name == new.name and new.nullable and same_type(old.dataType, new.dataType)
                for old, new in zip(source.fields, target.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return target.containsNull and same_type(source.elementType, target.elementType)
        case MapType(), MapType():
            return (
                target.valueContainsNull
                and same_type(source.keyType, target.keyType)
                and same_type(source.valueType, target.valueType)
            )
    return source == target
