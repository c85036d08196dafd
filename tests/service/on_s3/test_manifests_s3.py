"""Manifests on S3."""

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.service.storage.manifests_contract import ManifestsContract
from tests.service.storage.remote.test_storage_s3 import key_of

pytestmark = pytest.mark.anyio


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
