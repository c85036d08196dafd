"""What every implementation of the `CheckpointFiles` port does, and of the `Log` port for what
upkeep puts beside commits: one suite for all of them.

A test module subclasses `CheckpointContract` and gives it the fixtures of `LogContract`.
"""

import asyncio
import json
import random
from contextlib import suppress
from functools import partial

import pytest

from tests.service.log.log_contract import listed
from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.log.actions import Add, Metadata, Protocol, Remove
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.checkpoints import FileRows
from tidegate_service.core.ports.store.put_result import PutResult

CLASSIC = "00000000000000000003.checkpoint.parquet"
SIDECAR = "_sidecars/016ae953-37a9-438e-8683-9a9a4a79a395.parquet"
MAIN = "00000000000000000003.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
COLUMNS = FileColumns()
SMALL = [Protocol(min_reader_version=1, min_writer_version=2), Metadata(id="m")]


def line(path: str, **fields: object) -> bytes:
    body = {"path": path, "partitionValues": {}, "size": 3, "modificationTime": 5, **fields}
    return json.dumps({"add": {**body, "dataChange": True}}).encode()


def rows(*paths: str, removed: tuple[tuple[int, str], ...] = ()) -> FileRows:
    return FileRows(
        adds=b"\n".join(map(line, paths)),
        num_adds=len(paths),
        tombstones=[(ms, line(path)) for ms, path in removed],
    )


def incompressible(count: int) -> FileRows:
    draw = random.Random(7)
    return rows(*(f"{draw.randbytes(500).hex()}.parquet" for _ in range(count)))


async def put(files, name, *pages, actions=()):
    async with files.writing(name, COLUMNS) as file:
        await file.take_actions(actions)
        for page in pages:
            await file.take(page)
        return await file.put()


async def read(log, name):
    return [action async for batch in log.checkpoint_actions(name) for action in batch]


class CheckpointContract:
    @pytest.fixture
    async def log(self, storage, location):
        """The table's log, which has a first version."""
        made = storage.log(location)
        await made.put_if_absent(0, b"{}\n")
        return made

    @pytest.fixture
    def files(self, storage, location, log):
        return storage.checkpoints(location)

    async def test_what_was_put_is_read(self, log, files):
        written = await put(files, CLASSIC, rows("a", "b", removed=((9, "c"),)), actions=SMALL)
        assert written.result is PutResult.CREATED
        (entry,) = [one for one in await listed(log) if one.name == CLASSIC]
        assert (entry.size, entry.modified_ms) == (written.size, written.modified_ms)
        found = await read(log, CLASSIC)
        assert {one.path for one in found if isinstance(one, Add)} == {"a", "b"}
        (gone,) = [one for one in found if isinstance(one, Remove)]
        assert (gone.path, gone.deletion_timestamp, gone.data_change) == ("c", 9, False)
        assert gone.extended_file_metadata
        assert {type(one) for one in found} == {Add, Remove, Protocol, Metadata}

    async def test_nothing_is_there_before_it_is_put(self, log, files):
        async with files.writing(CLASSIC, COLUMNS) as file:
            await file.take(rows("a"))
            before = await listed(log)
        assert [one.name for one in before] == ["00000000000000000000.json"]
        assert await listed(log) == before

    async def test_nor_after_its_writer_failed(self, log, files):
        with pytest.raises(RuntimeError, match="fails"):
            await _failing(files)
        assert await files.sidecars({SIDECAR.removeprefix("_sidecars/")}) == {}

    async def test_a_name_that_is_taken_stays_what_it_was(self, log, files):
        await put(files, CLASSIC, rows("a"))
        again = await put(files, CLASSIC, rows("b"))
        assert again.result is PutResult.EXISTS
        assert [one.path for one in await read(log, CLASSIC)] == ["a"]

    async def test_so_does_one_that_is_large(self, log, files):
        large = incompressible(40_000)
        first = await put(files, CLASSIC, large)
        assert first.size > 16 * 1024 * 1024
        assert (await put(files, CLASSIC, large)).result is PutResult.EXISTS
        assert len(await read(log, CLASSIC)) == 40_000

    async def test_sidecars_have_a_folder_of_their_own(self, log, files):
        name = SIDECAR.removeprefix("_sidecars/")
        assert await files.sidecars({name}) == {}
        written = await put(files, SIDECAR, rows("a"))
        assert await files.sidecars({name, "gone.parquet"}) == {name: written.size}
        assert await files.sidecars(set()) == {}
        assert [one.path for one in await read(log, SIDECAR)] == ["a"]
        assert [one.name for one in await listed(log)] == ["00000000000000000000.json"]

    async def test_a_main_file_may_be_json(self, log, files):
        await put(files, MAIN, actions=SMALL)
        assert [type(one) for one in await read(log, MAIN)] == [Protocol, Metadata]

    async def test_files_go_into_sidecars_where_it_is(self, files):
        with pytest.raises(TypeError, match="sidecars"):
            await put(files, MAIN, rows("a"))

    async def test_parts_of_others_are_seen(self, files, plant, location):
        assert await files.parts(3) == frozenset()
        for version, part, parts in ((3, 1, 2), (3, 2, 2), (3, 2, 5), (2, 1, 7), (4, 1, 8)):
            name = f"{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"
            plant(location, name, b"x")
        assert await files.parts(3) == {2, 5}

    async def test_files_that_are_taken_over(self, log, files):
        for name in ("a.parquet", "b.parquet"):
            await put(files, name, rows(name[0]), actions=SMALL)
        found = await files.take_over([("a.parquet", "c.parquet"), ("b.parquet", "d.parquet")])
        if not files.can_take_over:
            assert found is None
            return
        assert await read(log, "c.parquet") == await read(log, "a.parquet")
        sizes = {entry.name: entry.size for entry in await listed(log)}
        assert [each.size for each in found] == [sizes["c.parquet"], sizes["d.parquet"]]
        assert await files.take_over([("a.parquet", "d.parquet")]) is None
        assert await files.take_over([("gone.parquet", "e.parquet")]) is None
        assert await read(log, "d.parquet") == await read(log, "b.parquet")

    @pytest.mark.parametrize(
        "kinds",
        [
            ["parquet"],
            [f"{part:010d}.{2:010d}.parquet" for part in (1, 2)],
            ["6d0b1d9b-5b5c-4a4e-9d0c-2f0a6a3f2c11.json"],
        ],
    )
    async def test_the_pointer_never_goes_back(self, log, files, plant, location, kinds):
        for kind in kinds:
            plant(location, f"{3:020d}.checkpoint.{kind}", b"x")
        assert await files.point_to(3, b'{"version":3}')
        assert await files.point_to(3, b'{"version":3,"size":1}')
        assert not await files.point_to(2, b'{"version":2}')
        assert await log.read_file("_last_checkpoint") == b'{"version":3,"size":1}'

    @pytest.mark.parametrize("version", [3, 2**62, 10**30])
    async def test_but_from_a_checkpoint_that_is_not_there(
        self, log, files, plant, location, version
    ):
        """Readers of Delta Kernel look for that one, and refuse the table."""
        part = f"{3:020d}.checkpoint.{1:010d}.{2:010d}.parquet"
        for name in (f"{3:020d}.json", part, f"{2:020d}.checkpoint.parquet", f"{4:020d}.json"):
            plant(location, name, b"x")
        plant(location, "_last_checkpoint", b'{"version":%d,"size":1}' % version)
        assert await files.point_to(2, b'{"version":2}')
        assert await log.read_file("_last_checkpoint") == b'{"version":2}'

    @pytest.mark.parametrize("content", [b"", b"nothing", b'{"version":null}'])
    async def test_one_that_points_nowhere_is_replaced(self, log, files, plant, location, content):
        plant(location, "_last_checkpoint", content)
        assert await files.point_to(0, b'{"version":0}')
        assert await log.read_file("_last_checkpoint") == b'{"version":0}'

    async def test_whoever_reads_the_pointer_meets_a_whole_one(self, log, files):
        contents = [b'{"version":%d,"pad":"%s"}' % (n, b"x" * 5_000 * n) for n in range(1, 12)]
        await files.point_to(0, contents[0])
        done = asyncio.create_task(_in_turn(files, contents))
        while not done.done():
            # A store may say that the file was replaced while it was read.
            with suppress(StorageUnavailable):
                assert await log.read_file("_last_checkpoint") in contents
        await done
        assert await log.read_file("_last_checkpoint") == contents[-1]

    async def test_checksums_and_compacted_files_are_put_under_free_names(self, log):
        puts = {
            "00000000000000000002.00000000000000000010.compacted.json": partial(
                log.put_compacted, 2, 10
            ),
            "00000000000000000002.crc": partial(log.put_checksum, 2),
        }
        for name, put_ in puts.items():
            assert await put_(b"first\n") is PutResult.CREATED
            assert await put_(b"second\n") is PutResult.EXISTS
            assert await log.read_file(name) == b"first\n"
        assert set(puts) < {entry.name for entry in await listed(log)}


async def _failing(files) -> None:
    async with files.writing(SIDECAR, COLUMNS) as file:
        await file.take(rows("a"))
        raise RuntimeError("it fails")


async def _in_turn(files, contents: list[bytes]) -> None:
    for version, content in enumerate(contents, start=1):
        await files.point_to(version, content)
