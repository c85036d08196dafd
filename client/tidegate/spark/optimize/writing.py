"""The files that the rows of bins are written into."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from tidegate.spark.columns.conform import unchanged
from tidegate.spark.commands.target import Target
from tidegate.spark.data_files.staging import DataFiles, TransactionFolder
from tidegate.spark.errors import StorageError
from tidegate.spark.optimize.bins import Bin
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import new_folder
from tidegate.spark.tables.refusals import check_readable
from tidegate.spark.write_options import FileOptions

Arrange = Callable[[DataFrame, Bin], DataFrame]
"""The rows of a bin in the partitions that files are made of."""
Mark = Callable[[DataFiles], DataFiles]
"""The files of a bin as the log is to have them."""
_OPTIONS = FileOptions(data_change=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A bin, and the files that its rows are in from the commit on; they have a folder of their
    own."""

    bin: Bin
    files: DataFiles
    folder: TransactionFolder


def rewritten(
    target: Target,
    bins: Sequence[Bin],
    arrange: Arrange,
    mark: Mark,
    *,
    operation: str,
    threads: int,
) -> list[Rewritten]:
    """Write each of the bins, as many as `threads` at once, in a Spark job for each. Where one
    fails, no file stays behind. Raises `UnsupportedTable`, `StorageError`, and what else the job
    failed of."""
    layout = target.layout
    check_readable(layout, target.transaction.head.protocol)
    store = store_at(layout.location, target.spark)
    context = target.spark.sparkContext
    tag = f"tidegate-{target.transaction.id}"
    folders = [TransactionFolder(layout, new_folder(target.transaction.id), store) for _ in bins]

    def write(number: int) -> Rewritten:
        bin_, folder = bins[number], folders[number]
        context.addJobTag(tag)
        context.setJobDescription(
            f"{operation} of {layout.name}: {len(bin_.files)} files, "
            f"part {number + 1} of {len(bins)}"
        )
        rows = rows_of_files(target.spark, layout, bin_.files, is_whole=True, with_ids=True)
        files = folder.write(unchanged(arrange(rows, bin_), layout), _OPTIONS)
        target.check_all_there(bin_.files, rows=files.rows)
        return Rewritten(bin=bin_, files=mark(files), folder=folder)

    with (
        target.passes(operation) as passes,
        ThreadPoolExecutor(max_workers=threads) as pool,
    ):
        passes.rewrites(sum(len(each.files) for each in bins), parts=len(bins))
        try:
            waiting = [
                pool.submit(inheritable_thread_target(target.spark)(write), number)
                for number in range(len(bins))
            ]
            return [each.result() for each in waiting]
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            context.cancelJobsWithTag(tag)
            pool.shutdown()
            discard(folders, error)
            raise


def discard(folders: Iterable[TransactionFolder], error: BaseException | None) -> None:
    """Delete folders whose files no commit names or ever will. What cannot be deleted is noted on
    the error that is on its way; without one it is raised."""
    for folder in folders:
        try:
            folder.delete()
        except (OSError, StorageError) as what:
            if error is None:
                raise
            error.add_note(f"The files in {folder.name} could not be deleted: {what}")
