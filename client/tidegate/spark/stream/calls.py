"""Which batches this process has written, so that a second part of one is told from a repetition.

The table has recorded a batch's number with its first part, by which a further part would pass for
a repetition, and be dropped. Spark repeats a batch only in another run of its query.
"""

from tidegate.handle import TableHandle
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.stream.batch import StreamBatch
from tidegate.spark.stream.query import RunningQuery

_last: dict[tuple[str, str], tuple[str, int]] = {}
"""By table and application: the run and the number of the batch that was done last."""


def check_first(table: TableHandle, batch: StreamBatch, query: RunningQuery | None) -> None:
    """Raise `UnsupportedSession` where this run of the query has written the batch into the table
    already. Where Spark tells of no run, as outside of a query, nothing is known."""
    if query is None or query.run is None:
        return
    if _last.get((table.id, batch.app_id)) == (query.run, batch.number):
        raise UnsupportedSession(
            f"batch {batch.number} of {batch.app_id} was written into table {table.name} before in "
            "this run of the query; expected one call for a batch, a table and an app_id",
            hint="unite the parts before, or give each a sink of its own: table.sink(app_id=...)",
        )


def note_done(table: TableHandle, batch: StreamBatch, query: RunningQuery | None) -> None:
    """Remember the batch for `check_first`."""
    if query is not None and query.run is not None:
        _last[table.id, batch.app_id] = query.run, batch.number
