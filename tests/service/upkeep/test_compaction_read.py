"""Whoever meets compacted files in a log reads the same table as without them."""

import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, metadata
from tests.service.tables.delta_logs import DeltaLog, names
from tests.service.tables.registering.test_register_random import commits
from tests.service.upkeep.aged import LogOf, age, let_it_be_tomorrow
from tests.service.upkeep.checkpointed import checkpointed
from tests.service.upkeep.checkpoints.test_checkpoints_random import PROTOCOL, comparable, held
from tests.service.upkeep.compacting import commit, large, written
from tests.service.upkeep.conftest import Caring, Compacting
from tests.service.vacuum.vacuuming import ended, left, plant
from tests.service.world import World, make_world
from tidegate_protocol.log.actions import file_key
from tidegate_protocol.log.file_names import compacted_name
from tidegate_protocol.log.lines import decode_lines
from tidegate_protocol.replay.snapshot import Snapshot
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import DifferenceKind, verify_table
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.upkeep.compaction import Compactions
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

Rows = list[tuple[int, str]]


def rows_at(folder: Path, tmp_path: Path, version: int) -> Rows:
    """What deltalake reads, from a copy, so that it knows nothing from before."""
    copy = tmp_path / f"copy-{time.monotonic_ns()}"
    shutil.copytree(folder, copy)
    try:
        found = DeltaTable(copy, version=version).to_pyarrow_table()
    finally:
        shutil.rmtree(copy)
    return sorted(zip(found["v"].to_pylist(), found["text"].to_pylist(), strict=True))


async def written_by_others(world: World, folder: Path) -> None:
    """A table of thirty files, with rows added, deleted and written anew, and a checkpoint of
    version 1."""
    for number in range(30):
        data = pa.table({"v": [number, 100 + number], "text": ["a", "b"]})
        write_deltalake(folder, data, mode="append", partition_by=["text"])
    DeltaTable(folder).create_checkpoint()
    table = DeltaTable(folder)
    for number in range(3):
        write_deltalake(folder, pa.table({"v": [900 + number], "text": ["c"]}), mode="append")
        table.update_incremental()
        table.delete(f"v = {number}")
        table.update(predicate=f"v = {10 + number}", updates={"v": "v + 1000"})


async def test_rows_are_the_same_at_every_version(
    world: World, tmp_path: Path, compacting: Compacting
):
    folder = tmp_path / "theirs"
    await written_by_others(world, folder)
    head = DeltaTable(folder).version()
    # Those that the compacted file is read for, and some before it.
    versions = sorted({*range(0, 29, 5), *range(29, head + 1)})
    before = {version: rows_at(folder, tmp_path, version) for version in versions}
    assert len({str(rows) for rows in before.values()}) == len(versions)
    table, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=folder.as_uri())
    )
    caretaker = compacting(4)
    await caretaker.round()
    assert written(table) == [(30, 38)]
    after = {version: rows_at(folder, tmp_path, version) for version in versions}
    assert after == before
    write_deltalake(folder, pa.table({"v": [5], "text": ["c"]}), mode="append")
    assert rows_at(folder, tmp_path, head + 1) == sorted([*before[head], (5, "c")])
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_the_clean_up_takes_those_of_expired_versions(
    world: World, engine: AsyncEngine, caring: Caring, compacting: Compacting
):
    table = await large(world)
    for count in (4, 4):
        await commit(world, table, count)
        await compacting().round()
    await checkpointed(world, table)
    await commit(world, table, 4)
    await compacting().round()
    assert written(table) == [(2, 5), (6, 9), (10, 13)]
    await age(world, engine, table, {range(12): 40})
    await caring().round()
    assert written(table) == [(10, 13)]
    log = LogOf(world, table)
    assert (log.versions[0], log.checkpoints) == (9, [9])
    now = await get_table(world.context, table.id)
    for version in log.versions:
        theirs = DeltaTable(table.location, version=version).file_uris()
        ours = [
            file async for batch in world.context.index.files(table.id, version) for file in batch
        ]
        assert len(theirs) == len(ours)
    assert (await verify_table(world.context, table.id)).differences == ()
    await let_it_be_tomorrow(engine)
    await age(world, engine, now, {range(14): 60})
    await caring().round()
    assert written(table) == [(10, 13)]


async def test_our_own_readers_pass_over_them(world: World, compacting: Compacting):
    table = await large(world)
    await commit(world, table, 4)
    await compacting().round()
    assert written(table) == [(2, 5)]
    plant(table, "orphan")
    assert (await ended(world, table)).deleted == 1
    assert left(table) == set()
    assert written(table) == [(2, 5)]
    await rebuild_table(world.context, table.id)
    rebuilt = await get_table(world.context, table.id)
    assert (rebuilt.latest_version, rebuilt.first_version) == (7, 0)
    await forget_table(world.context, table.id)
    again, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=table.location)
    )
    assert (again.latest_version, again.num_files) == (7, 54)
    assert (await verify_table(world.context, again.id)).differences == ()


@settings(
    # Each is a log, a compaction and two readers: six of the usual hundred.
    max_examples=settings().max_examples // 16,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rest=commits, changed=st.none() | st.integers(2, 8), most=st.integers(2, 7))
async def test_checkpoint_compacted_file_and_tail_are_what_the_index_has(
    index, upkeep, tmp_path, *, rest, changed, most
):
    world = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    # Some of which the commits behind it remove, or add again.
    many = [add(path) for path in ("a", "b", "c%20c", *(f"first-{n}" for n in range(40)))]
    history = [[PROTOCOL, metadata()], many, *rest]
    if changed is not None and changed < len(history):
        history[changed] = [*history[changed], metadata(delta_appendOnly="false")]
    log = DeltaLog(tmp_path / f"t{time.monotonic_ns()}")
    log.commit(0, *history[0])
    log.commit(1, *history[1])
    table, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=log.location)
    )
    await checkpointed(world, table)
    for version, actions in enumerate(history[2:], start=2):
        log.commit(version, *actions)
    await rebuild_table(world.context, table.id)
    try:
        head = await get_table(world.context, table.id)
        limits = UpkeepLimits(compacted_commits=most)
        job = Compactions(index, world.context.storage, commits=2, limits=limits)
        await job.run(head, UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None))
        # Without an action that counts, there is nothing to be written.
        last = 1 + min(most, len(rest))
        assert written(table) == ([(2, last)] if len(rest) >= 2 else [])
        found = await read(world, log, [(2, last)] if len(rest) >= 2 else [], history)
        counted = await upkeep.counted(table.id)
        assert {key: comparable(file) for key, file in found.files.items()} == {
            file_key(file): comparable(file)
            async for batch in index.files(table.id, head.latest_version)
            for file in batch
        }
        assert found.metadata.configuration == head.metadata.configuration
        assert {each.app_id: each.version for each in counted.txns} == {
            app_id: each.version for app_id, each in found.txns.items()
        }
        assert {each.domain for each in counted.domains} == set(found.domains)
        # Commits at random do what Delta's protocol forbids, which is said of the log.
        seen = (await verify_table(world.context, table.id)).differences
        assert {each.kind for each in seen} <= {DifferenceKind.LOG}
    finally:
        await forget_table(world.context, table.id)


async def read(world, log, ranges, history) -> Snapshot:
    """What the checkpoint of version 1 and all behind it add up to, with the files of these ranges
    in the place of their commits."""
    _, base = await held(world.context.storage.log(log.location), 1)
    found = Snapshot().apply(0, base)
    version = 2
    for first, last in ranges:
        content = (log.folder / compacted_name(first, last)).read_bytes()
        found = found.apply(found.version + 1, tuple(decode_lines(content)))
        version = last + 1
    for tail in range(version, len(history)):
        content = log.path(tail).read_bytes()
        found = found.apply(found.version + 1, tuple(decode_lines(content)))
    return found
