"""Data files on a local disk: the shared contract, links, empty folders."""

import contextlib
import os
from pathlib import Path

import pytest

from tests.service.vacuum.data_files.data_files_contract import DataFilesContract
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
