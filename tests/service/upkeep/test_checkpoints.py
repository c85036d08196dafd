"""Checkpoints of every kind: what they hold, and that readers need nothing else of the log."""

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpoints import (
    SMALL,
    by_deltalake,
    checkpointed,
    folder_of,
    forget_commits,
    live,
    paths_of,
)
from tidegate_protocol.log.actions import Txn
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

V2 = {"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"}


async def filled(world, **request):
    """A table with files in two partitions, of which one was removed, and an application's
    transaction."""
    table = await world.create(**request)
    context = world.context
    for number in range(4):
        files = [add(f"x={x}/{number}.parquet", str(x)) for x in (1, 2)]
        await propose(
            context, table.name, proposal(*files, Txn(app_id="a", version=number, last_updated=5))
        )
    await propose(
        context, table.name, proposal(remove("x=1/0.parquet"), read_version=4, operation="DELETE")
    )
    return table


def rows(table, name, kind):
    read = pq.read_table(folder_of(table) / "_delta_log" / name, columns=[kind])
    return [row[kind] for row in read.to_pylist(maps_as_pydicts="strict") if row[kind] is not None]


KINDS = {
    "classic": ({}, {}),
    "multi-part": ({}, {"sizes": SMALL}),
    "v2": ({"properties": V2}, {"sizes": SMALL}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_readers_need_nothing_else(world, tmp_path, kind, catalog_managed):
    request, options = KINDS[kind]
    table = await filled(world, catalog_managed=catalog_managed, **request)
    await Publisher(world.context.index, world.context.storage).round()
    written = await checkpointed(world, table, **options)
    assert (written.version, written.kind) == (5, kind)
    forget_commits(table, 5)

    if catalog_managed:
        # No other engine reads it by its path, and nothing registers the end of its log alone.
        return
    theirs = by_deltalake(folder_of(table), tmp_path)
    assert theirs.version() == 5
    assert paths_of(theirs) == {path for path, _ in await live(world, table, 5)}
    assert theirs.transaction_version("a") == 3
    now = await get_table(world.context, table.id)
    await world.lose(table)
    again, _ = await register_table(
        world.context,
        RegisterTable(name="main.test.again", location=table.location),
    )
    assert (again.num_files, again.size_bytes) == (now.num_files, now.size_bytes)
    for ours, read in ((now.protocol, again.protocol), (now.metadata, again.metadata)):
        # The line is spelled anew.
        assert replace(read, raw=b"") == replace(ours, raw=b"")
