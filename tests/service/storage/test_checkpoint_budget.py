"""What checkpoint files may become goes by what they take where they are stored."""

import io
import os

import pytest

from tests.service.tables.delta_logs import DeltaLog, line
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.checkpoints import reading as module
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.reading import Budget

pytestmark = pytest.mark.anyio

ROWS = [line(Txn(app_id="a" * 1000, version=number)) for number in range(200)]


def with_a_hole(log: DeltaLog, hole: int) -> str:
    """A checkpoint of `ROWS` that has so many bytes before its footer that nobody wrote."""
    path = log.checkpoint(0, ROWS)
    content = path.read_bytes()
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    with path.open("wb") as file:
        file.write(content[:-footer])
        file.seek(hole, os.SEEK_CUR)
        file.write(content[-footer:])
    return path.name


@pytest.mark.parametrize("hole", [0, 1024**3])
async def test_a_hole_is_no_part_of_a_file(tmp_path, monkeypatch, hole):
    monkeypatch.setattr(module, "FREE_BYTES", 0)
    monkeypatch.setattr(module, "MAX_RATIO", 10)
    log = DeltaLog(tmp_path / "t")
    name = with_a_hole(log, hole)
    stored = ObjectStorage(warehouse=tmp_path.as_uri()).log(log.location)
    with pytest.raises(UnreadableFile, match="what is in it is more than 10 times"):
        async for _ in stored.checkpoint_actions(name):
            pass


async def test_what_is_stored_is(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FREE_BYTES", 0)
    log = DeltaLog(tmp_path / "t")
    stored = ObjectStorage(warehouse=tmp_path.as_uri()).log(log.location)
    name = with_a_hole(log, 0)
    found = [action async for batch in stored.checkpoint_actions(name) for action in batch]
    assert len(found) == len(ROWS)


def test_what_is_no_file_of_the_system_is_as_long_as_it_says(monkeypatch):
    monkeypatch.setattr(module, "FREE_BYTES", 0)
    monkeypatch.setattr(module, "MAX_RATIO", 1)
    text = b'{"txn":{"appId":"a","version":1}}\n' * 9
    (found,) = module._steps(lambda _: io.BytesIO(text), "a.json", Budget())
    assert found is not None
    assert len(found) == 9


def test_no_length_grants_more_than_all_of_them_may_be(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", module.FREE_BYTES + 500)
    budget = Budget()
    for _ in range(3):
        budget.grant(4)
    budget.take(module.FREE_BYTES + 500)
    with pytest.raises(TooLarge, match="more than 100 times as large"):
        budget.take(1)
