"""What every implementation of the port of expired files does: one suite for all of them.

A test module subclasses `ExpiredContract` and gives it the fixtures of `LogContract`: `storage`,
`location` and `plant`.
"""

import pytest

from tests.service.log.log_contract import Plant, listed
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.ports.store.storage import Storage

EXPIRED = [
    "00000000000000000000.json",
    "00000000000000000001.crc",
    "00000000000000000002.00000000000000000009.compacted.json",
    "00000000000000000002.checkpoint.0000000001.0000000002.parquet",
    "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
    "00000000000000000002.checkpoint.parquet",
]
KEPT = [
    "00000000000000000003.json",
    "00000000000000000003.checkpoint.parquet",
    "00000000000000000003.crc",
    "_last_checkpoint",
    "README.md",
    "../part-0.parquet",
    "../_delta_log/00000000000000000000.json",
    "0.json",
    "00000000000000000000.json.tmp",
    "00000000000000000000.json/",
    "_sidecars/016ae953-37a9-438e-8683-9a9a4a79a395.parquet",
    "",
    "..",
]
SIDECAR = "016ae953-37a9-438e-8683-9a9a4a79a395.parquet"


class ExpiredContract:
    async def names(self, storage: Storage, location: str) -> list[str]:
        return [entry.name for entry in await listed(storage.log(location))]

    async def test_expired_files_are_deleted(self, storage: Storage, location: str, plant: Plant):
        for name in [*EXPIRED, "00000000000000000003.json"]:
            plant(location, name, b"x")
        await storage.expired(location).remove(EXPIRED, below=3)
        assert await self.names(storage, location) == ["00000000000000000003.json"]

    async def test_what_is_gone_is_no_error(self, storage: Storage, location: str, plant: Plant):
        await storage.expired(location).remove(EXPIRED, below=3)
        plant(location, EXPIRED[-1], b"x")
        await storage.expired(location).remove(EXPIRED, below=3)
        assert await self.names(storage, location) == []

    @pytest.mark.parametrize("name", KEPT)
    async def test_nothing_else_can_be_deleted(
        self, storage: Storage, location: str, plant: Plant, name: str
    ):
        plant(location, EXPIRED[0], b"x")
        with pytest.raises(ValueError, match="is not deleted"):
            await storage.expired(location).remove([EXPIRED[0], name], below=3)
        assert await self.names(storage, location) == [EXPIRED[0]]

    async def test_sidecars(self, storage: Storage, location: str, plant: Plant):
        plant(location, f"_sidecars/{SIDECAR}", b"x")
        for other in ("other.txt", "._x.parquet", "x (1).parquet"):
            plant(location, f"_sidecars/{other}", b"x")
        plant(location, commit_name(0), b"x")
        expired = storage.expired(location)
        found = [entry.name async for batch in expired.sidecars() for entry in batch]
        assert found == [SIDECAR]
        for name in ("other.txt", "../00000000000000000000.json", f"x/{SIDECAR}", ".parquet", ""):
            with pytest.raises(ValueError, match="is not deleted"):
                await expired.remove_sidecars([SIDECAR, name])
        await expired.remove_sidecars([SIDECAR, SIDECAR])
        found = [entry.name async for batch in expired.sidecars() for entry in batch]
        assert found == []
        assert await self.names(storage, location) == [commit_name(0)]

    async def test_a_log_that_is_not_there_has_none(self, storage: Storage, location: str):
        expired = storage.expired(location)
        assert [entry async for batch in expired.sidecars() for entry in batch] == []
        await expired.remove([commit_name(0)], below=1)
