"""OPTIMIZE and REORG: bins are written, and committed together under snapshot isolation. Such a
commit yields to every other. Of those that a rival took files of, what still holds is committed at
once, and the rest is planned anew on the rival's version.
"""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from tidegate.errors import ConflictError
from tidegate.handle import TableHandle
from tidegate.models import Receipt, TableVersion
from tidegate.spark.data_files.staging import is_lost
from tidegate.spark.optimize.bins import Bin
from tidegate.spark.optimize.metrics import Optimized, Tally, files_of, history_metrics
from tidegate.spark.optimize.plan import Plan, Reorganized, Request
from tidegate.spark.optimize.writing import Rewritten, discard, rewritten
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.tables.row_ids import kept_tag
from tidegate.spark.write.repeats import check_retries
from tidegate.transaction_handle import TransactionHandle, left_at_the_end

RETRIES = 20
"""Commits that an OPTIMIZE loses before it leaves the table to its rivals."""


def optimize(
    table: TableHandle,
    spark: SparkSession,
    *,
    where: Sequence[str] = (),
    z_order_by: Sequence[str] = (),
    is_full: bool = False,
    user_metadata: str | None = None,
    retries: int = RETRIES,
) -> Optimized:
    """Write small files, and those that have lost many rows, again into few large ones, or with
    `z_order_by` all files, so that rows which are near in these columns share files.

    A clustered table is clustered by its columns instead: what was added since, and with it cubes
    that are small yet; one that `is_full` takes what was clustered by other columns, too.

    `where` are predicates over partition columns, which choose partitions. Sizes, batches and the
    rest are the session's, by Delta's settings (`OptimizeSettings`). The table's rows stay the
    same: a concurrent commit that adds some is no conflict, and where one removes a file, that part
    is done again on its version, after `retries` such commits at most. Raises `InvalidCommand` and
    `UnsupportedSession` before any job, `InvalidRequest` for a negative number of retries,
    `UnsupportedTable`, `StorageError`, and what `Transaction.commit` raises; what was committed
    before stays.
    """
    request = Request(where=tuple(where), z_order_by=tuple(z_order_by), is_full=is_full)
    return _Run(request, table, spark, user_metadata, retries).run()


def reorg(
    table: TableHandle,
    spark: SparkSession,
    *,
    where: Sequence[str] = (),
    what: Reorganized = Reorganized.LEFTOVERS,
    user_metadata: str | None = None,
    retries: int = RETRIES,
) -> Optimized:
    """Write the files that hold deleted rows or dropped columns again without them (REORG TABLE ...
    APPLY (PURGE)), or those that have other types than the table. Otherwise as `optimize`. VACUUM
    deletes the files that held them."""
    request = Request(where=tuple(where), reorganizes=what)
    return _Run(request, table, spark, user_metadata, retries).run()


class _Run:
    def __init__(
        self,
        request: Request,
        table: TableHandle,
        spark: SparkSession,
        user_metadata: str | None,
        retries: int,
    ) -> None:
        check_retries(retries)
        self._request = request
        self._table = table
        self._spark = spark
        self._user_metadata = user_metadata
        self._retries = retries
        self._conflicts = 0
        self._plan = Plan.of(request, table, spark)
        self._tally = Tally(
            considered=self._plan.files,
            ordered=bool(self._plan.order),
            clustering=self._plan.clustering,
        )

    def run(self) -> Optimized:
        batches = self._plan.batches(self._plan.bins())
        while batches:
            lost = self._land(batches.pop(0))
            if lost:
                batches = self._again([*lost, *(bin_ for batch in batches for bin_ in batch)])
        return self._tally.outcome(self._plan.target.layout, self._spark)

    def _land(self, bins: Sequence[Bin]) -> list[Bin]:
        """Write and commit the bins; those that a rival took files of are returned."""
        plan = self._plan
        written = rewritten(
            plan.target,
            bins,
            plan.arranged,
            plan.marked,
            operation=self._request.operation,
            threads=plan.settings.threads,
        )
        lost: list[Bin] = []
        head: TableVersion = plan.target.transaction.head
        transaction = None
        try:
            while written:
                transaction = TransactionHandle(plan.target.transaction.table, head=head)
                try:
                    self._tally.note(self._commit(transaction, written), written)
                    break
                except ConflictError as error:
                    self._count(error)
                    head = transaction.table.head()
                    written, gone = self._parted(written, head)
                    discard([each.folder for each in gone], error)
                    lost += [each.bin for each in gone]
        except BaseException as error:
            if transaction is None or is_lost(transaction):
                discard([each.folder for each in written], error)
            raise
        return lost

    def _commit(self, transaction: TransactionHandle, written: Sequence[Rewritten]) -> Receipt:
        added, removed = files_of(written)
        with left_at_the_end(transaction):
            transaction.add(added)
            transaction.remove(removed, data_change=False)
            return transaction.commit(
                self._request.operation,
                parameters=self._plan.parameters(),
                metrics=history_metrics(written),
                user_metadata=metadata_of(self._user_metadata, self._spark),
                tags=kept_tag(self._plan.target.transaction.head.metadata),
            )

    def _parted(
        self, written: Sequence[Rewritten], head: TableVersion
    ) -> tuple[list[Rewritten], list[Rewritten]]:
        """Those of which every file is still as it was read, and the others. A new deletion vector
        makes a file another one, and new columns all of them."""
        before = self._plan.target.transaction.head
        if head.metadata != before.metadata or head.protocol != before.protocol:
            return [], list(written)
        table = self._plan.target.transaction.table
        live = {file.path: file for file in self._plan.filter.around(table, head.version)}
        held: list[Rewritten] = []
        gone: list[Rewritten] = []
        for each in written:
            same = all(live.get(file.path) == file for file in each.bin.files)
            (held if same else gone).append(each)
        return held, gone

    def _again(self, left: Sequence[Bin]) -> list[list[Bin]]:
        """What is left to do in the partitions of these bins, on the latest version: a rival may
        have marked, or removed, files of any of them."""
        before = self._plan.target.layout.partition_columns
        self._plan = Plan.of(self._request, self._table, self._spark)
        done, _ = files_of(self._tally.rewritten)
        bins = self._plan.bins(but=frozenset(file.path for file in done))
        if self._plan.target.layout.partition_columns == before:
            partitions = {bin_.partition for bin_ in left}
            bins = [bin_ for bin_ in bins if bin_.partition in partitions]
        return self._plan.batches(bins)

    def _count(self, error: ConflictError) -> None:
        self._conflicts += 1
        if self._conflicts > self._retries:
            error.add_note(
                f"Given up after {self._conflicts} conflicts; {len(self._tally.receipts)} commits "
                "of it landed before."
            )
            raise error
