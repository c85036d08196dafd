"""Which folder around a table's has another table's log: on a local disk and on S3."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.local.files import LocalFiles

pytestmark = pytest.mark.anyio

VERSION = f"_delta_log/{0:020d}.json"


@pytest.fixture(params=["local files", "S3"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "S3":
        return str(request.getfixturevalue("s3_prefix"))
    return tmp_path.as_uri()


@pytest.fixture
def open_storage(lake: str, request: pytest.FixtureRequest) -> Callable[..., ObjectStorage]:
    def open_storage(*places: str) -> ObjectStorage:
        if lake.startswith("file:"):
            return ObjectStorage(*places[:1], places[1:])
        options = request.getfixturevalue("s3_server").storage_options
        return ObjectStorage(*places[:1], places[1:], options=options)

    return open_storage


@pytest.fixture
def plant(lake: str, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Put a file into the lake."""
    if lake.startswith("file:"):

        def plant(path: str) -> None:
            file = Path(lake.removeprefix("file://")) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"{}")

        return plant
    server: S3Server = request.getfixturevalue("s3_server")
    bucket = S3Store(server.bucket, config=server.storage_options)
    prefix = lake.removeprefix("s3://").partition("/")[2]
    return lambda path: obstore.put(bucket, f"{prefix}/{path}", b"{}")


@pytest.mark.parametrize("within", ["", "/a", "/a/b"])
@pytest.mark.parametrize(
    "name",
    [
        VERSION,
        "_delta_log/_last_checkpoint",
        "_delta_log/_sidecars/some.parquet",
        f"_delta_log/_staged_commits/{0:020d}.some-id.json",
        "_delta_log/_commits/x",
    ],
)
async def test_any_folder_from_the_place_down_to_the_parent(
    open_storage, lake, plant, within, name
):
    plant(f"{within}/{name}".removeprefix("/"))
    assert await open_storage(lake).log_above(f"{lake}/a/b/t") == lake + within


async def test_the_operator_is_told_which_folder_it_is(open_storage, lake, plant, caplog):
    plant(f"a/{VERSION}")
    with caplog.at_level("WARNING", logger="tidegate.service"):
        await open_storage(lake).log_above(f"{lake}/a/b/t")
    (told,) = caplog.records
    assert (told.log, told.location) == (f"{lake}/a/_delta_log", f"{lake}/a/b/t")


async def test_what_is_no_log_around_it(open_storage, lake, plant):
    for path in (
        f"a/b/t/{VERSION}",
        f"a/b/t/u/{VERSION}",
        f"a/b/s/{VERSION}",
        f"a/b/_delta_logs/{VERSION}",
        # A name that is none of a log's keeps nobody from the whole place.
        "_delta_log/x",
        "_delta_log/below/x",
        f"_delta_log/below/{0:020d}.json",
        "a/_delta_log/0.json",
        "a/_delta_log.json",
        "a/b/part",
    ):
        plant(path)
    assert await open_storage(lake).log_above(f"{lake}/a/b/t") is None
    assert await open_storage(lake).log_above(f"{lake}/t") is None


async def test_a_place_inside_another_one_is_looked_at_from_the_outer_one(
    open_storage, lake, plant
):
    for place in ("", "/a", "/a/b"):
        plant(f"{place}/part".removeprefix("/"))
    storage = open_storage(f"{lake}/a/b", f"{lake}/a", lake)
    assert await storage.log_above(f"{lake}/a/b/c/t") is None
    plant(f"a/b/{VERSION}")
    assert await storage.log_above(f"{lake}/a/b/c/t") == f"{lake}/a/b"
    plant(VERSION)
    assert await storage.log_above(f"{lake}/a/b/c/t") == lake
    assert await open_storage(f"{lake}/a").log_above(f"{lake}/a/b/c/t") == f"{lake}/a/b"


async def test_a_log_of_a_folder_that_is_empty_is_none(tmp_path):
    (tmp_path / "a" / "_delta_log").mkdir(parents=True)
    assert await ObjectStorage(tmp_path.as_uri()).log_above(f"{tmp_path.as_uri()}/a/t") is None


async def test_a_log_that_is_a_link_cannot_be_told_from_one(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "_delta_log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused) as refused:
        await ObjectStorage(tmp_path.as_uri()).log_above(f"{tmp_path.as_uri()}/a/t")
    assert refused.value.code is Code.INVALID_LOCATION


async def test_a_place_behind_a_link_of_an_outer_place(tmp_path):
    (tmp_path / "disk" / "b" / "_delta_log").mkdir(parents=True)
    (tmp_path / "disk" / "b" / VERSION).write_bytes(b"{}")
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "mounted").symlink_to(tmp_path / "disk")
    lake = (tmp_path / "lake").as_uri()
    storage = ObjectStorage(f"{lake}/mounted", [lake])
    assert await storage.log_above(f"{lake}/mounted/b/t") == f"{lake}/mounted/b"
    assert await storage.log_above(f"{lake}/mounted/c/t") is None


async def test_a_look_has_its_deadline(tmp_path, monkeypatch):
    """A log of many names, or a disk that hangs, holds a creation up for no longer."""
    go, entries = threading.Event(), LocalFiles.entries

    def waits(*args, **options):
        go.wait()
        return (yield from entries(*args, **options))

    monkeypatch.setattr(LocalFiles, "entries", waits)
    lake = tmp_path.as_uri()
    storage = ObjectStorage(lake, limits=StorageLimits(above_s=0.05))
    try:
        async with asyncio.timeout(60):
            with pytest.raises(StorageUnavailable, match=r"for logs within 0\.05 s"):
                await storage.log_above(f"{lake}/a/t")
    finally:
        go.set()


async def test_it_is_not_said_of_a_store_that_does_not_answer(s3_server, free_tcp_port):
    options = {**s3_server.storage_options, "aws_endpoint": f"http://127.0.0.1:{free_tcp_port}"}
    with pytest.raises(StorageUnavailable):
        await ObjectStorage("s3://tidegate/x", options=options).log_above("s3://tidegate/x/t")
