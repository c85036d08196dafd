"""Two who write a table's V2 checkpoint at once, and sidecars that are not the table's files."""

import dataclasses

import pytest
from sqlalchemy import text

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import (
    SMALL,
    by_deltalake,
    check_readers,
    checkpointed,
    folder_of,
    of_twelve_files,
)
from tests.service.world import World
from tidegate_service.core.checkpoints.checkpoint import CheckpointLayout
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.checkpoints import DIGEST_MODULUS, ChangedSidecars
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio

LIMITS = IndexLimits(snapshot_files_a_page=3)
ONE_EACH = CheckpointLayout(sidecar_files=1)


class Interrupted(PostgresIndex):
    """An index behind whose back something happens before changed sidecars are looked up."""

    meanwhile = None

    async def changed_sidecars(self, table_id, known, *, version):
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().changed_sidecars(table_id, known, version=version)


class Hiding(PostgresIndex):
    """An index that says that one sidecar was not touched."""

    async def changed_sidecars(self, table_id, known, *, version):
        found = await super().changed_sidecars(table_id, known, version=version)
        assert found is not None
        assert found.after
        return ChangedSidecars(after=frozenset(), digest=found.digest)


@pytest.fixture
def world(world, engine) -> World:
    return world.over(PostgresIndex(engine, limits=LIMITS))


@pytest.fixture
async def table(world):
    return await of_twelve_files(world)


async def update(world, table) -> None:
    """One file in the place of another one, so that they are as many as before."""
    files = [remove("x=2/2.parquet", "2"), add("x=2/1a.parquet", "2")]
    await propose(world.context, table.name, proposal(*files, read_version=1, operation="UPDATE"))


def errors(caplog) -> list[str]:
    return [record.message for record in caplog.records if record.levelname == "ERROR"]


async def test_a_checkpoint_that_another_writer_keeps_meanwhile(
    world, table, engine, tmp_path, caplog
):
    await update(world, table)
    index = Interrupted(engine, limits=LIMITS)
    other = world.over(PostgresIndex(engine, limits=IndexLimits(snapshot_files_a_page=1)))

    async def write() -> None:
        index.meanwhile = None
        # The sidecar that changed becomes three: what changed is behind other keys than before.
        assert (await checkpointed(other, table, layout=ONE_EACH)).files == 7

    index.meanwhile = write
    written = await checkpointed(world.over(index), table, layout=SMALL)
    assert index.meanwhile is None
    # All anew: the sidecars that were looked at first are no longer those of the last checkpoint.
    assert written.files_written == 5
    assert errors(caplog) == []
    await check_readers(world, table, tmp_path, 2)
    await propose(world.context, table.name, proposal(add("x=3/9.parquet", "3")))
    await checkpointed(world, table, layout=SMALL)
    await check_readers(world, table, tmp_path, 3)


async def test_files_that_are_not_those_of_the_version(world, table, engine, tmp_path, caplog):
    await update(world, table)
    written = await checkpointed(world.over(Hiding(engine, limits=LIMITS)), table, layout=SMALL)
    assert written.files_written == 5
    assert [message for message in errors(caplog) if "differ from the version" in message]
    await check_readers(world, table, tmp_path, 2)


async def test_nor_files_as_they_were_before(world, table, engine, tmp_path):
    counted = add("x=2/2.parquet", "2", stats='{"numRecords":7}', dataChange=False)
    read = proposal(counted, read_version=1, operation="COMPUTE STATS")
    await propose(world.context, table.name, read)
    await checkpointed(world.over(Hiding(engine, limits=LIMITS)), table, layout=SMALL)
    found = by_deltalake(folder_of(table), tmp_path).get_add_actions()
    rows = zip(found["path"].to_pylist(), found["num_records"].to_pylist(), strict=True)
    assert dict(rows)["x=2/2.parquet"] == 7


async def test_sidecars_of_the_release_before_are_written_anew(world, table, engine, tmp_path):
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE checkpoint_sidecars SET digest = NULL"))
    assert (await checkpointed(world, table, layout=SMALL)).files_written == 5
    assert (await checkpointed(world, table, layout=SMALL)).files_written == 1
    await check_readers(world, table, tmp_path, 1)


async def test_digests_add_up(world, table, caplog):
    """Of sidecars that were renewed again and again, and of one that is written in one go."""

    async def commit(*files) -> None:
        version = (await get_table(world.context, table.id)).latest_version
        read = proposal(*files, read_version=version, operation="UPDATE")
        await propose(world.context, table.name, read)

    async def known(layout):
        await checkpointed(world, table, layout=layout)
        return await world.context.index.known_checkpoint(table.id)

    for number in (0, 1, 3):
        await commit(remove(f"x={number}/1.parquet", str(number)), add("x=1/91.parquet", "1"))
        # Between two checkpoints, files come and go.
        await commit(remove("x=1/91.parquet", "1"), add(f"x=1/8{number}.parquet", "1"))
        renewed = await known(SMALL)
    assert errors(caplog) == []
    assert len(renewed.sidecars) > 4
    index = world.context.index
    await index.keep_checkpoint(table.id, dataclasses.replace(renewed, shape="another"))
    (whole,) = (await known(CheckpointLayout())).sidecars
    assert sum(one.digest for one in renewed.sidecars) % DIGEST_MODULUS == whole.digest
