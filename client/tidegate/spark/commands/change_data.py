"""Change data files: the rows that a command changed, as they were and as they became.

They lie below `_change_data`, where VACUUM keeps them as long as the retention, and hold the column
`_change_type` beside the table's (PROTOCOL.md, "Add CDC File").
"""

from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.models import DataFile
from tidegate.spark.columns.conform import conform
from tidegate.spark.data_files.staging import TransactionFolder
from tidegate.spark.errors import refused_rows
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.layout import TableLayout
from tidegate.transaction_handle import TransactionHandle

FOLDER = "_change_data"
CHANGE_TYPE = "_change_type"
DELETE = "delete"
INSERT = "insert"
PREIMAGE = "update_preimage"
POSTIMAGE = "update_postimage"


def computed_once(rows: DataFrame) -> DataFrame:
    """The rows, kept in the executors: both the table's files and the change data are written of
    them, in two jobs, and chance is another in each. Raises `InvalidRows`."""
    try:
        return rows.localCheckpoint()
    except PySparkException as error:
        if (refusal := refused_rows(error)) is not None:
            raise refusal from error
        raise


def write_changes(
    folder: TransactionFolder, layout: TableLayout, changes: DataFrame
) -> tuple[DataFile, ...]:
    """Write rows with `CHANGE_TYPE`, in one job. Raises as `Table.append` does for rows."""
    conformed = conform(changes, layout, is_copy=True, beside=[CHANGE_TYPE])
    return folder.write(conformed, is_data=False).adds


def add_changes(transaction: TransactionHandle, files: Sequence[DataFile]) -> None:
    """Have the transaction name the files."""
    for file in files:
        transaction.action(
            {
                "cdc": {
                    "path": file.path,
                    "partitionValues": dict(file.partition_values),
                    "size": file.size,
                    "dataChange": False,
                }
            }
        )


@few_calls()
def images(changed: DataFrame, names: Sequence[str], after: Mapping[str, Column]) -> DataFrame:
    """Both sides of rows that were updated, in one pass: the columns of these names, in the second
    with the values that they have `after`."""
    before: dict[str, Column] = {}
    sides = [
        F.struct(
            *(new[name].alias(name) if name in new else quoted(name) for name in names),
            F.lit(kind).alias(CHANGE_TYPE),
        )
        for new, kind in ((before, PREIMAGE), (after, POSTIMAGE))
    ]
    return changed.select(F.inline(F.array(*sides)))
