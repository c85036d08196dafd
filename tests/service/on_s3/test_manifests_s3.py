"""Manifests on S3."""

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.service.storage.manifests_contract import ManifestsContract
from tests.service.storage.test_storage_s3 import key_of
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


@pytest.fixture
def storage(s3_server: S3Server, s3_prefix: str) -> ObjectStorage:
    return ObjectStorage(s3_prefix, options=s3_server.storage_options)


@pytest.fixture
def location(s3_prefix: str) -> str:
    return f"{s3_prefix}/main/air/flights"


class TestContract(ManifestsContract):
    @pytest.fixture
    def bucket(self, s3_server: S3Server) -> S3Store:
        return S3Store(s3_server.bucket, config=s3_server.storage_options)

    @pytest.fixture
    def seen(self, bucket: S3Store, location: str):
        return lambda path: bytes(obstore.get(bucket, f"{key_of(location)}/{path}").bytes())

    @pytest.fixture
    def plant(self, bucket: S3Store, location: str):
        return lambda path, content: obstore.put(bucket, f"{key_of(location)}/{path}", content)
