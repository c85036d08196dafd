"""Files whose columns have other types than the table's: those that were written before columns
became wider (PROTOCOL.md, "Type Widening")."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.models import DataFile
from tidegate.spark.data_files.arrow_columns import arrow_type
from tidegate.spark.storage.locations import StoredFile
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.paths import decode
from tidegate_protocol.schema.data_types import (
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)

_THREADS = 16
_WIDENED = (SHORT, INTEGER, LONG, DOUBLE)
"""What a narrower number may have become; decimals are more than can be listed."""


def with_older_types(
    spark: SparkSession, layout: TableLayout, files: Sequence[DataFile]
) -> list[DataFile]:
    """Those of the files in which a column, or what is in it, has another type than in the table.
    The end of each file is read. Raises what the storage raises."""
    store = store_at(layout.location, spark)
    known = layout.physical.schema

    def is_older(file: DataFile) -> bool:
        stored = StoredFile(path=decode(file.path), size=file.size, modification_time=0)
        columns = store.footer(stored).schema.to_arrow_schema()
        return _differs_in({field.name: field.type for field in columns}, known)

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        found = list(pool.map(is_older, files))
    return [file for file, older in zip(files, found, strict=True) if older]


def _differs_in(found: Mapping[str, pa.DataType], known: StructType) -> bool:
    return any(
        field.name in found and _differs(found[field.name], field.type) for field in known.fields
    )


def _differs(found: pa.DataType, known: DataType) -> bool:
    match known:
        case StructType() if pa.types.is_struct(found):
            return _differs_in({field.name: field.type for field in found}, known)
        case ArrayType(element=element) if pa.types.is_list(found):
            return _differs(found.value_type, element)
        case MapType(key=key, value=value) if pa.types.is_map(found):
            return _differs(found.key_type, key) or _differs(found.item_type, value)
    if known == TIMESTAMP_NTZ:
        # In which units a file has times is its own affair.
        return bool(pa.types.is_date(found))
    if known in _WIDENED or isinstance(known, DecimalType):
        return bool(found != arrow_type(known))
    return False
