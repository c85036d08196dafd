"""Logs on S3 are cleaned up, and read by others."""

import asyncio
from dataclasses import dataclass, replace

import obstore
import pytest
from deltalake import DeltaTable
from sqlalchemy.ext.asyncio import AsyncEngine

from demo.s3_server import S3Server
from tests.service.on_s3.conftest import S3World
from tests.service.upkeep.aged import commit
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import Glance, TableRecord
from tidegate_service.core.ports.told import HeadsOnStandby
from tidegate_service.core.upkeep.checksums import Checksums
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

FORTY_DAYS_MS = 40 * 24 * 60 * 60 * 1000


@dataclass
class InFortyDays:
    """The index when its clock will be there: objects cannot be made older."""

    index: Index

    def __getattr__(self, name: str) -> object:
        return getattr(self.index, name)

    async def told_glance(self, table_id: str, *, known: HeadsOnStandby) -> Glance | None:
        found = await self.index.told_glance(table_id, known=known)
        return None if found is None else replace(found, now_ms=found.now_ms + FORTY_DAYS_MS)


def names(world: S3World, table: TableRecord) -> list[str]:
    folder = world.log_folder(table)
    found = [entry["path"] for batch in obstore.list(folder.store, folder.key) for entry in batch]
    return sorted(path.rpartition("/")[2] for path in found)


async def test_what_has_expired_is_deleted(
    world: S3World, index: Index, engine: AsyncEngine, s3_server: S3Server
):
    table = await world.create()
    await commit(world, table, 39)
    # The store dates by the second, and a log is not cut within one.
    await asyncio.sleep(1.1)
    await commit(world, table, 1)
    options = s3_server.storage_options
    DeltaTable(table.location, storage_options=options).create_checkpoint()
    await commit(world, table, 2)
    upkeep, storage = PostgresUpkeep(engine), world.context.storage
    jobs = [Checksums(upkeep, storage), CleanUp(InFortyDays(index), upkeep, storage)]
    assert await Caretaker(index, upkeep, jobs, share=1).round() == 2
    left = [f"{version:020d}.json" for version in (40, 41, 42)]
    assert names(world, table) == sorted(
        [*left, f"{40:020d}.checkpoint.parquet", f"{42:020d}.crc", "_last_checkpoint"]
    )
    for version in (40, 41, 42):
        theirs = DeltaTable(table.location, version=version, storage_options=options)
        assert len(theirs.file_uris()) == version
    assert (await verify_table(world.context, table.id)).differences == ()
