"""Two jobs that overwrite one month at once: one wins, the other learns of it and does it again."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame

import tidegate


def race(table: tidegate.Table, rows: DataFrame, where: str, report: Callable[[str], None]) -> None:
    """Let two jobs replace the same partition. Both read the table before either commits, so
    that exactly one of them must lose, whatever the timing.

    Raises `AssertionError` where not exactly one of them does.
    """
    jobs = {name: table.transaction() for name in ("job A", "job B")}
    with ThreadPoolExecutor(len(jobs)) as pool:
        outcomes = {
            name: pool.submit(_overwrite, table, rows, where, name, transaction)
            for name, transaction in jobs.items()
        }
        losses = []
        for name, outcome in outcomes.items():
            try:
                report(f"{name} landed as version {outcome.result()}")
            except tidegate.ConflictError as lost:
                losses.append((name, lost))
    assert len(losses) == 1, f"expected one job to lose, found {losses}"
    ((loser, conflict),) = losses
    winner = conflict.conflict
    assert winner is not None, f"expected a conflict to name its winner, found {conflict}"
    report(
        f"{loser} lost: {type(conflict).__name__}, version {winner.version} "
        f"({winner.operation}) got there first, partition {winner.partition}"
    )
    again = _overwrite(table, rows, where, f"{loser}, again", table.transaction())
    report(f"{loser} did it again on the new version and landed as version {again}")


def _overwrite(
    table: tidegate.Table,
    rows: DataFrame,
    where: str,
    name: str,
    transaction: tidegate.Transaction,
) -> int:
    receipt = table.overwrite(
        rows, replace_where=where, user_metadata=name, transaction=transaction
    )
    assert receipt is not None
    return receipt.version
