"""What the Spark part of the client raises beside `tidegate.errors`.

TidegateError
├── UnsupportedTable     use a Delta client that supports what the message names
├── SchemaMismatch       select, rename or cast the DataFrame's columns
├── InvalidRows          correct the rows: the columns fit, some values do not
├── UnsupportedSession   change the Spark session, or use the other road
├── ChangesUnavailable   ask for versions whose changes there are
├── StreamStopped        do what the message says, and start the stream again
├── CheckpointBehind     restore the stream's checkpoint, or give the stream a new id
└── StorageError         give the Spark session what the table's storage asks for

All of them are definite: they are found before anything is proposed, and nothing of the work
that raised them is in the table.
"""

import re

from pyspark.errors import PySparkException

from tidegate.errors import TidegateError

_MARK = "tidegate: "
_RAISED = re.compile(
    r"\[USER_RAISED_EXCEPTION\] " + re.escape(_MARK) + r"(?P<text>.*?) ?SQLSTATE", re.DOTALL
)


class _FoundBefore(TidegateError):
    def __init__(self, detail: str, *, hint: str | None = None) -> None:
        super().__init__(detail, hint=hint, definite=True)


class UnsupportedTable(_FoundBefore):
    """The table needs something of its readers or writers that this client does not do."""

    next_step = "use a Delta client that supports this for the table"


class SchemaMismatch(_FoundBefore):
    """The DataFrame's columns are not those of the table."""

    next_step = "select, rename or cast the DataFrame's columns to fit the table's schema"


class InvalidRows(_FoundBefore):
    """A row holds a value that the table cannot take."""

    next_step = "correct or filter the rows of the DataFrame"


class UnsupportedSession(_FoundBefore):
    """The Spark session or its options cannot do what was asked for."""


class ChangesUnavailable(_FoundBefore):
    """The change data feed of these versions cannot be read. The message begins with Delta's class
    of the error."""

    next_step = "ask for versions that recorded their changes under columns that are still read"


class StreamStopped(_FoundBefore):
    """A stream from a table came to a version that it cannot go on with. The message begins with
    Delta's class of the error."""


class CheckpointBehind(_FoundBefore):
    """The table has recorded later batches of a stream than the one that is to be written."""

    next_step = (
        "restore the checkpoint that the recorded batches were written with; or, to write batches "
        "again, give the stream another id: table.sink(app_id=...), or a new checkpoint where "
        "there is no app_id"
    )


class StorageError(_FoundBefore):
    """The table's storage refused Spark, or could not be reached by it."""

    next_step = "check the storage's settings of the Spark session (docs/spark.md)"


def marked(text: str) -> str:
    """The message of an error that Spark is to raise for a row, as `refused_rows` knows it."""
    return _MARK + text


def refused_rows(error: PySparkException) -> InvalidRows | None:
    """The refusal of a row that made a Spark job fail; None where it failed of something else."""
    found = _RAISED.search(str(error))
    return None if found is None else InvalidRows(found["text"])
