"""Which files of the table a write takes the place of, and which rows may do so."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.errors import PySparkException

from tidegate.models import DataFile
from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.errors import InvalidRows
from tidegate.spark.expressions.canonical import column_text, literal
from tidegate.spark.expressions.where import ReplacePredicate
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.partitions import canonical_text
from tidegate.spark.tables.predicates import LONGEST, partitions_where
from tidegate.transaction_content import TransactionContent
from tidegate_protocol.log.actions import PartitionValues
from tidegate_protocol.schema.data_types import (
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    DataType,
    type_name,
)


def replaced_files(
    transaction: TransactionContent, layout: TableLayout, where: ReplacePredicate | None
) -> list[DataFile]:
    """The files to remove, recorded as read; `where` is over partition columns alone."""
    if where is None:
        return transaction.filter_files()
    files = transaction.filter_files(where.pruning(layout))
    return _matching(files, layout, where)


def check_inside(files: DataFiles, layout: TableLayout, where: ReplacePredicate) -> None:
    """Raise `InvalidRows` where a row lies in a partition for which the predicate is not true."""
    inside = {add.path for add in _matching(files.adds, layout, where)}
    for add in files.adds:
        if add.path not in inside:
            raise outside(add.partition_values, f"replace_where ({where.text})")


def outside(partition: PartitionValues, where: str) -> InvalidRows:
    """The error for rows in a partition that is not among those which are overwritten."""
    found = ", ".join(f"{name}={value}" for name, value in partition.items())
    return InvalidRows(
        f"the DataFrame has rows in the partition {found}, where {where} is not true: written data "
        "does not conform to partial table overwrite condition or constraint",
        error_class="DELTA_REPLACE_WHERE_MISMATCH",
    )


def files_of_partitions(
    transaction: TransactionContent,
    layout: TableLayout,
    written: Iterable[DataFile],
    *,
    zone: str | None,
) -> list[DataFile]:
    """The table's files in the partitions that files were written to, recorded as read: what others
    add to these partitions meanwhile conflicts. `zone` is the session's, None where it is not known
    (`zone_of`).

    Partitions that are too many to name, and those of types whose values have no plain text in SQL,
    are read as parts of larger ones, at worst of the whole table.
    """
    partitions = {
        _key(file.partition_values, layout, zone): file.partition_values for file in written
    }
    if not partitions:
        return []
    texts = {_condition(values, layout) for values in partitions.values()}
    where = None if None in texts else " OR ".join(sorted(f"({text})" for text in texts))
    if where is not None and len(where.encode()) > LONGEST:
        where = None
    files = transaction.filter_files(where)
    return [file for file in files if _key(file.partition_values, layout, zone) in partitions]


def _key(
    values: Mapping[str, str | None], layout: TableLayout, zone: str | None
) -> tuple[str | None, ...]:
    physical = layout.physical
    return tuple(
        canonical_text(physical, column, values[column], zone=zone)
        for column in physical.partition_columns
    )


def _condition(values: Mapping[str, str | None], layout: TableLayout) -> str | None:
    """A condition that is true in the partition; None where there is none but "true"."""
    parts = []
    keys = layout.physical.partition_columns
    for column, key in zip(layout.partition_columns, keys, strict=True):
        field = layout.schema.field(column)
        text = values[key]
        name = column_text([column])
        if text is None:
            parts.append(f"{name} IS NULL")
        elif field is not None and (value := _literal(field.type, text)) is not None:
            parts.append(f"{name} = {value}")
    return " AND ".join(parts) or None


def _matching(
    files: Sequence[DataFile], layout: TableLayout, where: ReplacePredicate
) -> list[DataFile]:
    try:
        return partitions_where(where.columns, layout, files, where.condition)
    except PySparkException as error:
        raise where.refusal(error) from error


def _literal(data_type: DataType, text: str) -> str | None:
    if data_type in (BYTE, SHORT, INTEGER, LONG, BOOLEAN, DATE, STRING):
        return literal(type_name(data_type), text)
    return None
