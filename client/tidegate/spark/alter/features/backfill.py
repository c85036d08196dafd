"""Row ids for the files that a table has before it tracks its rows (Delta:
RowTrackingBackfillCommand).

First the protocol gets the feature, from when on every file that is added has ids. Then the files
without are committed again, batch by batch. Each commit leaves a table that everybody may write to;
where the way ends early, the next call goes on from there.
"""

from collections.abc import Callable, Mapping, Sequence

from tidegate.models import DataFile
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.features.protocol import add_feature
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.session_settings import Settings, above_zero, at_least, boolean
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.properties import (
    ENABLE_ROW_TRACKING,
    TableProperties,
    canonical,
)
from tidegate_protocol.features.row_tracking import ROW_TRACKING_SUSPENDED, row_count
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.proposal.operations import ROW_TRACKING_BACKFILL

Begin = Callable[[], Alteration]
"""A new transaction at the latest version."""
ENABLEMENT_ONLY_TAG = "rowTrackingEnablementOnly"
"""Delta's tag of a commit that switches row tracking on and does nothing else: writers that it
overtook need not begin anew."""
_ALLOWED = "spark.databricks.delta.rowTracking.backfill.enabled"
_MOST_OF_ROW_TRACKING = "spark.databricks.delta.rowTracking.backfill.maxNumFiles"
_MOST = "spark.databricks.delta.backfill.maxNumFiles"
_FACTOR = "spark.databricks.delta.backfill.maxNumFilesFactor"
_MOST_FILES = 22_000
_MOST_ROUNDS = 3.0


def switches_on(alteration: Alteration, given: Mapping[str, str]) -> bool:
    """Whether these properties make a table track its rows that has not done so. Raises
    `InvalidCommand` where they would also have it suspended."""
    wanted = canonical(given)
    after = TableProperties.parse({**alteration.metadata.configuration, **wanted})
    if after.row_tracking and after.row_tracking_suspended:
        raise InvalidCommand(
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            f"Illegal table state was detected. Table properties `{ENABLE_ROW_TRACKING}` and "
            f"`{ROW_TRACKING_SUSPENDED}` are both set to true",
            hint="disable one of the two",
        )
    return after.row_tracking and not alteration.layout.properties.row_tracking


def backfill(begin: Begin) -> None:
    """Have every file of the table have row ids, in as many commits as it takes.

    Commits of others that overlap with it land, and what they removed or committed again is left
    out. Raises `InvalidCommand` before the first commit for files whose rows the log does not
    count, and for a table whose row tracking is suspended; then what `Transaction.commit` raises.
    """
    alteration = begin()
    if not Settings(alteration.spark).get(_ALLOWED, boolean, True):
        raise UnsupportedTable(
            f"row ids are not given to the files of {alteration.layout.name}: the session has "
            f"{_ALLOWED} = false"
        )
    if alteration.layout.properties.row_tracking_suspended:
        raise InvalidCommand(
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            f"row ids of table {alteration.layout.name} are suspended; expected the property "
            f"{ROW_TRACKING_SUSPENDED} to be unset before {ENABLE_ROW_TRACKING} is set",
        )
    _check_counted([file for file in alteration.live_files() if _lacks_ids(file)])
    if add_feature(alteration, ROW_TRACKING) is not None:
        alteration = begin()
    in_batches(
        begin,
        alteration,
        chosen=_lacks_ids,
        changed=lambda file: with_fields(file, {"dataChange": False}),
        operation=ROW_TRACKING_BACKFILL,
    )


def in_batches(
    begin: Begin,
    alteration: Alteration,
    *,
    chosen: Callable[[DataFile], bool],
    changed: Callable[[DataFile], DataFile],
    operation: str,
) -> None:
    """Commit the chosen files of the table again, changed, as Delta does: no more in a commit than
    the session says, until a commit has fewer. Where others go on adding such files as fast, it
    ends after several times as many as the table has."""
    settings = Settings(alteration.spark)
    most = settings.get(_MOST_OF_ROW_TRACKING, at_least(1), _MOST_FILES)
    most = settings.get(_MOST, at_least(1), most)
    factor = settings.get(_FACTOR, above_zero, _MOST_ROUNDS)
    number = done = 0
    while True:
        live = alteration.live_files()
        files = [file for file in live if chosen(file)][:most]
        if not files:
            return
        alteration.transaction.read_files(files)
        alteration.transaction.add(map(changed, files))
        alteration.commit(operation, {"batchId": str(number)})
        number += 1
        done += len(files)
        if len(files) < most or done >= factor * len(live):
            return
        alteration = begin()


def _lacks_ids(file: DataFile) -> bool:
    return file.base_row_id is None


def _check_counted(files: Sequence[DataFile]) -> None:
    lacking = [file.path for file in files if row_count(file) is None]
    if lacking:
        raise InvalidCommand(
            "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            f"Cannot assign row IDs without row count statistics. {len(lacking)} files have no "
            f"numRecords in the log, among them {lacking[0]}",
            hint="write these files again, which counts their rows",
        )
