"""What checkpoint files may become goes by what they take where they are stored."""

import os
from pathlib import Path

import pytest

from tests.service.tables.delta_logs import DeltaLog, line
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.limits import CheckpointLimits, StorageLimits

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


def stored_in(folder: Path, log: DeltaLog, limits: CheckpointLimits) -> Log:
    storage = ObjectStorage(folder.as_uri(), limits=StorageLimits(checkpoints=limits))
    return storage.log(log.location)


@pytest.mark.parametrize("hole", [0, 1024**3])
async def test_a_hole_is_no_part_of_a_file(tmp_path, hole):
    log = DeltaLog(tmp_path / "t")
    name = with_a_hole(log, hole)
    stored = stored_in(tmp_path, log, CheckpointLimits(free_bytes=0, ratio=10))
    with pytest.raises(UnreadableFile, match="what is in it is more than 10 times"):
        async for _ in stored.checkpoint_actions(name):
            pass


async def test_what_is_stored_is(tmp_path):
    log = DeltaLog(tmp_path / "t")
    stored = stored_in(tmp_path, log, CheckpointLimits(free_bytes=0))
    name = with_a_hole(log, 0)
    found = [action async for batch in stored.checkpoint_actions(name) for action in batch]
    assert len(found) == len(ROWS)


def test_no_length_grants_more_than_all_of_them_may_be():
    budget = Budget(CheckpointLimits(free_bytes=1000, bytes=1500))
    for _ in range(3):
        budget.grant(4)
    budget.take(1500)
    with pytest.raises(TooLarge, match="more than 100 times as large"):
        budget.take(1)
