"""Tables of the real service for the client's tests, and files for them."""

import itertools
import json

import tidegate
from tests.client import answers
from tidegate import DataFile, Lake, Table

_numbers = itertools.count(1)


def new_name() -> str:
    """A table name that nobody else has."""
    return f"client.tests.t{next(_numbers)}"


def new_table(lake: Lake, **options: object) -> Table:
    """A table of its own for a test, with the columns `month` and `flight`."""
    return lake.create_table(new_name(), schema=answers.SCHEMA, partition_by="month", **options)


def data_file(name: str, month: int = 5, rows: int = 3, **changes: object) -> DataFile:
    """An add of a file that need not be there: the service never looks at data."""
    fields = {
        "path": f"month={month}/{name}.parquet",
        "partition_values": {"month": str(month)},
        "size": 100,
        "modification_time": 1_700_000_000_000,
        "data_change": True,
        "stats": json.dumps({"numRecords": rows}),
    }
    return DataFile(**(fields | changes))


def append(table: Table, *files: DataFile) -> tidegate.Receipt:
    """Commit the files on top of the latest version."""
    with table.transaction() as txn:
        txn.add(files)
        return txn.commit("WRITE")


def paths(scan: tidegate.Scan) -> list[str]:
    """The paths of a scan's files, in order."""
    return sorted(file.path for file in scan.files)
