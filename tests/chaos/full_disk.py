"""Disks that are full for a while: the one of the tables, and the one of Postgres."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.cluster import Cluster
from tests.chaos.disks import fill, free, small_disk
from tests.chaos.load import Counts
from tests.chaos.nemesis import Damage, Pace

TABLES_MIB, POSTGRES_MIB = 256, 512
REFUSALS = 5
"""Answers without an outcome that a full disk has to bring about before it has room again."""
FULL_S = 60.0
"""How long those may take, at most."""
_POLL_S = 0.05


@contextmanager
def two_small_disks() -> Iterator[Path]:
    """A folder for a cluster whose tables and Postgres have small disks. Raises `NoDisks`."""
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", dir="/tmp") as folder,
        small_disk(Path(folder, "data"), mib=TABLES_MIB),
        small_disk(Path(folder, "postgres"), mib=POSTGRES_MIB),
    ):
        yield Path(folder)


async def fill_disks(cluster: Cluster, pace: Pace, dice: random.Random, damage: Damage) -> None:
    """By turns the disk of the tables and the one of Postgres is full, until clients have been
    told so several times; then there is room again, and commits go on by themselves."""
    del dice
    for number in range(pace.deeds):
        await pace.next(number)
        name = "Postgres" if number % 2 else "the tables"
        await _while_full(
            cluster.folder / ("postgres" if number % 2 else "data"), _refusing(pace.counts)
        )
        damage.full_disks[name] = damage.full_disks.get(name, 0) + 1
        if not cluster.postgres.running:
            # It ends by itself where it cannot write its own log; whoever runs it starts it.
            await asyncio.to_thread(cluster.postgres.start)


def _refusing(counts: Counts) -> Callable[[], bool]:
    until = counts.unknown + REFUSALS
    return lambda: counts.unknown >= until


async def _while_full(disk: Path, told: Callable[[], bool]) -> None:
    fill(disk)
    try:
        async with asyncio.timeout(FULL_S):
            while not told():
                await asyncio.sleep(_POLL_S)
                await asyncio.to_thread(fill, disk)
    finally:
        free(disk)
