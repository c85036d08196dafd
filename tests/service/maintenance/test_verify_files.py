"""Looking for a table's data files: those that are there, and each way of not being there."""

from dataclasses import replace

import pytest

from tests.builders.by_x import add, remove
from tests.builders.lines import vector
from tests.service.log.foreign.foreign import foreign_commit
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import folder_of, land, plant
from tests.service.world import make_world
from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.maintenance import verify_files as use_case
from tidegate_service.core.maintenance.freshness import read_in
from tidegate_service.core.maintenance.verify_files import FilesStage, verify_files
from tidegate_service.core.tables.lookup import get_head
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

VECTOR = "vBn[lx{q8@P<9BNH/isA"
VECTOR_FILE = "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"


async def seen(world, table):
    head = await get_head(world.context, table.id)
    return [now async for now in verify_files(world.context, head)]


async def looked(world, table):
    """The last word of one that went to its end, and what is wrong by path."""
    answers = await seen(world, table)
    assert answers[-1].stage is FilesStage.ENDED, answers[-1].error
    return answers[-1], {each.path: each.detail for now in answers for each in now.bad}


async def foreign(world, table, *adds):
    foreign_commit(world, table, 1, *({"add": each} for each in adds))
    await read_in(world.context, table.id, at_any_age=False)
    assert (await get_head(world.context, table.id)).latest_version == 1


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_files_that_are_there(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    plant(table, "a", "x=1/b c", "_x/d")
    paths = ["a", "x=1/b%20c", "_x/d", "gone"]
    await land(world, table, *(add(path, size=5) for path in paths))
    # Nobody needs a file that was removed.
    await land(world, table, remove("gone"))
    last, bad = await looked(world, table)
    assert (last.version, last.files, last.vectors, last.skipped, bad) == (2, 3, 0, 0, {})


async def test_files_that_are_not(world):
    table = await world.create()
    plant(table, "short", "file", "folder/x", "target")
    (folder_of(table) / "link").symlink_to(folder_of(table) / "target")
    long = "y" * 300
    paths = ["missing", "x=1/missing", "folder", "link", "file/x", long, f"{long}/x", "short"]
    await land(world, table, *(add(path, size=6) for path in paths))
    last, bad = await looked(world, table)
    assert last.files == len(paths)
    assert bad.pop("short") == "the file has 5 bytes, and the log says 6"
    assert bad == dict.fromkeys(paths[:-1], "the file is missing")


async def test_other_writers_spellings(world):
    table = await world.create()
    plant(table, "a/b", "c", "d")
    folder = folder_of(table)
    paths = ["a//b", f"file:{folder}/c", f"file://{folder}/./d", f"{folder}/e", "f%00g"]
    await foreign(world, table, *(foreign_add(path) for path in paths))
    last, bad = await looked(world, table)
    assert (last.files, last.skipped, set(bad)) == (4, 1, {f"{folder}/e"})


async def test_files_of_deletion_vectors(world):
    table = await world.create(properties={"delta.enableDeletionVectors": "true"})
    folder = folder_of(table)
    plant(table, *"abcdefg", VECTOR_FILE, f"ab/{VECTOR_FILE}", "p q.bin")
    # The vectors end at 49, and at 50.
    for name in (VECTOR_FILE, f"ab/{VECTOR_FILE}", "p q.bin"):
        (folder / name).write_bytes(bytes(49))
    vectors = {
        "a": vector(VECTOR),
        "b": vector(VECTOR, offset=2),
        "c": vector(f"ab{VECTOR}"),
        "d": vector(f"cd{VECTOR}"),
        "e": vector(f"file://{folder}/p%20q.bin", storageType="p"),
        "f": vector("not-of-a-uuid"),
        "g": {"storageType": "i", "pathOrInlineDv": "0rr91", "sizeInBytes": 4, "cardinality": 1},
    }
    await foreign(
        world,
        table,
        *({**foreign_add(path), "deletionVector": marks} for path, marks in vectors.items()),
    )
    last, bad = await looked(world, table)
    assert (last.files, last.vectors, last.skipped) == (7, 6, 0)
    named = f"the file of its deletion vector, {table.location}"
    assert bad == {
        "b": f"{named}/{VECTOR_FILE}, has 49 bytes, and the vector ends at 50",
        "d": f"{named}/cd/{VECTOR_FILE}, is missing",
        "f": "the deletion vector 'unot-of-a-uuid@1' names no file",
    }


async def test_files_of_a_clone_are_looked_for_by_who_may_read_every_table(world):
    source, clone = await world.create(), await world.create()
    plant(source, "x=1/there", "x=a b%2F/there")
    folder = folder_of(source)
    there = [f"file://{folder}/x=1/there", f"{folder}/x=a%20b%252F/there"]
    gone = [f"{folder}/gone", f"{folder}/x=1/there/gone", "../up"]
    nowhere = [
        "file:///nowhere/x",
        "s3://b/c/x",
        "hdfs://h/x/y",
        "dbfs:/x",
        f"{folder.parents[2]}/z",
    ]
    await foreign(world, clone, *(foreign_add(path) for path in (*there, *gone, *nowhere)))
    last, bad = await looked(world, clone)
    assert (last.files, last.skipped) == (5, 5)
    assert bad == dict.fromkeys(gone, "the file is missing")
    for grant in (Grant(Role.ADMIN, clone.name.lower()), Grant(Role.ADMIN, "main")):
        caller = Caller(principal=Principal(name="somebody", grants=(grant,)))
        asking = replace(world, context=world.context.called_by(caller))
        last, bad = await looked(asking, clone)
        assert (last.files, last.skipped, bad) == (0, 10, {})


async def test_a_vector_elsewhere_is_skipped_in_all_its_spellings(world):
    source = await world.create()
    table = await world.create(properties={"delta.enableDeletionVectors": "true"})
    plant(source, "vector")
    plant(table, "a")
    marks = vector(f"file:{folder_of(source)}/vector", storageType="p")
    await foreign(world, table, {**foreign_add("a"), "deletionVector": marks})
    _, bad = await looked(world, table)
    assert "has 5 bytes, and the vector ends at 49" in bad["a"]
    reader = Caller(principal=Principal(name="reader", grants=(Grant(Role.READER, "main"),)))
    asking = replace(world, context=world.context.called_by(reader))
    last, bad = await looked(asking, table)
    assert (last.files, last.vectors, last.skipped, bad) == (1, 0, 1, {})


async def test_a_place_in_another_is_looked_at_through_itself(index, tmp_path):
    """The inner one may be behind a link, where the outer one sees nothing."""
    outer, real = tmp_path / "outer", tmp_path / "real"
    (outer / "a").mkdir(parents=True)
    (real / "source").mkdir(parents=True)
    (outer / "a" / "inner").symlink_to(real)
    (real / "source" / "there").write_bytes(b"12345")
    inner = (outer / "a" / "inner").as_uri()
    storage = ObjectStorage(outer.as_uri(), [inner])
    world = make_world(index, storage, outer.as_uri())
    locations = replace(world.context.locations, prefixes=(inner,))
    world = replace(world, context=replace(world.context, locations=locations))
    table = await world.create()
    paths = [f"{outer}/a/inner/source/there", f"{outer}/a/inner/source/gone"]
    await foreign(world, table, *(foreign_add(path) for path in paths))
    last, bad = await looked(world, table)
    assert (last.files, last.skipped, set(bad)) == (2, 0, {paths[1]})


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_table_that_is_gone_as_a_whole_is_no_lost_file(world, catalog_managed):
    """Its file system may not be mounted."""
    table = await world.create(catalog_managed=catalog_managed)
    await land(world, table, add("a"))
    await publish_table(world.context.index, world.context.storage, table)
    folder = folder_of(table)
    folder.rename(folder.with_name("away"))
    last = (await seen(world, table))[-1]
    assert (last.stage, last.error.code) == (FilesStage.FAILED, Code.STORAGE_UNAVAILABLE)
    assert "is the file system mounted" in last.error.detail


async def test_many_files_are_looked_for_some_at_a_time(world, monkeypatch):
    monkeypatch.setattr(use_case, "FILES_AT_ONCE", 3)
    table = await world.create()
    await land(world, table, *(add(f"f{n}") for n in range(7)))
    answers = await seen(world, table)
    assert [now.files for now in answers] == [3, 6, 7, 7]
    assert [len(now.bad) for now in answers] == [3, 3, 1, 0]
    assert [now.stage for now in answers] == [FilesStage.LOOKING] * 3 + [FilesStage.ENDED]


async def test_a_store_that_does_not_answer_is_no_missing_file(world, monkeypatch):
    table = await world.create()
    await land(world, table, add("a"))

    class Away:
        async def described(self, _paths):
            raise StorageUnavailable("the store is away")

    monkeypatch.setattr(world.context.storage, "data_files", lambda *_, **__: Away())
    (last,) = await seen(world, table)
    assert (last.stage, last.files, last.error.code) == (
        FilesStage.FAILED,
        0,
        Code.STORAGE_UNAVAILABLE,
    )
