"""Files that hold more than the table: deleted rows, and columns that it no longer has."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from tidegate.models import DataFile
from tidegate.spark.storage.locations import StoredFile
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.row_ids import row_id_fields
from tidegate_protocol.log.paths import decode

_THREADS = 16


def with_leftovers(
    spark: SparkSession, layout: TableLayout, files: Sequence[DataFile]
) -> list[DataFile]:
    """Those of the files that have a deletion vector, or a column that was dropped; only where
    columns are mapped are there such, and then the footers are read. Raises what the storage
    raises."""
    if not layout.is_mapped:
        return [file for file in files if file.deletion_vector is not None]
    store = store_at(layout.location, spark)
    known = layout.physical.spark_schema
    beside = {field.name for field in row_id_fields(layout)}

    def has_leftovers(file: DataFile) -> bool:
        if file.deletion_vector is not None:
            return True
        stored = StoredFile(path=decode(file.path), size=file.size, modification_time=0)
        columns = store.footer(stored).schema.to_arrow_schema()
        return _has_others([field for field in columns if field.name not in beside], known)

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        found = list(pool.map(has_leftovers, files))
    return [file for file, has in zip(files, found, strict=True) if has]


def _has_others(columns: Iterable[pa.Field], known: StructType) -> bool:
    by_name = {field.name: field.dataType for field in known.fields}
    return any(
        field.name not in by_name or _has_others_inside(field.type, by_name[field.name])
        for field in columns
    )


def _has_others_inside(found: pa.DataType, known: DataType) -> bool:
    match known:
        case StructType() if pa.types.is_struct(found):
            return _has_others(list(found), known)
        case ArrayType() if pa.types.is_list(found):
            return _has_others_inside(found.value_type, known.elementType)
        case MapType() if pa.types.is_map(found):
            return _has_others_inside(found.key_type, known.keyType) or _has_others_inside(
                found.item_type, known.valueType
            )
    return False
