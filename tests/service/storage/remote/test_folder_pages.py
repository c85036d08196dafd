"""What is listed of a folder in a store that has folders below it."""

import obstore
import pytest
from obstore.store import MemoryStore, ObjectStore, S3Store

from demo.s3_server import S3Server
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.remote.folder_pages import FolderPages

pytestmark = pytest.mark.anyio

COMMITS = [f"{version:020d}.json" for version in range(7)]
IN_A_PAGE = 5


@pytest.fixture(params=["memory", "s3"])
def store(request) -> ObjectStore:
    if request.param == "memory":
        return MemoryStore()
    server: S3Server = request.getfixturevalue("s3_server")
    return S3Store(server.bucket, config=server.storage_options)


@pytest.fixture
def prefix(s3_prefix) -> str:
    """One of this test alone."""
    return s3_prefix.removeprefix("s3://").partition("/")[2] + "/_delta_log"


def plant(store: ObjectStore, prefix: str, *names: str) -> None:
    for name in names:
        obstore.put(store, f"{prefix}/{name}", b"{}")


async def pages(store: ObjectStore, prefix: str, *, after: str = "", files: int = 1000):
    limits = StorageLimits(listed=IN_A_PAGE, files=files)
    listing = FolderPages(store, prefix, after=after, limits=limits)
    found = []
    while (page := await listing.next()) is not None:
        found.append([entry.name for entry in page])
    return found


@pytest.mark.parametrize("after", ["", COMMITS[3]])
async def test_what_many_files_lie_below_is_passed_over(store, prefix, after):
    staged = [f"_staged_commits/{n:03d}.json" for n in range(20 * IN_A_PAGE)]
    plant(store, prefix, *COMMITS, *staged, "_last_checkpoint", "_sidecars/a/b", "_z")
    found = await pages(store, prefix, after=after)
    names = [name for page in found for name in page]
    assert names == [
        *(name for name in COMMITS if name > after),
        "_last_checkpoint",
        "_z",
    ]
    assert len(found) < 10


async def test_a_folder_that_is_named_as_log_files_are_hides_none(store, prefix):
    below = [f"{0:020d}/{n:03d}" for n in range(3 * IN_A_PAGE)]
    plant(store, prefix, *COMMITS, *below)
    assert [name for page in await pages(store, prefix) for name in page] == COMMITS


async def test_what_is_passed_over_is_bounded(store, prefix):
    below = [f"{n:020d}/a" for n in range(3 * IN_A_PAGE)]
    plant(store, prefix, *COMMITS, *below)
    with pytest.raises(UnreadableFile, match="more than 10 files lie in folders below it"):
        await pages(store, prefix, files=10)


async def test_dates_are_whole_seconds_as_those_of_answers(prefix):
    """Of a store that lists fractions."""
    store = MemoryStore()
    plant(store, prefix, *COMMITS)
    listed = {found["last_modified"].microsecond for found in obstore.list(store).collect()}
    assert listed != {0}
    entries = await FolderPages(store, prefix, after="", limits=StorageLimits()).next()
    assert entries is not None
    assert {entry.modified_ms % 1000 for entry in entries} == {0}
