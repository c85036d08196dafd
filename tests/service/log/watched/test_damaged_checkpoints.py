"""Older checkpoints that cannot be read, in logs that other readers read from a newer one."""

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.far_ahead import written_past
from tests.service.maintenance.pictures import checkpointed
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, StorageUnavailable, TableQuarantined
from tidegate_service.core.log.copying.copied_log import CopiedLog
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

END = 9


async def with_checkpoints(world, *versions, damaged):
    """A table of one version of ours, behind which others wrote, and cleaned the log up to the
    first of these checkpoints."""
    table = await world.create()
    await propose(world.context, table.id, mine("first"))
    written_past(world, table, 2, END)
    for version in versions:
        checkpointed(world, table, version)
    for version in damaged:
        damage(world, table, version)
    for version in range(versions[0]):
        world.log_file(table, version).unlink()
    world.checked_long_ago()
    return table


def mine(name: str):
    return proposal(add(f"x=1/{name}"), transaction_id=name)


SIDECAR = '{"sidecar":{"path":"gone.parquet","sizeInBytes":10,"modificationTime":1}}'


def gone(lines):
    return SIDECAR


def twice(kind):
    return lambda lines: next(line for line in lines if f'"{kind}"' in line)


DAMAGES = {
    "a sidecar that is gone": gone,
    "two metaData actions": twice("metaData"),
    # Which the index sees, not who reads it.
    "a file that is named twice": twice("add"),
}


def damage(world, table, version, further=gone):
    (file,) = world.log_folder(table).glob(f"{version:020d}.checkpoint.*")
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, further(lines)]) + "\n")


async def reload(world, table):
    await propose(world.context, table.id, mine("more"))


async def rebuild(world, table):
    await rebuild_table(world.context, table.id)


async def register(world, table):
    await forget_table(world.context, table.id)
    await register_table(world.context, RegisterTable(name=table.name, location=table.location))


CALLS = pytest.mark.parametrize("call", [reload, rebuild, register])


@CALLS
@pytest.mark.parametrize("further", DAMAGES.values(), ids=DAMAGES)
async def test_the_next_one_is_read(world, call, further):
    table = await with_checkpoints(world, 2, 4, 6, damaged=())
    damage(world, table, 2, further)
    await call(world, table)
    landed = await propose(world.context, table.name, mine("more"))
    assert landed.record.version == END + 1
    assert landed.replayed == (call is reload)
    head = await get_table(world.context, table.name)
    assert (head.first_version, head.num_files) == (4, END + 1)
    assert (await verify_table(world.context, table.name)).differences == ()
    again = await propose(world.context, head.id, mine("first"))
    assert (again.record.version, again.replayed) == (1, True)


async def test_ids_before_it_are_kept(world):
    """A new index knows them from nowhere else."""
    table = await world.create()
    for name in "abcdef":
        await propose(world.context, table.id, mine(name))
    for version in (2, 4):
        checkpointed(world, table, version)
    damage(world, table, 2)
    for version in (0, 1):
        world.log_file(table, version).unlink()
    await world.lose(table)
    await register_table(world.context, RegisterTable(name=table.name, location=table.location))
    head = await get_table(world.context, table.name)
    assert head.first_version == 4
    for version, name in enumerate("bcdef", start=2):
        again = await propose(world.context, head.id, mine(name))
        assert (again.record.version, again.replayed) == (version, True)


@CALLS
async def test_not_more_than_three(world, call, monkeypatch):
    copies, copy = [], CopiedLog.copy

    async def copied(log, *, through):
        copies.append(log.least)
        await copy(log, through=through)

    monkeypatch.setattr(CopiedLog, "copy", copied)
    table = await with_checkpoints(world, 2, 3, 4, 6, damaged=(2, 3, 4))
    with pytest.raises((Refused, TableQuarantined), match=r"gone\.parquet' is missing"):
        await call(world, table)
    assert copies == ([] if call is register else [0, 3, 4])


@CALLS
async def test_a_newest_one_that_is_damaged_is_refused(world, call):
    """Other readers begin there."""
    table = await with_checkpoints(world, 2, 4, damaged=(4,))
    with pytest.raises((Refused, TableQuarantined), match=r"gone\.parquet' is missing"):
        await call(world, table)


async def test_checkpoints_that_a_clean_up_takes_meanwhile_are_not_damaged(
    world, store, monkeypatch
):
    table = await with_checkpoints(world, 2, 3, 4, 8, damaged=())
    copy, looks = CopiedLog.copy, []

    async def listing():
        looks.append(len(looks))
        if len(looks) == 2:
            # The listing was the first.
            for version in (2, 3, 4):
                for file in world.log_folder(table).glob(f"{version:020d}.checkpoint.*"):
                    file.unlink()
            for version in range(2, 8):
                world.log_file(table, version).unlink()

    async def copied(log, *, through):
        store.listing = listing
        await copy(log, through=through)

    monkeypatch.setattr(CopiedLog, "copy", copied)
    with pytest.raises(StorageUnavailable, match="went away while the log was read"):
        await propose(world.context, table.id, mine("second"))
    landed = await propose(world.context, table.id, mine("second"))
    assert landed.record.version == END + 1
    assert (await get_table(world.context, table.id)).first_version == 8
