"""Expired files of logs on S3, and a bucket that nothing may be deleted in."""

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.service.log.expired_contract import EXPIRED, ExpiredContract
from tests.service.storage.remote.test_storage_s3 import key_of
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.expired import DeletionRefused
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


class TestContract(ExpiredContract):
    @pytest.fixture
    def plant(self, s3_server: S3Server):
        bucket = S3Store(s3_server.bucket, config=s3_server.storage_options)

        def plant(location: str, name: str, content: bytes) -> None:
            obstore.put(bucket, f"{key_of(location)}/_delta_log/{name}", content)

        return plant


async def test_a_store_that_refuses(s3_server: S3Server, s3_prefix: str, location: str):
    wrong = {**s3_server.storage_options, "aws_secret_access_key": "wrong"}
    storage = ObjectStorage(s3_prefix, options=wrong)
    with pytest.raises(DeletionRefused, match="does not delete"):
        await storage.expired(location).remove(EXPIRED, below=3)


async def test_a_store_that_cannot_be_reached(s3_server: S3Server, s3_prefix: str, location: str):
    away = {**s3_server.storage_options, "aws_endpoint": "http://127.0.0.1:9"}
    storage = ObjectStorage(s3_prefix, options=away)
    with pytest.raises(StorageUnavailable):
        await storage.expired(location).remove(EXPIRED, below=3)
