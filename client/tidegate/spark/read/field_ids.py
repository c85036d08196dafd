"""Columns of files that are told by their ids: column mapping's mode `id`.

Spark's reader finds columns by id only as a setting of the whole session, and then pushes filters
down by name. So the names are looked up here, in the footer of each file.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.storage.locations import DataStore, StoredFile
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import PARQUET_ID
from tidegate_protocol.log.actions import FileAction
from tidegate_protocol.log.paths import decode
from tidegate_protocol.schema.data_types import COLUMN_ID

_THREADS = 16
_ABSENT = "__tidegate_absent_"


def schemas_in_files(
    layout: TableLayout, files: Sequence[FileAction], store: DataStore
) -> list[StructType]:
    """The table's columns under the names that each of the files has them by. Without mode `id`
    nothing is read: they are the physical names.

    Raises `UnsupportedTable` for a file without ids, and `StorageError`.
    """
    schema = layout.physical.spark_schema
    if layout.properties.column_mapping_mode != "id":
        return [schema] * len(files)
    inside = set(layout.physical.partition_columns)

    def found(file: FileAction) -> StructType:
        stored = StoredFile(path=decode(file.path), size=file.size or 0, modification_time=0)
        arrow = store.footer(stored).schema.to_arrow_schema()
        if len(arrow) and not any(map(arrow_id, arrow)):
            raise UnsupportedTable(
                f"the columns of file {file.path} of table {layout.name} have no field ids, by "
                "which its column mapping has them told"
            )
        return StructType(
            [field if field.name in inside else _named(field, arrow) for field in schema.fields]
        )

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        return list(pool.map(found, files))


def arrow_id(field: pa.Field) -> int | None:
    """The Parquet field id of a column."""
    value = (field.metadata or {}).get(PARQUET_ID)
    return None if value is None else int(value)


def _named(field: StructField, among: Iterable[pa.Field]) -> StructField:
    wanted = field.metadata.get(COLUMN_ID)
    found = next((other for other in among if arrow_id(other) == wanted), None)
    if found is None:
        # Whatever else the file has under the physical name is another column.
        name = f"{_ABSENT}{wanted}"
        return StructField(name, field.dataType, field.nullable, field.metadata)
    named = _named_inside(field.dataType, found.type)
    return StructField(found.name, named, field.nullable, field.metadata)


def _named_inside(data_type: DataType, arrow: pa.DataType) -> DataType:
    match data_type:
        case StructType() if pa.types.is_struct(arrow):
            return StructType([_named(field, list(arrow)) for field in data_type.fields])
        case ArrayType() if pa.types.is_list(arrow):
            element = _named_inside(data_type.elementType, arrow.value_type)
            return ArrayType(element, data_type.containsNull)
        case MapType() if pa.types.is_map(arrow):
            return MapType(
                _named_inside(data_type.keyType, arrow.key_type),
                _named_inside(data_type.valueType, arrow.item_type),
                data_type.valueContainsNull,
            )
    return data_type
