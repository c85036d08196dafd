"""A process that commits to a table with `deltalake` alone, data files left out.

The leanest way there is in Python: `create_write_transaction` with actions that name files which
nobody writes, on a table handle that is kept, and brought up to date between commits
(`update_incremental`): without that, each commit is checked against all that came before it.
Its own checkpoints every 100 versions stay on; without them it is slower still.
"""

import time
from multiprocessing.connection import Connection

from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction
from msgspec import Struct

from benchmarks.load.plan import Kind
from benchmarks.load.writer_requests import STATS, partition_of

SCHEMA = Schema(
    [
        Field("id", PrimitiveType("long")),
        Field("value", PrimitiveType("double")),
        Field("p", PrimitiveType("string")),
    ]
)
# As often as it takes: what is measured is the rate of commits that land.
_RETRIES = CommitProperties(max_commit_retries=1000)


class Turn(Struct, frozen=True, kw_only=True):
    """`begins` is on the clock `time.monotonic`, which all processes share."""

    location: str
    kind: Kind
    begins: float
    seconds: float


class Done(Struct, frozen=True, kw_only=True):
    """Of one writer within the measured time: what landed, and the calls that failed (a conflict
    that was no matter of trying again, or one too many)."""

    commits: int
    failures: int


def work(pipe: Connection, writer: int) -> None:
    """Do turns until told None."""
    pipe.send("ready")
    while (turn := pipe.recv()) is not None:
        assert isinstance(turn, Turn)
        pipe.send(_turn(turn, writer))


def _turn(turn: Turn, writer: int) -> Done:
    table = DeltaTable(turn.location)
    time.sleep(max(0.0, turn.begins - time.monotonic()))
    ends = turn.begins + turn.seconds
    commits = failures = number = 0
    while time.monotonic() < ends:
        number += 1
        try:
            _commit(table, turn.kind, writer, number)
        except (CommitFailedError, DeltaError):
            failures += 1
        else:
            # One that landed after the end is not of this time.
            commits += time.monotonic() < ends
        table.update_incremental()
    return Done(commits=commits, failures=failures)


def _commit(table: DeltaTable, kind: Kind, writer: int, number: int) -> None:
    overwrite = kind is Kind.OVERWRITE
    partition = {"p": partition_of(writer)} if overwrite else {}
    action = AddAction(
        path=f"part-{writer:04}-{number:08}-c000.snappy.parquet",
        size=23172,
        partition_values=partition,
        modification_time=1763700000000,
        data_change=True,
        stats=STATS,
    )
    table.create_write_transaction(
        [action],
        "overwrite" if overwrite else "append",
        SCHEMA,
        partition_by=list(partition) or None,
        partition_filters=[("p", "=", partition_of(writer))] if overwrite else None,
        commit_properties=_RETRIES,
    )
