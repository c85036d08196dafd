"""Local files and a real S3 server behind the `CheckpointFiles` port: the shared contract."""

import os

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.service.log.checkpoint_contract import CLASSIC, CheckpointContract, put, rows
from tests.service.storage.local.test_storage_local import folder_of
from tests.service.storage.remote.test_storage_s3 import key_of
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


class TestLocalFiles(CheckpointContract):
    @pytest.fixture
    def plant(self):
        def plant(location, name, content):
            (folder_of(location) / "_delta_log" / name).write_bytes(content)

        return plant

    async def test_nothing_is_left_beside_it(self, files, location):
        await put(files, CLASSIC, rows("a"))
        await files.point_to(3, b'{"version":3}')
        assert os.listdir(folder_of(location)) == ["_delta_log"]

    async def test_no_log_is_made_for_it(self, storage, tmp_path):
        nowhere = storage.checkpoints(f"{tmp_path.as_uri()}/main/air/nowhere")
        with pytest.raises(StorageUnavailable, match="could not be written"):
            await put(nowhere, CLASSIC, rows("a"))
        assert not (tmp_path / "main/air/nowhere").exists()


class TestS3(CheckpointContract):
    @pytest.fixture
    def storage(self, s3_server: S3Server, s3_prefix):
        return ObjectStorage(s3_prefix, options=s3_server.storage_options)

    @pytest.fixture
    def location(self, s3_prefix):
        return f"{s3_prefix}/main/air/flights"

    @pytest.fixture
    def plant(self, s3_server: S3Server):
        bucket = S3Store(s3_server.bucket, config=s3_server.storage_options)

        def plant(location, name, content):
            obstore.put(bucket, f"{key_of(location)}/_delta_log/{name}", content)

        return plant
