"""Manifests on a local disk."""

from pathlib import Path

import pytest

from tests.service.storage.manifests_contract import ManifestsContract
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


class TestContract(ManifestsContract):
    @pytest.fixture
    def seen(self, tmp_path: Path):
        return lambda path: (tmp_path / "main/air/flights" / path).read_bytes()

    @pytest.fixture
    def plant(self, tmp_path: Path):
        def plant(path: str, content: bytes) -> None:
            file = tmp_path / "main/air/flights" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

        return plant


async def test_a_link_is_not_followed(storage: ObjectStorage, location: str, tmp_path: Path):
    await storage.log(location).put_if_absent(0, b"{}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "main/air/flights/_symlink_format_manifest").symlink_to(elsewhere)
    with pytest.raises(StorageUnavailable):
        await storage.manifests(location).put("x=1", [])
    assert list(elsewhere.iterdir()) == []
