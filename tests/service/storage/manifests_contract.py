"""What the manifests of a table promise, on any store (`core.ports.store.manifests`)."""

from collections.abc import Callable

import pytest

from tidegate_service.core.ports.store.manifests import Manifests
from tidegate_service.storage import ObjectStorage


async def partitions_of(manifests: Manifests) -> list[str]:
    return [each async for batch in manifests.partitions() for each in batch]


class ManifestsContract:
    """`location` is of a table that has a first version, `seen` reads a file below it, `plant`
    makes one."""

    @pytest.fixture
    async def manifests(self, storage: ObjectStorage, location: str) -> Manifests:
        await storage.log(location).put_if_absent(0, b"{}\n")
        return storage.manifests(location)

    async def test_there_are_none_at_first(self, manifests: Manifests):
        assert await partitions_of(manifests) == []

    async def test_they_are_put_and_replaced(
        self, manifests: Manifests, seen: Callable[[str], bytes]
    ):
        for partition in ("", "x=1/_y=%2F", "_x=.2"):
            await manifests.put(partition, [b"first"])
            await manifests.put(partition, [b"sec", b"ond"])
        assert sorted(await partitions_of(manifests)) == ["", "_x=.2", "x=1/_y=%2F"]
        assert seen("_symlink_format_manifest/manifest") == b"second"
        assert seen("_symlink_format_manifest/x=1/_y=%2F/manifest") == b"second"

    async def test_a_large_one_is_put_in_pieces(
        self, manifests: Manifests, seen: Callable[[str], bytes]
    ):
        pieces = [bytes([number]) * (1024 * 1024) for number in range(20)]
        await manifests.put("x=1", pieces[:1])
        await manifests.put("x=1", iter(pieces))
        assert seen("_symlink_format_manifest/x=1/manifest") == b"".join(pieces)

    async def test_only_they_are_listed_and_removed(
        self,
        manifests: Manifests,
        seen: Callable[[str], bytes],
        plant: Callable[[str, bytes], None],
    ):
        await manifests.put("x=1", [b"file:///a"])
        await manifests.put("x=2", [b"file:///a"])
        others = ("_symlink_format_manifest/x=1/other", "x=1/manifest")
        for other in others:
            plant(other, b"theirs")
        assert sorted(await partitions_of(manifests)) == ["x=1", "x=2"]
        await manifests.remove(["x=1", "x=3"])
        assert await partitions_of(manifests) == ["x=2"]
        assert [seen(other) for other in others] == [b"theirs"] * 2
