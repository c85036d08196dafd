"""Storage on a local disk, and a table's place in it."""

from pathlib import Path

import pytest

from tidegate_service.storage import ObjectStorage


@pytest.fixture
def storage(tmp_path: Path) -> ObjectStorage:
    return ObjectStorage(tmp_path.as_uri())


@pytest.fixture
def location(tmp_path: Path) -> str:
    return f"{tmp_path.as_uri()}/main/air/flights"
