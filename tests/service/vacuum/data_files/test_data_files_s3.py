"""The contract on a real S3 server."""

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.service.vacuum.data_files.data_files_contract import DataFilesContract
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


@pytest.fixture
def storage(s3_server: S3Server, s3_prefix):
    return ObjectStorage(s3_prefix, options=s3_server.storage_options)


@pytest.fixture
def location(s3_prefix):
    return f"{s3_prefix}/main/air/flights"


@pytest.fixture
def plant(s3_server: S3Server, location):
    bucket = S3Store(s3_server.bucket, config=s3_server.storage_options)
    key = location.removeprefix("s3://").partition("/")[2]

    def plant(path, content):
        obstore.put(bucket, f"{key}/{path}", content)

    return plant


class TestContract(DataFilesContract):
    pass
