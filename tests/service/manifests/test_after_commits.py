"""Manifests are written after commits where the table's property asks for it."""

import asyncio
import logging

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders import lines
from tests.builders.actions import add as add_of
from tests.builders.actions import decoded, metadata
from tests.builders.by_x import SCHEMA, add, remove
from tests.builders.proposals import proposal
from tests.service.hooks.hooks import age
from tests.service.manifests.conftest import Keeping
from tests.service.manifests.reading import (
    ENABLED,
    commit,
    folder,
    manifests,
    read,
    snapshot,
    times,
)
from tests.service.world import World
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import encode_lines
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.manifests.in_order import KIND
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.upkeep import changes
from tidegate_service.index.upkeep.standing import PostgresUpkeep
from tidegate_service.telemetry.metrics import Metrics
from tidegate_service.telemetry.recorder import Recorder

pytestmark = pytest.mark.anyio


def switched(table: TableRecord, **properties: str) -> Metadata:
    """The table's metadata with other properties."""
    assert table.metadata is not None
    named = {name.replace("__", "."): text for name, text in properties.items()}
    made = metadata(SCHEMA["fields"], ["x"], {**table.metadata.configuration, **named})
    return type(made)(
        id=table.metadata.id,
        schema_string=table.metadata.schema_string,
        partition_columns=table.metadata.partition_columns,
        configuration=made.configuration,
    )


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_they_are_of_what_is_published(
    world: World, index: Index, caretaker: Caretaker, catalog_managed: bool
):
    table = await world.create(properties=ENABLED, catalog_managed=catalog_managed)
    publisher = Publisher(index, world.context.storage)
    await publisher.round()
    assert await caretaker.round() == 1
    assert manifests(table) == {}
    await commit(world, table, proposal(add("a"), add("b", "2"), add("c", None)))
    await publisher.round()
    assert await caretaker.round() == 1
    assert read(table) == snapshot(world, table)
    await commit(world, table, proposal(remove("b", "2"), add("d"), add("e", "3")))
    before = manifests(table)
    if catalog_managed:
        assert await caretaker.round() == 0
        assert manifests(table) == before
        await publisher.round()
    assert await caretaker.round() == 1
    assert set(manifests(table)) == {"x=1", "x=3", "x=__HIVE_DEFAULT_PARTITION__"}
    assert read(table) == snapshot(world, table)
    assert await caretaker.round() == 0


async def test_only_partitions_that_were_touched_are_written(world: World, caretaker: Caretaker):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a"), add("b", "2"), add("c", "3")))
    await caretaker.round()
    before = times(table)
    await commit(world, table, proposal(add("d", "2")))
    await commit(world, table, proposal(remove("c", "3"), add("e", "4")))
    assert await caretaker.round() == 1
    after = times(table)
    assert after.keys() == {"x=1", "x=2", "x=4"}
    assert after["x=1"] == before["x=1"]
    assert after["x=2"] != before["x=2"]
    assert read(table) == snapshot(world, table)


async def test_a_commit_without_files_writes_none(world: World, caretaker: Caretaker):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a")))
    await caretaker.round()
    before = times(table)
    await commit(world, table, proposal(operation="OPTIMIZE"))
    assert await caretaker.round() == 1
    assert times(table) == before


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_table_without_partitions_has_one(
    world: World, index: Index, caretaker: Caretaker, catalog_managed: bool
):
    table = await world.create(
        partition_columns=(), properties=ENABLED, catalog_managed=catalog_managed
    )
    publisher = Publisher(index, world.context.storage)
    await publisher.round()
    await caretaker.round()
    assert manifests(table) == {".": []}
    await commit(world, table, proposal(add_of("a", {}), add_of("b%20c", {})))
    await publisher.round()
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    gone = (lines.removal("a", {}), lines.removal("b%20c", {}))
    await commit(world, table, proposal(*(decoded(each) for each in gone)))
    await publisher.round()
    await caretaker.round()
    assert manifests(table) == {".": []}


SPECIAL = ["a b", "a/b", "50%", "x=1", "a:b", "Ünïcödé", "a\\b", "[q]", "#?*", "..", "tab\there"]


async def test_names_of_partitions_are_escaped_as_hive_does(world: World, caretaker: Caretaker):
    table = await world.create(
        schema=lines.struct(lines.column("p:q", "string"), lines.column("v", "string")),
        partition_columns=("p:q",),
        properties=ENABLED,
    )
    files = [add_of(f"f{at}", {"p:q": text}) for at, text in enumerate(SPECIAL)]
    await commit(world, table, proposal(*files[:6]))
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    await commit(world, table, proposal(*files[6:]))
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    assert {"p%3Aq=a%2Fb", "p%3Aq=50%25", "p%3Aq=%5Bq%5D"} <= set(manifests(table))
    assert len(manifests(table)) == len(SPECIAL)


async def test_null_and_empty_are_one_partition(world: World, caretaker: Caretaker):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a", None)))
    await caretaker.round()
    world.log_file(table, 2).write_bytes(encode_lines([add("b", "")]))
    await commit(world, table, proposal(add("c", "")))
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    assert len(manifests(table)["x=__HIVE_DEFAULT_PARTITION__"]) == 3


async def test_all_are_written_after_the_metadata_changed(world: World, caretaker: Caretaker):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a"), add("b", "2")))
    await caretaker.round()
    before = times(table)
    await commit(world, table, proposal(switched(table, owner="me"), operation="SET TBLPROPERTIES"))
    await caretaker.round()
    assert not before.items() & times(table).items()


async def test_all_are_written_where_the_folder_is_gone(world: World, caretaker: Caretaker):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a"), add("b", "2")))
    await caretaker.round()
    for name in ("x=1", "x=2"):
        (folder(table) / name / "manifest").unlink()
    await commit(world, table, proposal(add("c", "2")))
    await caretaker.round()
    assert read(table) == snapshot(world, table)


async def test_all_are_written_where_many_were_touched(
    world: World, caretaker: Caretaker, monkeypatch
):
    statement = changes._TOUCHED.bindparams(most=2)
    monkeypatch.setattr(changes, "_TOUCHED", statement)
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a"), add("z", "9")))
    await caretaker.round()
    before = times(table)
    await commit(world, table, proposal(*(add(f"b{x}", str(x)) for x in range(3))))
    await caretaker.round()
    assert times(table)["x=9"] != before["x=9"]
    assert read(table) == snapshot(world, table)


async def test_a_table_that_asks_for_none_is_left_alone(
    world: World, caretaker: Caretaker, upkeep: PostgresUpkeep
):
    table = await world.create()
    assert await caretaker.round() == 1
    for name in ("a", "b"):
        await commit(world, table, proposal(add(name)))
        # Its commits are nobody's business: nothing is claimed, and no row is written.
        assert await caretaker.round() == 0
    assert await upkeep.standing(table.id) == {}
    assert not folder(table).exists()
    on = switched(table, **{name.replace(".", "__"): "true" for name in ENABLED})
    await commit(world, table, proposal(on, operation="SET TBLPROPERTIES"))
    assert await caretaker.round() == 1
    assert read(table) == snapshot(world, table)
    off = switched(table, **{name.replace(".", "__"): "false" for name in ENABLED})
    await commit(world, table, proposal(off, operation="SET TBLPROPERTIES"))
    await caretaker.round()
    before = manifests(table)
    await commit(world, table, proposal(add("c")))
    assert await caretaker.round() == 0
    assert manifests(table) == before


async def test_a_rebuilt_table_has_all_written(world: World, caretaker: Caretaker):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a"), add("b", "2")))
    await caretaker.round()
    before = times(table)
    await rebuild_table(world.context, table.id)
    assert await caretaker.round() == 1
    assert not before.items() & times(table).items()


VECTOR = "ab^-aqEH.-t@S}K{vb[*k^"


async def test_a_deletion_vector_fails_the_hook_and_no_commit(
    world: World, caretaker: Caretaker, upkeep: PostgresUpkeep, engine: AsyncEngine, caplog
):
    """Another writer may give a table both, whatever its properties are here."""
    table = await world.create(properties={"delta.feature.deletionVectors": "supported", **ENABLED})
    await commit(world, table, proposal(add("a"), add("b", "2")))
    await caretaker.round()
    before = manifests(table)
    stats = '{"numRecords":2,"tightBounds":false}'
    world.log_file(table, 2).write_bytes(encode_lines([add("d", dv=VECTOR, stats=stats)]))
    await commit(world, table, proposal(add("c", "2")))
    with caplog.at_level(logging.WARNING, "tidegate.hooks"):
        await caretaker.round()
    (told,) = (record for record in caplog.records if record.name == "tidegate.hooks")
    assert (told.hook, told.version, told.table_id) == ("symlink-manifests", 3, table.id)
    assert "'d' has a deletion vector" in told.reason
    assert manifests(table) == before
    standing = (await upkeep.standing(table.id))[KIND]
    assert (standing.version, standing.failures) == (1, 1)
    assert standing.trouble is not None
    assert "has a deletion vector" in standing.trouble
    await commit(world, table, proposal(remove("d", dv=VECTOR), add("e")))
    await age(engine)
    await caretaker.round()
    assert read(table) == snapshot(world, table)
    assert (await upkeep.standing(table.id))[KIND].trouble is None


async def test_a_store_that_refuses_delays_no_commit(
    world: World, keeping: Keeping, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a")))
    folder(table).write_text("in the way")
    metrics = Metrics()
    caretaker = keeping(telemetry=Recorder(metrics, tracer=None))
    await caretaker.round()
    standing = (await upkeep.standing(table.id))[KIND]
    assert (standing.version, standing.failures) == (-1, 1)
    failed = {"kind": "hook", "outcome": "failed"}
    assert metrics.registry.get_sample_value("tidegate_upkeep_runs_total", failed) == 1
    async with asyncio.timeout(5):
        assert await commit(world, table, proposal(add("b", "2"))) == 2
    assert await caretaker.round() == 0
    folder(table).unlink()
    await age(engine)
    assert await caretaker.round() == 1
    assert read(table) == snapshot(world, table)
    assert (await upkeep.standing(table.id))[KIND].failures == 0
