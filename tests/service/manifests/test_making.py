"""Manifests are made in bounded memory, however many files and partitions there are."""

import tracemalloc
from dataclasses import replace

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.manifests.conftest import Keeping
from tests.service.manifests.reading import ENABLED, commit, manifests, read, snapshot, times
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.limits import ManifestLimits
from tidegate_service.core.manifests.generate import generate_manifests
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio


FEW = ManifestLimits(put=3, held_bytes=500, removed=2, sorted_bytes=4_000)
"""Little is held of anything, so that all of it is in pieces."""


@pytest.fixture
def world(world: World) -> World:
    return replace(world, context=replace(world.context, manifest_limits=FEW))


@pytest.fixture
def index(engine: AsyncEngine) -> PostgresIndex:
    return PostgresIndex(engine, limits=IndexLimits(partitions_a_page=3))


@pytest.mark.parametrize("sizes", [(1,) * 10, (40, 1, 1, 1, 40, 2), (3, 60), (100,)])
async def test_of_partitions_of_any_size(
    world: World, caretaker: Caretaker, sizes: tuple[int, ...]
):
    table = await world.create(properties=ENABLED)
    files = [add(f"f{x}-{n}", str(x)) for x, size in enumerate(sizes) for n in range(size)]
    await commit(world, table, proposal(*files))
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    before = times(table)
    await commit(world, table, proposal(*(add(f"g{n}", "0") for n in range(60)), add("h", "77")))
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    assert {name for name, time in times(table).items() if before.get(name) != time} == {
        "x=0",
        "x=77",
    }


async def test_those_of_partitions_without_files_go(world: World, keeping: Keeping):
    """In several batches, and none of the others."""
    table = await world.create()
    files = [add(f"f{x}", str(x)) for x in range(12)]
    await commit(world, table, proposal(*files))
    await generate_manifests(world.context, table.id)
    assert len(manifests(table)) == 12
    gone = (remove(f"f{x}", str(x)) for x in range(12) if x % 3)
    await commit(world, table, proposal(*gone))
    _, written = await generate_manifests(world.context, table.id)
    assert (written.manifests, written.files, written.removed) == (4, 4, 8)
    assert read(table) == snapshot(world, table)


async def peak_of(world: World, files: int) -> int:
    """The memory that making the manifest of so many files takes."""
    table = await world.create()
    added = [add(f"{number:05}" + "f" * 200, "1") for number in range(files)]
    await commit(world, table, proposal(*added))
    del added
    await generate_manifests(world.context, table.id)
    # Whatever else the process does is measured, too: the least of some is this.
    return min([await _peak_once(world, table.id) for _ in range(3)])


async def _peak_once(world: World, table_id: str) -> int:
    tracemalloc.start()
    try:
        await generate_manifests(world.context, table_id)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
async def test_memory_does_not_grow_with_the_table(world: World):
    few = replace(FEW, held_bytes=64 * 1024, sorted_bytes=64 * 1024)
    world = replace(world, context=replace(world.context, manifest_limits=few))
    few, many = await peak_of(world, 5_000), await peak_of(world, 15_000)
    # Two pages of files are most of it; three times as much would be all of them.
    assert many < few * 1.7, (few, many)
