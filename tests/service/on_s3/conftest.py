"""The worlds of `tests/service/conftest.py` with S3 in the place of local files."""

from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.servers.store_proxy import StoreProxy
from tests.service.faults import FaultyStorage
from tests.service.world import World, make_world
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.settings import Settings
from tidegate_service.storage import ObjectStorage


@dataclass(frozen=True, slots=True)
class S3Path:
    """What the tests need of a path, for an object or for all that have a key's prefix."""

    store: S3Store
    key: str

    def __truediv__(self, name: str) -> "S3Path":
        return S3Path(self.store, f"{self.key}/{name}")

    def exists(self) -> bool:
        if any(batch for batch in obstore.list(self.store, self.key)):
            return True
        try:
            obstore.head(self.store, self.key)
        except FileNotFoundError:
            return False
        return True

    def read_bytes(self) -> bytes:
        return bytes(obstore.get(self.store, self.key).bytes())

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, content: bytes) -> None:
        obstore.put(self.store, self.key, content)

    def write_text(self, content: str) -> None:
        self.write_bytes(content.encode())

    def unlink(self) -> None:
        obstore.delete(self.store, self.key)


@dataclass(frozen=True, slots=True)
class S3World(World):
    store: S3Store

    def log_folder(self, table: TableRecord) -> S3Path:
        key = table.location.removeprefix("s3://").partition("/")[2]
        return S3Path(self.store, f"{key}/_delta_log")


def on_s3(world: World, server: S3Server) -> S3World:
    return S3World(world.context, S3Store(server.bucket, config=server.storage_options))


@pytest.fixture
def faults(s3_server: S3Server, s3_prefix: str) -> FaultyStorage:
    return FaultyStorage(ObjectStorage(s3_prefix, options=s3_server.storage_options))


@pytest.fixture
def world(
    index: PostgresIndex, faults: FaultyStorage, s3_server: S3Server, s3_prefix: str
) -> World:
    return on_s3(make_world(index, faults, s3_prefix), s3_server)


@pytest.fixture
def failing_world(
    index: PostgresIndex, store_proxy: StoreProxy, s3_server: S3Server, s3_prefix: str
) -> World:
    """A world whose requests to the store pass through `store_proxy`."""
    storage = ObjectStorage(s3_prefix, options=store_proxy.storage_options)
    return on_s3(make_world(index, storage, s3_prefix), s3_server)


@pytest.fixture
def settings(database_url: str, tmp_path: Path, s3_server: S3Server, s3_prefix: str) -> Settings:
    return Settings(
        database_url=database_url,
        data_dir=tmp_path,
        port=0,
        publish_interval_seconds=0.2,
        warehouse=s3_prefix,
        storage_options=s3_server.storage_options,
    )


@pytest.fixture
def storage(s3_server: S3Server, s3_prefix: str) -> ObjectStorage:
    return ObjectStorage(s3_prefix, options=s3_server.storage_options)


@pytest.fixture
def location(s3_prefix: str) -> str:
    return f"{s3_prefix}/main/air/flights"
