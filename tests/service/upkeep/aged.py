"""Tables whose versions are as old as a test wants, with checkpoints of every kind."""

import os
import time
from pathlib import Path

from deltalake import DeltaTable
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.tables.delta_logs import DeltaLog, line
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table

DAY_S = 24 * 60 * 60


class LogOf(DeltaLog):
    """The log of a table that is there."""

    def __init__(self, world: World, table: TableRecord) -> None:
        self.table = Path(table.location.removeprefix("file://"))
        self.folder = world.log_folder(table)

    @property
    def versions(self) -> list[int]:
        """Those that have commits."""
        files = self.folder.glob("*.json")
        return sorted(int(file.stem) for file in files if len(file.stem) == 20)

    @property
    def checkpoints(self) -> list[int]:
        return sorted({int(file.name[:20]) for file in self.folder.glob("*.checkpoint.*")})

    @property
    def names(self) -> list[str]:
        return sorted(file.name for file in self.folder.iterdir() if file.is_file())


async def rows_of(index: Index, table: TableRecord, version: int) -> list[dict[str, object]]:
    """What a checkpoint of the version holds."""
    state = await index.state_at(table.id, version)
    assert state is not None
    rows = [line(each) for each in (state.protocol, state.metadata) if each is not None]
    async for batch in index.files(table.id, version):
        rows += [line(file) for file in batch]
    return rows


async def age(
    world: World, engine: AsyncEngine, table: TableRecord, days: dict[range, float]
) -> None:
    """Make versions so many days old, each a second younger than the one before."""
    now_s = time.time()
    log = LogOf(world, table)
    async with engine.begin() as connection:
        for versions, ago in days.items():
            for version in versions:
                at_s = int(now_s - ago * DAY_S + version)
                await connection.execute(
                    text(
                        "UPDATE commits SET timestamp = :ms WHERE table_id = :id AND version = :v"
                    ),
                    {"ms": at_s * 1000, "id": table.id, "v": version},
                )
                # It says when the version was made.
                (log.folder / f"{version:020d}.crc").unlink(missing_ok=True)
                for file in log.folder.glob(f"{version:020d}.*"):
                    os.utime(file, (at_s, at_s))


async def let_it_be_tomorrow(engine: AsyncEngine) -> None:
    """What is due by time is due now."""
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE table_upkeep SET due_at = due_at - interval '2 days'")
        )


async def commit(world: World, table: TableRecord, count: int) -> None:
    for _ in range(count):
        await propose(world.context, table.id, proposal(add(world.context.new_id())))


async def expired(
    world: World, engine: AsyncEngine, properties: dict[str, str] | None = None
) -> TableRecord:
    """A table with the versions 0 to 9, of which 0 to 6 are forty days old, and checkpoints of 3,
    5 and 8, written by deltalake."""
    table = await world.create(properties=properties or {})
    for until in (3, 5, 8, 9):
        head = await get_table(world.context, table.id)
        await commit(world, table, until - head.latest_version)
        if until != 9:
            DeltaTable(table.location).create_checkpoint()
    await age(world, engine, table, {range(7): 40})
    return await get_table(world.context, table.id)


async def is_readable(index: Index, log: LogOf, table: TableRecord) -> None:
    """By deltalake, with the files that the index has, at every version that follows from version 0
    or a checkpoint."""
    first = 0 if log.versions[0] == 0 else log.checkpoints[0]
    for version in range(first, table.latest_version + 1):
        theirs = DeltaTable(table.location, version=version).file_uris()
        ours = [file async for batch in index.files(table.id, version) for file in batch]
        assert len(theirs) == len(ours) == version
    assert log.versions == list(range(log.versions[0], table.latest_version + 1))
