"""Expired files of logs on a local disk, and a disk that nothing may be deleted on."""

import os
import stat

import pytest

from tests.service.log.expired_contract import EXPIRED, ExpiredContract
from tests.service.storage.local.test_storage_local import folder_of
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.expired import DeletionRefused
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.local import removing

pytestmark = pytest.mark.anyio


class TestContract(ExpiredContract):
    @pytest.fixture
    def plant(self):
        def plant(location: str, name: str, content: bytes) -> None:
            file = folder_of(location) / "_delta_log" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

        return plant


@pytest.mark.parametrize(
    ("error", "kind"),
    [(PermissionError(13, "no"), DeletionRefused), (OSError(5, "broken"), StorageUnavailable)],
)
async def test_what_the_file_system_says(storage, location, monkeypatch, error, kind):
    log = folder_of(location) / "_delta_log"
    log.mkdir(parents=True)
    assert stat.S_ISDIR(os.stat(log).st_mode)

    def unlink(name: str, *, dir_fd: int) -> None:
        raise error

    monkeypatch.setattr(removing.os, "unlink", unlink)
    with pytest.raises(kind, match="could not be deleted"):
        await storage.expired(location).remove(EXPIRED, below=3)


async def test_a_link_is_not_followed(storage, location, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / EXPIRED[0]).write_bytes(b"x")
    folder_of(location).mkdir(parents=True)
    (folder_of(location) / "_delta_log").symlink_to(elsewhere)
    with pytest.raises(StorageUnavailable):
        await storage.expired(location).remove(EXPIRED, below=3)
    assert (elsewhere / EXPIRED[0]).exists()


async def test_as_many_sidecars_are_listed_as_files_of_a_log(location, tmp_path):
    folder = folder_of(location) / "_delta_log" / "_sidecars"
    folder.mkdir(parents=True)
    for number in range(5):
        (folder / f"{number}.parquet").write_bytes(b"x")
    storage = ObjectStorage(tmp_path.as_uri(), limits=StorageLimits(files=3))
    listed = [entry.name async for batch in storage.expired(location).sidecars() for entry in batch]
    assert listed == ["0.parquet", "1.parquet", "2.parquet"]
    # A checkpoint finds all of its own.
    wanted = {"0.parquet", "4.parquet", "5.parquet"}
    assert set(await storage.checkpoints(location).sidecars(wanted)) == {"0.parquet", "4.parquet"}
