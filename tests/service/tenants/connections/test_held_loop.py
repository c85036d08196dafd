"""What takes long for one tenant does not hold the event loop, which everybody's requests need.

Sizes are such that each of these held it for a third of a second and more.
"""

import asyncio
import json

import pytest
from msgspec import structs

from tests.builders.by_x import add, add_of_values, remove
from tests.builders.proposals import proposal
from tests.service.gaps import gaps
from tidegate_protocol.log.codec import with_fields
from tidegate_service.core.access.roles import EVERYTHING, Caller, Grant, Principal, Role
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableExists
from tidegate_service.core.tables.history import history
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

SHORT_S = 0.1
ESCAPES = "%25" * 320
"""Of a path, each of which has to be decoded."""


def schema(*, columns: int, nullable: bool) -> dict[str, object]:
    fields = [
        {"name": f"c{number}", "type": "integer", "nullable": nullable, "metadata": {}}
        for number in range(columns)
    ]
    return {"type": "struct", "fields": fields}


async def test_paths_of_many_escapes(world):
    """A commit that this instance made is indexed by the first that has to be compared with it."""
    table = await world.create()
    paths = [f"x=1/{number}{ESCAPES}" for number in range(6_000)]
    adds = [add(path) for path in ("x=1/a", *paths)]
    await propose(world.context, table.id, proposal(*adds, size=6_000 * 1_000))
    async with gaps() as found:
        body = proposal(*map(remove, paths), read_version=1, size=6_000 * 1_000)
        await propose(world.context, table.id, body)
        reads = frozenset({"x=1/a"})
        mine = proposal(remove("x=1/a"), files=reads, read_version=1)
        assert (await propose(world.context, table.id, mine)).record.version == 3
    assert found.longest_s < SHORT_S


async def test_files_of_another_writer_with_short_lines(world):
    table = await world.create()
    for version in range(1, 31):
        world.log_file(table, version).write_bytes(b'{"a":12345678}\n' * 4_300)
    async with gaps() as found:
        await propose(world.context, table.id, proposal(add("x=1/mine")))
    assert found.longest_s < SHORT_S
    assert (await get_table(world.context, table.id)).latest_version == 31


async def test_many_columns_that_become_not_null(world):
    """The one live file is replaced, so it proves nothing of any of them."""
    columns = 500
    table = await world.create(schema=schema(columns=columns, nullable=True), partition_columns=())
    old = add_of_values(f"old{ESCAPES}", partition_values={}, stats=None)
    await propose(world.context, table.id, proposal(old))
    before = (await get_table(world.context, table.id)).metadata
    text = json.dumps(schema(columns=columns, nullable=False))
    strict = with_fields(before, {"schemaString": text})
    nulls = json.dumps({"numRecords": 1, "nullCount": {f"c{n}": 0 for n in range(columns)}})
    new = [
        add_of_values(f"{number}{ESCAPES}", partition_values={}, stats=nulls)
        for number in range(40)
    ]
    gone = structs.replace(remove(old.path), partition_values={}, raw=b"")
    async with gaps() as found:
        body = proposal(strict, gone, *new, read_version=1, operation="CHANGE COLUMN")
        assert (await propose(world.context, table.id, body)).record.version == 2
    assert found.longest_s < SHORT_S


async def test_a_log_where_a_table_is_to_be(world):
    table = await world.create()
    await world.lose(table)
    world.log_file(table, 0).write_bytes(b'{"a":1}\n' * 150_000)
    async with gaps() as found:
        with pytest.raises(TableExists):
            await world.create(name=table.name)
    assert found.longest_s < SHORT_S


async def test_a_property_that_is_a_list_of_columns(world):
    table = await world.create()
    await world.lose(table)
    lines = world.log_file(table, 0).read_bytes().splitlines()
    found_lines = [json.loads(line) for line in lines]
    for line in found_lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.dataSkippingStatsColumns"] = "a," * 200_000
    world.log_file(table, 0).write_text("".join(json.dumps(o) + "\n" for o in found_lines))
    async with gaps() as found:
        with pytest.raises(Refused, match="has more than 65536 characters"):
            await register_table(
                world.context, RegisterTable(name=table.name, location=table.location)
            )
    assert found.longest_s < SHORT_S


async def test_long_histories(world):
    """As many as one principal's are worked on at a time."""
    table = await world.create()
    for version in range(1, 1_000):
        line = json.dumps({"commitInfo": {"timestamp": version, "operation": "WRITE"}})
        world.log_file(table, version).write_text(line + "\n")
    await propose(world.context, table.id, proposal(add("x=1/mine")))

    ann = Principal(name="ann", grants=(Grant(Role.READER, EVERYTHING),))
    anns = world.context.called_by(Caller(principal=ann))

    async def page() -> list[int]:
        _, commits = await history(anns, table.id, from_version=None, to_version=None, limit=1_000)
        return [commit.version for commit in commits]

    async with gaps() as found:
        pages = await asyncio.gather(*(page() for _ in range(8)))
    assert pages == [list(range(1_000, 0, -1))] * 8
    assert found.longest_s < SHORT_S
