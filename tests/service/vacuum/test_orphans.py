"""The merge of a listing and the index's rows, beside what the use case's tests show of it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.traced import traced
from tidegate_service.core.ports.files.named_files import NamedFiles
from tidegate_service.core.ports.store.data_files import DataFile, Listed
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.vacuum.found import Unnamed
from tidegate_service.core.vacuum.orphans import OtherNames, orphans
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

PAGES = 300
FILES_A_PAGE = 1_000
MIB = 1024 * 1024


async def pages() -> AsyncIterator[NamedFiles]:
    """Of names between two of the listing, the last page of which has one of those."""
    for page in range(PAGES):
        paths = [f"b/{page:06d}/{n:06d}" for n in range(FILES_A_PAGE)]
        yield NamedFiles(paths=paths, vectors=[""] * FILES_A_PAGE)
    yield NamedFiles(paths=["c", "c"], vectors=["", ""])
    yield NamedFiles(paths=["c", "d"], vectors=["", ""])


async def listing() -> AsyncIterator[Listed]:
    for paths in (["a", "c"], ["c0", "d"], ["e"]):
        yield Listed(paths=paths, sizes=[1] * len(paths), modified_ms=[1] * len(paths))


async def merged(location: str) -> list[DataFile]:
    files = ObjectStorage(location).data_files(f"{location}/main/flights", partition_columns=())
    others = OtherNames(location=f"{location}/main/flights", share=Pool("test", 1).of("somebody"))
    found = orphans(files, listing(), pages(), others, modified_before_ms=2)
    return [file async for _, some in found for file in some]


def all_merged(location: str) -> list[DataFile]:
    return asyncio.run(merged(location))


@pytest.mark.slow
async def test_what_is_named_between_two_files_is_not_held(tmp_path):
    found, peak_bytes = traced(all_merged, tmp_path.as_uri())
    assert peak_bytes < 2 * MIB
    assert found == [DataFile(path=path, size=1, modified_ms=1) for path in ("a", "c0", "e")]


async def test_names_beside_paths_are_passed_over_some_at_a_time(tmp_path):
    location = f"{tmp_path.as_uri()}/main/flights"
    others = OtherNames(location=location, share=Pool("test", 1).of("somebody"))
    await others.take(NamedFiles(paths=[f"./{n:06d}" for n in range(2_500)], vectors=[""] * 2_500))
    unnamed = Unnamed(others, names_at_once=10)
    paths = ["!", "000007", "000007x", "002400", "002499", "1"]
    files = [DataFile(path=path, size=1, modified_ms=1) for path in paths]
    found = await unnamed.of(files[:3]) + await unnamed.of(files[3:])
    assert [file.path for file in found] == ["!", "000007x", "1"]
