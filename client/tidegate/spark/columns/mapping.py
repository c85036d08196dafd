"""Mapped columns as they are written: under physical names, with ids, in a schema that has both."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import physical_column
from tidegate_protocol.schema.data_types import COLUMN_ID, PHYSICAL_NAME

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
BAD_NAMES = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
OTHER_NAMES = "choose other names, or set delta.columnMapping.mode to name"
_MARKS = (COLUMN_ID, PHYSICAL_NAME)
_BAD_CHARACTERS = " ,;{}()\n\t="


def physical_columns(df: DataFrame, layout: TableLayout) -> DataFrame:
    """A conformed DataFrame with the table's columns as files have them."""
    if not layout.is_mapped:
        return df
    fields = layout.spark_schema.fields
    names = layout.spark_schema.names
    beside = [quoted(name) for name in df.columns if name not in names]
    return df.select(*(physical_column(quoted(field.name), field) for field in fields), *beside)


def with_marks(
    schema: StructType, layout: TableLayout, *, new_name: Callable[[], str]
) -> tuple[StructType, Mapping[str, str]]:
    """A schema that is to be the table's, with an id and a physical name for every field of it, and
    the properties that this changes.

    A field that the table has under the same path, of the same kind of type, keeps what it has. The
    others get ids above all that were given, and names of `new_name`, a fresh one at each call.
    Raises `SchemaMismatch` for new `bad_names`.
    """
    if not layout.is_mapped:
        known = layout.spark_schema.names
        new = StructType([field for field in schema.fields if field.name not in known])
        if bad := bad_names(new, layout):
            raise SchemaMismatch(says_bad(bad), hint=OTHER_NAMES, error_class=BAD_NAMES)
        return schema, {}
    numbers = _Numbers(layout.properties.max_column_id or 0, new_name)
    marked = numbers.struct(schema, layout.spark_schema)
    return marked, {MAX_COLUMN_ID: str(numbers.highest)}


def bad_names(data_type: DataType, layout: TableLayout) -> list[str]:
    """The names that Parquet's readers stumble over, which mapped columns may have."""
    if layout.is_mapped or not isinstance(data_type, StructType):
        return []
    found = [each.name for each in data_type.fields if set(each.name) & set(_BAD_CHARACTERS)]
    inside = (bad_names(each.dataType, layout) for each in data_type.fields)
    return [*found, *chain.from_iterable(inside)]


def says_bad(names: Sequence[str]) -> str:
    """What a refusal says of `bad_names`."""
    return (
        f"Found invalid character(s) among {_BAD_CHARACTERS!r} in the column names of your "
        f"schema. Invalid column names: {', '.join(names)}"
    )


class _Numbers:
    def __init__(self, highest: int, new_name: Callable[[], str]) -> None:
        self.highest = highest
        self._new_name = new_name

    def struct(self, schema: StructType, known: DataType | None) -> StructType:
        fields = known.fields if isinstance(known, StructType) else []
        by_name = {field.name.lower(): field for field in fields}
        return StructType(
            [self._field(field, by_name.get(field.name.lower())) for field in schema.fields]
        )

    def _field(self, field: StructField, known: StructField | None) -> StructField:
        if known is not None and type(known.dataType) is not type(field.dataType):
            known = None
        marks = known if PHYSICAL_NAME not in field.metadata else field
        metadata = {k: v for k, v in field.metadata.items() if k not in _MARKS}
        if marks is not None:
            metadata |= {name: marks.metadata[name] for name in _MARKS}
        else:
            self.highest += 1
            metadata |= {COLUMN_ID: self.highest, PHYSICAL_NAME: self._new_name()}
        inside = self._type(field.dataType, None if known is None else known.dataType)
        return StructField(field.name, inside, field.nullable, metadata)

    def _type(self, data_type: DataType, known: DataType | None) -> DataType:
        match data_type:
            case StructType():
                return self.struct(data_type, known)
            case ArrayType():
                inside = known.elementType if isinstance(known, ArrayType) else None
                return ArrayType(self._type(data_type.elementType, inside), data_type.containsNull)
            case MapType():
                of_map = known if isinstance(known, MapType) else None
                return MapType(
                    self._type(data_type.keyType, of_map and of_map.keyType),
                    self._type(data_type.valueType, of_map and of_map.valueType),
                    data_type.valueContainsNull,
                )
        return data_type
