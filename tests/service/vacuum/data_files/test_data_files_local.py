"""Data files on a local disk: the shared contract, links, empty folders."""

import asyncio
import contextlib
import os
import tracemalloc
from pathlib import Path

import pytest

from tests.service.vacuum.data_files.data_files_contract import DataFilesContract
from tests.traced import traced
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.local.data_files import MOST_FOLDERS, LocalDataFiles
from tidegate_service.storage.local.files import LocalFiles

pytestmark = pytest.mark.anyio


@pytest.fixture
def storage(tmp_path):
    return ObjectStorage(tmp_path.as_uri())


@pytest.fixture
def table(tmp_path):
    return tmp_path / "main" / "flights"


@pytest.fixture
def location(table):
    return table.as_uri()


@pytest.fixture
def plant(table):
    def plant(path, content):
        file = table / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    return plant


def folders_open_below(root):
    """How many descriptors of this process are of folders in a folder."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = Path(os.readlink(f"/proc/self/fd/{name}"))
            count += target != root and target.is_relative_to(root) and target.is_dir()
    return count


def files_sorted_in(held_bytes, root, pool, *, names_at_once):
    """The data files of the table."""
    return LocalDataFiles(
        LocalFiles(root).folder,
        ["main", "flights"],
        lambda _: False,
        pool.of("somebody"),
        names_at_once=names_at_once,
        held_bytes=held_bytes,
    )


class CountingPool(Pool):
    steps = 0

    async def run(self, principal, work, *args):
        self.steps += 1
        return await super().run(principal, work, *args)


def remove_all(root):
    """The empty folders, and the number of steps."""
    pool = CountingPool("test", 1)
    files = files_sorted_in(100_000, root, pool, names_at_once=50)
    return asyncio.run(files.remove_empty_folders(before_ms=2**62)), pool.steps


def count_all(root):
    files = files_sorted_in(400_000, root, Pool("test", 1), names_at_once=500)

    async def count():
        return sum([len(batch.paths) async for batch in files.listed()])

    return asyncio.run(count())


class TestContract(DataFilesContract):
    pass


class TestLocal:
    @pytest.fixture
    def files(self, storage, location):
        return storage.data_files(location, partition_columns=["x"])

    async def test_links_and_other_things_are_no_data_files(self, files, plant, table, tmp_path):
        plant("x=1/part", b"")
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "precious").write_bytes(b"")
        (table / "linked").symlink_to(tmp_path / "other")
        (table / "x=1" / "link").symlink_to(tmp_path / "other" / "precious")
        os.mkfifo(table / "x=1" / "pipe")
        (table / "x=1" / os.fsdecode(b"\xff")).write_bytes(b"")
        listed = [path async for batch in files.listed() for path in batch.paths]
        assert listed == ["x=1/part"]
        with pytest.raises((Refused, StorageUnavailable)):
            await files.delete(["linked/precious"])
        assert (tmp_path / "other" / "precious").exists()

    @pytest.mark.slow
    async def test_of_many_folders_the_names_of_one_are_in_memory(self, files, plant):
        for folder in range(40):
            for number in range(100):
                plant(f"x={folder}/{number:0100}", b"")
        tracemalloc.start()
        try:
            async for batch in files.listed():
                del batch
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        # A name and its path take some 400 bytes; at the most 4,096 are listed at once.
        assert peak < 1_500_000

    @pytest.mark.slow
    async def test_folders_in_each_other_share_the_memory(self, table, tmp_path):
        for level in range(8):
            folder = table / "/".join("d" * level)
            folder.mkdir(parents=True)
            for number in range(1_000):
                (folder / f"a{number:0250}").touch()
        count, peak = traced(count_all, tmp_path)
        assert count == 8 * 1_000
        # The names of each folder take 360,000 bytes.
        assert peak < 2_300_000

    async def test_old_folders_without_anything_go(self, files, plant, table):
        plant("x=1/part", b"")
        for folder in ("x=2/y=1", "x=3", "_hidden", "x=4"):
            (table / folder).mkdir(parents=True)
            os.utime(table / folder, (1, 1))
        os.utime(table / "x=2", (1, 1))
        os.utime(table / "x=1", (1, 1))
        os.utime(table / "x=4")
        assert await files.remove_empty_folders(before_ms=2_000) == 3
        assert sorted(each.name for each in table.iterdir()) == ["_hidden", "x=1", "x=4"]

    async def test_more_names_than_are_sorted_in_memory(self, plant, tmp_path):
        files = files_sorted_in(1_000, tmp_path, Pool("test", 1), names_at_once=7)
        names = [f"part-{n}" for n in range(100)]
        for name in names:
            plant(name, b"")
        listed = [path async for batch in files.listed() for path in batch.paths]
        assert listed == sorted(names)

    @pytest.mark.slow
    async def test_empty_folders_go_in_short_steps_and_little_memory(self, table, tmp_path):
        for number in range(2_000):
            (table / f"{number:0200}").mkdir(parents=True)
        (count, steps), peak = traced(remove_all, tmp_path)
        # Their names take 500,000 bytes. A step is for fifty of them, or for what is in one.
        assert count == 2_000
        assert peak < 400_000
        assert steps >= 2_000 + 2_000 // 50

    async def test_what_lies_too_deep_is_left_alone(self, files, plant, table):
        """Each folder is open while those in it are looked through."""
        deepest = "/".join(["d"] * MOST_FOLDERS)
        plant(f"{deepest}/a", b"")
        plant(f"{deepest}/d/{'d/' * MOST_FOLDERS}b", b"")
        most = 0
        listed = []
        async for batch in files.listed():
            most = max(most, folders_open_below(table))
            listed += batch.paths
        assert listed == [f"{deepest}/a"]
        assert most <= MOST_FOLDERS
        (table / deepest / "a").unlink()
        for above in (table / deepest / "d").rglob("*"):
            if above.is_file():
                above.unlink()
        for folder, _, _ in os.walk(table, topdown=False):
            os.utime(folder, (1, 1))
        assert await files.remove_empty_folders(before_ms=2_000) == 0
        assert (table / deepest / "d").is_dir()


def test_no_folder_above_one_that_is_open_stays_open(tmp_path):
    path = ["d"] * 100
    (tmp_path / "/".join(path)).mkdir(parents=True)
    with LocalFiles(tmp_path).folder(path) as folder:
        assert os.path.samestat(os.fstat(folder), (tmp_path / "/".join(path)).stat())
        assert folders_open_below(tmp_path) == 1
    assert folders_open_below(tmp_path) == 0
