"""Symlink manifests name the files of each partition, and nothing else is touched for them."""

import asyncio
from pathlib import Path

import pytest

from tests.builders.by_x import add, remove
from tests.builders.flights import add as flight
from tests.builders.flights import proposal as flight_proposal
from tests.builders.proposals import proposal
from tests.service.manifests.reading import commit, manifests
from tests.service.process.cli.command_line import invoke
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.codec import encode_lines
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.manifests import generate
from tidegate_service.core.manifests.generate import generate_manifests
from tidegate_service.core.ports.records import TableRecord

pytestmark = pytest.mark.anyio


VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 1,
}


async def commit_elsewhere(world: World, table: TableRecord, *files: Add) -> None:
    """Past the service, which has it with the next commit."""
    world.log_file(table, 1).write_bytes(encode_lines(files))
    await commit(world, table, proposal(add("next", partitionValues={})))


async def test_each_partition_has_its_own(world: World):
    table = await world.create()
    files = [add("a"), add("b"), add("c", "2"), add("d", None)]
    await commit(world, table, proposal(*files))
    found, written = await generate_manifests(world.context, table.name)
    assert found.id == table.id
    assert (written.version, written.manifests, written.files, written.removed) == (1, 3, 4, 0)
    assert manifests(table) == {
        "x=1": [f"{table.location}/{file.path}" for file in files[:2]],
        "x=2": [f"{table.location}/{files[2].path}"],
        "x=__HIVE_DEFAULT_PARTITION__": [f"{table.location}/{files[3].path}"],
    }


async def test_those_of_empty_partitions_go_and_nothing_else(world: World):
    table = await world.create()
    await commit(world, table, proposal(add("a"), add("b", "2")))
    await generate_manifests(world.context, table.id)
    root = Path(table.location.removeprefix("file://"))
    others = [root / "x=2" / "manifest", root / "_symlink_format_manifest" / "x=2" / "theirs"]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_text("not ours")
    gone = proposal(remove("b", "2"), add("c"), read_version=1)
    await commit(world, table, gone)
    _, written = await generate_manifests(world.context, table.id)
    assert (written.manifests, written.files, written.removed) == (1, 2, 1)
    assert set(manifests(table)) == {"x=1"}
    assert all(other.read_text() == "not ours" for other in others)
    assert not list(root.glob(".tidegate-*"))
    _, again = await generate_manifests(world.context, table.id)
    assert (again.manifests, again.files, again.removed) == (1, 2, 0)


async def test_paths_are_told_as_a_file_system_has_them(world: World):
    table = await world.create(partition_columns=())
    paths = ["a%20b.parquet", "time=10:00.parquet", f"{table.location}/c%25d.parquet"]
    files = [add(path, partitionValues={}) for path in paths]
    await commit_elsewhere(world, table, *files)
    await generate_manifests(world.context, table.id)
    assert manifests(table) == {
        ".": sorted(
            f"{table.location}/{name}"
            for name in ("a b.parquet", "time=10:00.parquet", "c%d.parquet", "next")
        )
    }


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_an_empty_table_without_partitions_has_an_empty_one(
    world: World, catalog_managed: bool
):
    table = await world.create(partition_columns=(), catalog_managed=catalog_managed)
    await Publisher(world.context.index, world.context.storage).round()
    await generate_manifests(world.context, table.id)
    assert manifests(table) == {".": []}


async def test_a_deletion_vector_is_refused(world: World):
    table = await world.create(properties={"delta.enableDeletionVectors": "true"})
    stats = '{"numRecords":2,"tightBounds":false}'
    with_vector = add("b", deletionVector=VECTOR, stats=stats)
    await commit(world, table, proposal(add("a"), with_vector))
    with pytest.raises(Refused, match="has a deletion vector") as refused:
        await generate_manifests(world.context, table.id)
    assert refused.value.code is Code.UNSUPPORTED_FEATURE
    assert manifests(table) == {}


async def test_mapped_columns_are_refused(world: World):
    table = await world.create(properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(Refused, match="its columns are mapped"):
        await generate_manifests(world.context, table.id)


async def test_a_path_of_two_lines_is_refused(world: World):
    table = await world.create(partition_columns=())
    await commit_elsewhere(world, table, add("a%0Ab", partitionValues={}))
    with pytest.raises(Refused, match="more than one line"):
        await generate_manifests(world.context, table.id)


def test_by_the_command_and_over_http(shared_api, shared_server, flights):
    shared_api.post(f"/tables/{flights}/commits", json=flight_proposal(flight()))
    found = shared_api.post(f"/tables/{flights}/manifest").json()
    assert found == {"table": flights, "version": 1, "manifests": 1, "files": 1, "removed": 0}
    shown = invoke("table", "generate-manifest", flights, "--url", shared_server)
    assert shown.output == "version 1: 1 manifests of 1 files, 0 removed\n"
    as_json = invoke("table", "generate-manifest", flights, "--json", "--url", shared_server)
    assert '"manifests": 1' in as_json.output
    refused = shared_api.post("/tables/main.air.nowhere/manifest")
    assert (refused.status_code, refused.json()["code"]) == (404, "table-not-found")


def called_by(world: World, name: str) -> Context:
    principal = Principal(name=name, grants=(Grant(Role.ADMIN, "*"),))
    return world.context.called_by(Caller(principal=principal))


async def test_those_of_a_caller_who_left_keep_its_turn_to_their_end(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    table = await world.create()
    goes_on, begun = asyncio.Event(), list[str]()

    async def making(context: Context, of: TableRecord) -> None:
        begun.append(context.caller.principal.name)
        await goes_on.wait()

    monkeypatch.setattr(generate, "_generate", making)
    first = asyncio.create_task(generate_manifests(called_by(world, "a"), table.id))
    while not begun:
        await asyncio.sleep(0.01)
    first.cancel()
    again = asyncio.create_task(generate_manifests(called_by(world, "a"), table.id))
    other = asyncio.create_task(generate_manifests(called_by(world, "b"), table.id))
    while len(begun) < 2:
        await asyncio.sleep(0.01)
    assert begun == ["a", "b"]
    goes_on.set()
    await asyncio.gather(again, other)
    assert begun == ["a", "b", "a"]
    assert world.context.manifests.principals == 0
