"""Names of files that are too long for the index."""

import logging

import pytest

from tests.builders.lines import vector
from tests.service.log.foreign.foreign import foreign_commit
from tests.service.vacuum.test_late_names import read_in, vacuumed_beside
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import ended, left, plant
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

FAR = "./" * 520


def long_vector(location: str) -> dict:
    place = f"{location}/{FAR}vector.bin"
    return foreign_add("part") | {"deletionVector": vector(place, storageType="p")}


async def test_the_file_that_such_a_name_means_stays(world):
    table = await world.create()
    plant(table, "a", "part", "vector.bin", "deletion_vector_1.bin", "orphan")
    adds = (foreign_add(f"{FAR}a"), long_vector(table.location))
    foreign_commit(world, table, 1, *({"add": add} for add in adds))
    await ended(world, table)
    assert left(table) == {"a", "part", "vector.bin"}


async def test_another_table_with_such_names_keeps_what_it_names_and_ends_no_vacuum(world, caplog):
    table, other = await world.create(), await world.create()
    plant(table, "a", "b", "vector.bin", "orphan", "own")
    paths = [
        f"{table.location}/a",
        f"{table.location}/{FAR}b",
        f"file:///elsewhere/{FAR}orphan",
        f"{table.location}/" + "x" * 100_000,
        # A file of the other one's own.
        f"{FAR}own",
    ]
    adds = [foreign_add(path) for path in paths]
    marked = long_vector(table.location) | {"path": f"{table.location}/marked"}
    foreign_commit(world, other, 1, *({"add": add} for add in [*adds, marked]))
    await read_in(world, other)
    with caplog.at_level(logging.WARNING, logger="tidegate.service"):
        await ended(world, table)
    assert left(table) == {"a", "b", "vector.bin"}
    told = [record for record in caplog.records if "too long" in record.getMessage()]
    assert [record.naming_table for record in told] == [other.name]


async def test_such_names_that_come_meanwhile(world):
    table, other = await world.create(), await world.create()
    plant(table, "a", "b", "c", "orphan")

    async def write():
        head = await get_table(world.context, table.id)
        own = {"add": foreign_add(f"{FAR}a")}
        foreign_commit(world, table, head.latest_version + 1, own)
        await read_in(world, table)
        paths = (f"{table.location}/{FAR}b", f"{table.location}/c", f"file:///elsewhere/{FAR}x")
        foreign_commit(world, other, 1, *({"add": foreign_add(path)} for path in paths))
        await read_in(world, other)

    await vacuumed_beside(world, table, write)
    assert left(table) == {"a", "b", "c"}


async def test_what_else_another_table_names_meanwhile_takes_no_memory(world):
    world = world.limited(late_names=3)
    table, other = await world.create(), await world.create()
    plant(table, "a", "orphan")

    async def write():
        paths = [f"{table.location}/a", *(f"file:///elsewhere/{number}" for number in range(9))]
        foreign_commit(world, other, 1, *({"add": foreign_add(path)} for path in paths))
        await read_in(world, other)

    await vacuumed_beside(world, table, write)
    assert left(table) == {"a"}
