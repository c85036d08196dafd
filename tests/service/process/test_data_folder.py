"""Who may look into what the service keeps on this machine."""

import os
import stat

import httpx
import pytest

from tests.builders.flights import add, table_body
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage.local.data_folder import make_data_folder


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder):
    """The mode of the folder and of everything below it."""
    return {
        path.relative_to(folder).as_posix(): stat.S_IMODE(path.lstat().st_mode)
        for path in (folder, *folder.rglob("*"))
    }


class TestFolder:
    def test_one_that_was_open_is_closed(self, tmp_path, usual_umask):
        folder = tmp_path / "data"
        folder.mkdir()
        make_data_folder(folder, mode=0o700, warehouse=False)
        assert modes(folder) == {".": 0o700}

    def test_one_that_cannot_be_made_is_an_error_that_says_so(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(StorageUnavailable, match=r"with the mode 0700.*--data-dir"):
            make_data_folder(tmp_path / "file", mode=0o700, warehouse=True)


@pytest.fixture
def serve(start_service, usual_umask):
    """Starts a service with a data folder, and its mode unless that is None."""

    def start(folder, mode):
        settings = {} if mode is None else {"data_dir_mode": mode}
        return start_service(data_dir=folder, warehouse=None, **settings)

    return start


class TestService:
    @pytest.mark.parametrize(
        ("setting", "folders", "files"),
        [(None, 0o700, 0o600), ("0750", 0o750, 0o640)],
    )
    def test_writes_what_nobody_else_reads(self, serve, tmp_path, setting, folders, files):
        service = serve(tmp_path / "data", setting)
        tables = f"{service.url}/api/v1/tables"
        httpx.post(tables, json=table_body("main.air.flights")).raise_for_status()
        body = {"operation": "WRITE", "actions": [add("month=1/a.parquet", month="1")]}
        httpx.post(f"{tables}/main.air.flights/commits", json=body).raise_for_status()
        warehouse = tmp_path / "data" / "warehouse"
        kinds = {(mode, (warehouse / name).is_dir()) for name, mode in modes(warehouse).items()}
        assert kinds == {(folders, True), (files, False)}
        assert modes(warehouse)["main/air/flights/_delta_log/00000000000000000001.json"] == files
