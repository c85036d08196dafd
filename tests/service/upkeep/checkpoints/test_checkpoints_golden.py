"""Tables that other engines wrote (../shared/golden), checkpointed by us and read by deltalake and
by ourselves, from the checkpoint alone."""

import shutil

import deltalake
import pytest

from tests.service.tables.delta_logs import names
from tests.service.tables.registering.test_register_golden import (
    ONLY_BY_DELTA,
    READ,
    needs_golden,
    registered,
    rows_by_deltalake,
    uses_unsupported,
)
from tests.service.upkeep.checkpointed import checkpointed, folder_of, live
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

TABLES = [name for name in READ if not uses_unsupported(name)]


def only_our_checkpoint(folder, version) -> None:
    """Leave of the log what a reader of this version needs, and whose it is."""
    log = folder / "_delta_log"
    for path in log.iterdir():
        is_of_version = path.name.startswith(f"{version:020d}.")
        if path.is_file() and path.name != "_last_checkpoint" and not is_of_version:
            path.unlink()


def rows(table: deltalake.DeltaTable) -> int | None:
    """None of a table whose log names files that do not come with it."""
    try:
        return rows_by_deltalake(table)
    except FileNotFoundError:
        return None


@needs_golden
@pytest.mark.parametrize("golden", TABLES)
async def test_it_is_read_from_our_checkpoint(world, tmp_path, golden):
    table = await registered(world, tmp_path, golden)
    folder = folder_of(table)
    for path in (folder / "_delta_log").glob("*checkpoint*"):
        path.unlink()
    if not list((folder / "_delta_log").glob("*.json")):
        pytest.skip("its log is a checkpoint alone")
    before = tmp_path / "before"
    shutil.copytree(folder, before)
    version = table.latest_version

    await checkpointed(world, table)
    only_our_checkpoint(folder, version)
    known = await live(world, table, version)
    await world.lose(table)
    again, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=table.location)
    )
    assert await live(world, again, version) == known
    assert (again.num_files, again.size_bytes) == (table.num_files, table.size_bytes)

    theirs = deltalake.DeltaTable(folder)
    assert theirs.version() == version
    assert len(theirs.file_uris()) == len(known)
    assert theirs.schema() == deltalake.DeltaTable(before).schema()
    assert rows(theirs) == rows(deltalake.DeltaTable(before))


@needs_golden
@pytest.mark.parametrize("golden", sorted(ONLY_BY_DELTA))
async def test_what_deltalake_does_not_read_is_read_by_us(world, tmp_path, golden):
    table = await registered(world, tmp_path, golden)
    await checkpointed(world, table)
    only_our_checkpoint(folder_of(table), table.latest_version)
    known = await live(world, table, table.latest_version)
    await world.lose(table)
    again, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=table.location)
    )
    assert await live(world, again, table.latest_version) == known
