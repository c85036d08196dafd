"""Local files behind the `Storage` port: the shared contract, and the fence around the roots."""

import os
from pathlib import Path

import pytest

from tests.service.faults import FaultyStorage
from tests.service.log.log_contract import LogContract
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def warehouse(tmp_path):
    folder = tmp_path / "warehouse"
    folder.mkdir()
    return folder


@pytest.fixture
def storage(warehouse):
    return ObjectStorage(f"file://{warehouse}")


@pytest.fixture
def location(warehouse):
    return f"file://{warehouse}/main/air/flights"


def folder_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


class TestContract(LogContract):
    @pytest.fixture
    def plant(self):
        def plant(location, name, content):
            path = folder_of(location) / "_delta_log" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

        return plant


class TestContractWithoutFaults(TestContract):
    """What the tests put between the commit path and a store does nothing of its own."""

    @pytest.fixture
    def storage(self, storage):
        return FaultyStorage(storage)


class TestWhereTablesMayBe:
    @pytest.mark.parametrize(
        "tail",
        [
            "",  # the warehouse itself
            "/",
            "/flights/",
            "/a/../../elsewhere",
            "/a//b",
            "/a/./b",
            "/a/%2e%2e/b",
            "/a/_delta_log",
            "-and-a-sibling/flights",
        ],
    )
    def test_a_location_outside_or_not_canonical_is_refused(self, storage, warehouse, tail):
        with pytest.raises(Refused) as refused:
            storage.log(f"file://{warehouse}{tail}")
        assert refused.value.code is Code.INVALID_LOCATION

    @pytest.mark.parametrize(
        "location", ["file:///etc/table", "file://host/table", "s3://bucket/table", "/table", ""]
    )
    def test_another_place_is_refused(self, storage, location):
        with pytest.raises(Refused) as refused:
            storage.log(location)
        assert refused.value.code is Code.INVALID_LOCATION

    async def test_an_allowed_prefix_takes_tables(self, warehouse, tmp_path):
        (tmp_path / "lake").mkdir()
        storage = ObjectStorage(f"file://{warehouse}", [f"file://{tmp_path}/lake/"])

        await storage.log(f"file://{tmp_path}/lake/flights").put_if_absent(0, b"zero\n")

        path = tmp_path / "lake" / "flights" / "_delta_log" / commit_name(0)
        assert path.read_bytes() == b"zero\n"

    @pytest.mark.parametrize("name", ["two words", "schön", "100%", "a+b=c", "[x]{y}", "~t", "t "])
    async def test_any_name_of_a_warehouse_serves(self, tmp_path, name):
        (tmp_path / name).mkdir()
        storage = ObjectStorage(f"file://{tmp_path}/{name}")
        log = storage.log(f"file://{tmp_path}/{name}/{name}/flights")

        await storage.probe()
        assert await log.put_if_absent(0, b"zero\n") is PutResult.CREATED
        assert await log.read(0) == b"zero\n"
        assert await log.holds_anything()

        path = tmp_path / name / name / "flights" / "_delta_log" / commit_name(0)
        assert path.read_bytes() == b"zero\n"

    async def test_the_warehouse_itself_may_be_reached_through_a_link(self, tmp_path, warehouse):
        (tmp_path / "link").symlink_to(warehouse)
        storage = ObjectStorage(f"file://{tmp_path}/link")

        await storage.log(f"file://{tmp_path}/link/flights").put_if_absent(0, b"zero\n")

        path = warehouse / "flights" / "_delta_log" / commit_name(0)
        assert path.read_bytes() == b"zero\n"

    def test_a_warehouse_that_does_not_exist_is_named(self, tmp_path):
        with pytest.raises(StorageUnavailable, match="/absent"):
            ObjectStorage(f"file://{tmp_path}/absent")

    def test_a_warehouse_of_another_kind_is_refused(self):
        with pytest.raises(Refused):
            ObjectStorage("ftp://host/warehouse")


class TestLinks:
    """No symbolic link below a root is followed, wherever it leads."""

    @pytest.fixture
    def outside(self, tmp_path):
        folder = tmp_path / "outside"
        (folder / "_delta_log").mkdir(parents=True)
        (folder / "air" / "flights" / "_delta_log").mkdir(parents=True)
        for log in folder.rglob("_delta_log"):
            (log / commit_name(0)).write_bytes(b"secret\n")
        return folder

    @pytest.fixture(params=["main", "main/air/flights", "main/air/flights/_delta_log"])
    def log(self, request, warehouse, outside, storage, location):
        link = warehouse / request.param
        link.parent.mkdir(parents=True, exist_ok=True)
        is_log = request.param.endswith("_delta_log")
        link.symlink_to(outside / "_delta_log" if is_log else outside)
        return storage.log(location)

    async def test_it_is_no_place_for_a_new_table(self, log):
        with pytest.raises(Refused) as refused:
            await log.holds_anything()
        assert refused.value.code is Code.INVALID_LOCATION

    async def test_nothing_is_written_through_it(self, log, outside):
        before = sorted(outside.rglob("*"))

        for version in (0, 1):
            with pytest.raises(StorageUnavailable):
                await log.put_if_absent(version, b"ours\n")

        assert sorted(outside.rglob("*")) == before

    async def test_nothing_is_read_through_it(self, log):
        with pytest.raises(StorageUnavailable):
            await log.read(0)

    async def test_a_commit_that_is_a_link_is_not_read(self, storage, location, outside):
        log = storage.log(location)
        await log.put_if_absent(0, b"zero\n")
        target = outside / "_delta_log" / commit_name(0)
        (folder_of(location) / "_delta_log" / commit_name(1)).symlink_to(target)

        assert await log.put_if_absent(1, b"ours\n") is PutResult.EXISTS
        with pytest.raises(StorageUnavailable):
            await log.read(1)

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    async def test_a_commit_that_is_no_file_is_not_read(self, storage, location, make):
        log = storage.log(location)
        await log.put_if_absent(0, b"zero\n")
        make(folder_of(location) / "_delta_log" / commit_name(1))

        with pytest.raises(StorageUnavailable):
            await log.read(1)

    async def test_a_location_that_cannot_be_a_folder_is_refused(self, storage, warehouse):
        (warehouse / "a-file").write_bytes(b"")
        log = storage.log(f"file://{warehouse}/a-file/flights")

        with pytest.raises(Refused) as refused:
            await log.holds_anything()
        assert refused.value.code is Code.INVALID_LOCATION
        with pytest.raises(StorageUnavailable):
            await log.put_if_absent(0, b"zero\n")


class TestMissingFolders:
    async def test_the_first_commit_makes_the_tables_folder(self, storage, location):
        assert not folder_of(location).exists()

        await storage.log(location).put_if_absent(0, b"zero\n")

        assert [path.name for path in folder_of(location).iterdir()] == ["_delta_log"]

    async def test_a_later_commit_never_does(self, storage, location):
        with pytest.raises(StorageUnavailable):
            await storage.log(location).put_if_absent(1, b"one\n")

        assert not folder_of(location).exists()

    async def test_a_warehouse_that_is_gone_says_nothing_and_comes_back(
        self, storage, warehouse, location
    ):
        log = storage.log(location)
        await log.put_if_absent(0, b"zero\n")
        away = warehouse.rename(warehouse.with_name("unmounted"))

        for call in (log.read(0), log.put_if_absent(1, b""), log.holds_anything()):
            with pytest.raises(StorageUnavailable):
                await call
        with pytest.raises(StorageUnavailable):
            await storage.probe()
        assert not warehouse.exists()

        away.rename(warehouse)
        await storage.probe()
        assert await log.read(0) == b"zero\n"


class TestProbe:
    async def test_it_leaves_nothing_but_one_empty_file(self, storage, warehouse):
        await storage.probe()
        await storage.probe()

        folder = warehouse / ".tidegate-probe"
        assert sorted(warehouse.rglob("*")) == [folder, folder / "put-if-absent"]
        assert (folder / "put-if-absent").read_bytes() == b""

    async def test_a_mount_point_does_not_pass_for_the_warehouse(self, storage, warehouse):
        await storage.probe()
        mounted = warehouse.rename(warehouse.with_name("unmounted"))
        warehouse.mkdir()
        for _ in range(2):
            with pytest.raises(StorageUnavailable, match="could not be written"):
                await storage.probe()
        assert not list(warehouse.iterdir())
        warehouse.rmdir()
        mounted.rename(warehouse)
        await storage.probe()

    async def test_a_warehouse_that_was_emptied_is_told_of(self, storage, warehouse):
        await storage.probe()
        (warehouse / ".tidegate-probe" / "put-if-absent").unlink()
        with pytest.raises(StorageUnavailable, match="is not what it was at the start"):
            await storage.probe()

    async def test_a_place_that_is_taken_away_keeps_nobody_from_the_warehouse(
        self, warehouse, tmp_path
    ):
        (tmp_path / "lake").mkdir()
        storage = ObjectStorage(f"file://{warehouse}", [f"file://{tmp_path}/lake"])
        await storage.probe()
        assert (tmp_path / "lake" / ".tidegate-probe" / "put-if-absent").exists()
        (tmp_path / "lake").rename(tmp_path / "unmounted")
        await storage.probe()
        warehouse.rename(tmp_path / "unmounted, too")
        with pytest.raises(StorageUnavailable):
            await storage.probe()

    async def test_what_its_owner_has_put_there_ends_no_start(self, warehouse, tmp_path):
        probe = tmp_path / "lake" / ".tidegate-probe" / "put-if-absent"
        probe.parent.mkdir(parents=True)
        probe.write_bytes(b"x" * 100)
        place = f"file://{tmp_path}/lake"
        small = StorageLimits(commit_bytes=10)
        storage = ObjectStorage(f"file://{warehouse}", [place], limits=small)
        await storage.probe()
        with pytest.raises(StorageUnavailable, match="cannot be used yet"):
            storage.log(f"{place}/t")

    async def test_a_file_system_that_replaces_is_refused(self, storage, monkeypatch):
        def replace(source, target, *, src_dir_fd, dst_dir_fd, follow_symlinks):
            os.replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        monkeypatch.setattr(os, "link", replace)

        with pytest.raises(StorageUnavailable, match="put-if-absent"):
            await storage.probe()

    async def test_a_write_of_unknown_outcome_fails_it(self, storage, monkeypatch):
        def timed_out(*_args, **_options):
            raise TimeoutError(110, "Connection timed out")

        monkeypatch.setattr(os, "link", timed_out)

        with pytest.raises(StorageUnavailable, match="timed out"):
            await storage.probe()
