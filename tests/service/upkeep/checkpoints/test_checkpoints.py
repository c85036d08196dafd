"""Checkpoints of every kind: what they hold, and that readers need nothing else of the log."""

from dataclasses import replace as replace_layout

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import quarantine
from tests.service.upkeep.checkpointed import (
    SMALL,
    by_deltalake,
    checkpointed,
    folder_of,
    forget_commits,
    live,
    names,
    paths_of,
    pointer,
)
from tidegate_protocol.checkpoint.last_checkpoint import checksum
from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    NotFound,
    Refused,
    StorageUnavailable,
    TableQuarantined,
)
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
    "v2": ({"properties": V2}, {"layout": SMALL}),
    "v2 json": ({"properties": V2}, {"layout": replace_layout(SMALL, v2_form="json")}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_readers_need_nothing_else(world, tmp_path, kind, catalog_managed):
    request, options = KINDS[kind]
    table = await filled(world, catalog_managed=catalog_managed, **request)
    await Publisher(world.context.index, world.context.storage).round()
    written = await checkpointed(world, table, **options)
    assert (written.version, written.kind) == (5, kind.split()[0])
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


async def test_what_is_pointed_to(world):
    table = await filled(world)
    written = await checkpointed(world, table)
    found = pointer(table)
    assert found.pop("checksum") == checksum(found)
    assert found == {
        "version": 5,
        "size": written.num_actions,
        "sizeInBytes": written.bytes,
        "numOfAddFiles": 7,
    }
    (name,) = names(table, "*.checkpoint*")
    assert (folder_of(table) / "_delta_log" / name).stat().st_size == written.bytes
    # Protocol, metadata and the application beside the files; the remove was long ago.
    assert written.num_actions == 3 + 7


async def test_an_older_version_never_takes_the_pointer_back(world):
    table = await world.create()
    await propose(world.context, table.name, proposal(add("x=1/a")))
    await checkpointed(world, table)
    await checkpointed(world, table, 0)
    assert pointer(table)["version"] == 1
    assert names(table, "*.checkpoint*") == [
        f"{version:020d}.checkpoint.parquet" for version in (0, 1)
    ]


async def test_parts_of_another_writer_are_no_checkpoint(world):
    table = await filled(world)
    log = folder_of(table) / "_delta_log"
    planted = log / f"{5:020d}.checkpoint.{1:010d}.{3:010d}.parquet"
    planted.write_bytes(b"theirs")
    written = await checkpointed(world, table)
    assert (written.kind, written.files, pointer(table).get("parts")) == ("classic", 1, None)
    assert planted.read_bytes() == b"theirs"


async def test_what_is_not_known_any_more_is_refused(world):
    table = await filled(world)
    with pytest.raises(Refused, match="applications or domains were written since version 1"):
        await checkpointed(world, table, 1)
    with pytest.raises(NotFound, match="version 6 is not held"):
        await checkpointed(world, table, 6)


async def test_none_of_a_quarantined_table(world):
    table = await filled(world)
    await quarantine(world.context.index, table, "a test says so")
    with pytest.raises(TableQuarantined, match="a test says so"):
        await checkpointed(world, table)
    assert names(table) == []


async def test_none_before_its_version_is_published(world):
    table = await filled(world, catalog_managed=True)
    with pytest.raises(StorageUnavailable, match="version 5 is not in the log yet"):
        await checkpointed(world, table, published_within_s=0.0)
    assert names(table) == []


async def test_transactions_and_domains(world):
    retention = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    features = {"delta.feature.domainMetadata": "supported"}
    table = await world.create(properties={**retention, **features})
    context = world.context
    now_ms = context.now_ms()
    await propose(
        context,
        table.name,
        proposal(
            add("x=1/a"),
            Txn(app_id="new", version=1, last_updated=now_ms),
            Txn(app_id="old", version=2, last_updated=now_ms - 2 * 24 * 60 * 60 * 1000),
            Txn(app_id="undated", version=3),
            DomainMetadata(domain="kept", configuration="{}", removed=False),
            read_version=0,
        ),
    )
    await checkpointed(world, table)
    (name,) = names(table, "*.checkpoint*")
    assert [row["appId"] for row in rows(table, name, "txn")] == ["new"]
    assert rows(table, name, "domainMetadata") == [
        {"domain": "kept", "configuration": "{}", "removed": False}
    ]


async def test_tombstones_from_before_the_index_are_carried_on(world):
    table = await world.create()
    context = world.context
    now_ms = context.now_ms()
    await propose(context, table.name, proposal(*(add(f"x=1/{name}") for name in "abc")))
    gone = [replace(remove(f"x=1/{name}"), deletion_timestamp=now_ms, raw=b"") for name in "ab"]
    await propose(context, table.name, proposal(*gone, read_version=1, operation="DELETE"))
    await checkpointed(world, table)
    forget_commits(table, 2)
    await world.lose(table)
    again, _ = await register_table(
        context, RegisterTable(name="main.test.carried", location=table.location)
    )
    await propose(context, again.name, proposal(add("x=1/b")))
    await checkpointed(world, again)
    (removed,) = rows(again, f"{3:020d}.checkpoint.parquet", "remove")
    assert (removed["path"], removed["deletionTimestamp"]) == ("x=1/a", now_ms)
    assert removed["partitionValues"] == {"x": "1"}
