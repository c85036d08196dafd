"""Places for tables that cannot be used, and are tried again by themselves."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.local.files import LocalFiles
from tidegate_service.storage.probing import PROBE

pytestmark = pytest.mark.anyio

PATIENCE_S = 60.0
LIMITS = StorageLimits(probe_rest_s=0.01, probe_longest_rest_s=0.02)


@asynccontextmanager
async def probed(*places: Path, limits: StorageLimits = LIMITS) -> AsyncIterator[ObjectStorage]:
    """After one probe, which nobody repeats."""
    for place in places:
        place.mkdir(exist_ok=True)
    warehouse, *others = (place.as_uri() for place in places)
    async with asyncio.timeout(PATIENCE_S):
        storage = await asyncio.to_thread(ObjectStorage, warehouse, others, limits=limits)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await storage.probe()
        yield storage
    finally:
        await storage.close()


async def used(storage: ObjectStorage, place: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_used(storage, place):
            await asyncio.sleep(0.01)


def is_used(storage: ObjectStorage, place: Path) -> bool:
    try:
        storage.log(f"{place.as_uri()}/t")
    except StorageUnavailable:
        return False
    return True


def blocked(place: Path) -> Path:
    """A folder in the place of the probe's file."""
    found = place / PROBE
    found.mkdir(parents=True)
    return found


ENDING = """
import asyncio, sys, threading
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.local.files import LocalFiles

put = LocalFiles.put_if_absent

def waits(self, *args, **options):
    if self._root.name == "hung":
        threading.Event().wait()
    return put(self, *args, **options)

async def start():
    limits = StorageLimits(probe_s=0.05)
    storage = ObjectStorage(sys.argv[1], sys.argv[2:], limits=limits)
    await storage.probe()
    await storage.close()

LocalFiles.put_if_absent = waits
asyncio.run(start())
print("ended")
"""


def test_a_place_that_hangs_does_not_keep_the_process_from_ending(tmp_path: Path):
    places = [tmp_path / name for name in ("warehouse", "hung")]
    for place in places:
        place.mkdir()
    urls = [place.as_uri() for place in places]
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, *urls],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], threading.Event]:
    """Have every write in a place wait for an event."""
    held: dict[Path, threading.Event] = {}
    put = LocalFiles.put_if_absent

    def waits(self: LocalFiles, *args: object, **options: object) -> object:
        if self._root in held:
            held[self._root].wait()
        return put(self, *args, **options)

    def hanging(place: Path) -> threading.Event:
        return held.setdefault(place, threading.Event())

    monkeypatch.setattr(LocalFiles, "put_if_absent", waits)
    yield hanging
    for event in held.values():
        event.set()


async def test_one_that_fails_is_used_once_it_does_not(tmp_path):
    lake = tmp_path / "lake"
    in_the_way = blocked(lake)
    async with probed(tmp_path / "warehouse", lake) as storage:
        assert not is_used(storage, lake)
        in_the_way.rmdir()
        await used(storage, lake)


async def test_one_inside_another_is_fenced_by_itself(tmp_path):
    """It may be a mount of its own, which is away."""
    lake = tmp_path / "warehouse" / "main" / "lake"
    in_the_way = blocked(lake)
    async with probed(tmp_path / "warehouse", tmp_path / "warehouse" / "main", lake) as storage:
        assert not is_used(storage, lake)
        assert not is_used(storage, lake / "air")
        assert is_used(storage, lake.parent)
        with pytest.raises(StorageUnavailable, match="cannot be used yet"):
            storage.log(lake.as_uri())
        in_the_way.rmdir()
        await used(storage, lake)
        storage.log(lake.as_uri())


async def test_each_is_tried_by_itself(tmp_path, hanging):
    lakes = [tmp_path / "hangs", tmp_path / "lake"]
    in_the_way = [blocked(lake) for lake in lakes]
    async with probed(tmp_path / "warehouse", *lakes) as storage:
        hanging(lakes[0])
        for each in in_the_way:
            each.rmdir()
        await used(storage, lakes[1])
        assert not is_used(storage, lakes[0])


async def test_one_that_hangs_at_the_start_ends_none_and_is_used_once_it_answers(
    tmp_path, hanging, monkeypatch
):
    lake, other = tmp_path / "hangs", tmp_path / "other"
    hangs = hanging(lake)
    is_dir = Path.is_dir

    def looked(path: Path) -> bool:
        return (hangs.wait() if path == lake else None) or is_dir(path)

    monkeypatch.setattr(Path, "is_dir", looked)
    limits = replace(LIMITS, probe_s=0.2)
    try:
        async with probed(tmp_path / "warehouse", lake, other, limits=limits) as storage:
            with pytest.raises(StorageUnavailable, match=r"it did not answer within 0\.2 s"):
                storage.log(f"{lake.as_uri()}/t")
            assert is_used(storage, other)
            assert is_used(storage, tmp_path / "warehouse")
            hangs.set()
            await used(storage, lake)
    finally:
        # The loop waits for its threads.
        hangs.set()


async def test_a_long_file_in_the_place_of_the_probes_is_not_read(store_proxy, s3_prefix):
    options = store_proxy.storage_options
    bucket = S3Store("tidegate", config=options)
    prefix = s3_prefix.removeprefix("s3://tidegate/")
    obstore.put(bucket, f"{prefix}/{PROBE}", b"x" * 17)
    with pytest.raises(StorageUnavailable, match="expected to have at most 16 bytes and has 17"):
        await ObjectStorage(s3_prefix, options=options).probe()
