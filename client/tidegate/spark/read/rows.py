"""The rows of given data files, by the table's columns: what every read of a table stands on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField
from pyspark.sql.types import StructType as SparkStruct

from tidegate.spark.deletion_vectors.files import read_vectors
from tidegate.spark.read.field_ids import schemas_in_files
from tidegate.spark.read.file_numbers import file_numbers, row_positions
from tidegate.spark.read.file_values import NO_OPTIONS, discovered, mapped, unpartitioned
from tidegate.spark.read.positions import without_rows
from tidegate.spark.read.row_ids import row_id_columns
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.assignment import chosen
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import logical_column
from tidegate.spark.tables.places import FILE, POSITION
from tidegate.spark.tables.plans import NUMBERED, no_rows, read_options
from tidegate.spark.tables.row_ids import row_id_fields
from tidegate.spark.tables.schemas import as_nullable
from tidegate_protocol.log.actions import Add

_WHOLE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}


def rows_of_files(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[Add],
    *,
    located: bool = False,
    is_whole: bool = False,
    with_ids: bool = False,
) -> DataFrame:
    """The rows of files of one version of a table, without those that their deletion vectors name;
    with `located`, the columns `FILE` and `POSITION` say where each one is. With `is_whole`, a
    file that cannot be read makes the job fail, whatever the session says: its rows are written
    again, and those that were passed over would be lost. With `with_ids`, rows of a table that
    tracks them have the columns of `row_id_fields`, too.

    Raises `UnsupportedTable` for a deletion vector or a file that is not as the protocol has it,
    and `UnsupportedSession` and `StorageError` where the session does not reach the files.
    """
    store = store_at(layout.location, spark)
    vectored = [n for n, file in enumerate(files) if file.deletion_vector is not None]
    vectors = [v for file in files if (v := file.deletion_vector) is not None]
    sets = dict(zip(vectored, read_vectors(vectors, store), strict=True))
    schemas = schemas_in_files(layout, files, store)
    ids = row_id_fields(layout) if with_ids else []
    groups: dict[tuple[bool, str], list[int]] = {}
    for number, schema in enumerate(schemas):
        groups.setdefault((number in sets, schema.json()), []).append(number)
    parts = [
        _rows(
            spark,
            layout,
            files,
            numbers,
            schemas[numbers[0]],
            sets=sets,
            located=located,
            ids=ids,
            options=read_options(layout) | (_WHOLE if is_whole else {}),
        )
        for numbers in groups.values()
    ]
    if not parts:
        places = [StructField(FILE, LongType()), StructField(POSITION, LongType())]
        schema = as_nullable(layout.spark_schema)
        return no_rows(
            spark, layout, SparkStruct([*schema.fields, *ids, *(places if located else ())])
        )
    return reduce(DataFrame.union, parts)


def scan(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[Add],
    schema: SparkStruct,
    options: Mapping[str, str] = NO_OPTIONS,
) -> DataFrame:
    """Every row of the files, which are at least one, by the columns of `schema`: those of the
    table's physical layout, as the files call them. `options` are further ones of Spark's
    reader."""
    physical = replace(layout.physical, spark_schema=schema)
    if not physical.partition_columns:
        return unpartitioned(spark, physical, files, options)
    found = discovered(spark, physical, files, options)
    return mapped(spark, physical, files, options) if found is None else found


def _rows(
    spark: SparkSession,
    layout: TableLayout,
    files: Sequence[Add],
    numbers: Sequence[int],
    schema: SparkStruct,
    *,
    sets: Mapping[int, BitMap64],
    located: bool,
    ids: Sequence[StructField],
    options: Mapping[str, str],
) -> DataFrame:
    """Those of a group of files: all of them have a set of deleted rows, or none has."""
    taken = [files[number] for number in numbers]
    own = {number: sets[number] for number in numbers if number in sets}
    is_numbered = bool(own or located or ids)
    options = {**options, **(NUMBERED if is_numbered else {})}
    df = scan(spark, layout, taken, SparkStruct([*schema.fields, *ids]), options)
    places: dict[str, Column | None] = {}
    if is_numbered:
        number = file_numbers(df, layout, taken, numbers).cast("long")
        df = df.select("*", number.alias(FILE), row_positions(df).alias(POSITION))
        places = {FILE: None, POSITION: None} if located else {}
    if own:
        df = without_rows(df, F.col(FILE), F.col(POSITION), own)
    of_rows = row_id_columns(ids, files, F.col(FILE), F.col(POSITION)) if ids else {}
    return chosen(df, {**columns_of(layout, schema), **of_rows, **places})


@few_calls()
def columns_of(layout: TableLayout, schema: SparkStruct) -> dict[str, Column | None]:
    """The table's columns, in their order, from those of a `scan` by `schema` (`chosen`)."""
    table = layout.spark_schema.fields
    return {
        field.name: logical_column(own, field)
        for own, field in zip(schema.fields, table, strict=True)
    }
