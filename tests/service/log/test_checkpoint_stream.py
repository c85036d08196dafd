"""What is held of a checkpoint while its sidecars are read has a bound."""

import json

import pytest

from tidegate_protocol.log.actions import UnknownAction
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.log.files.checkpoint_stream import MOST_NAME_BYTES, snapshot_actions
from tidegate_service.core.ports.store.storage import UnreadableFile

pytestmark = pytest.mark.anyio

MAIN = "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
CHECKPOINT = Checkpoint(version=2, files=(MAIN,))
LOCATION = "file:///lake/" + "/".join(["f" * 99] * 7)
AT_ONCE = 3


def sidecar(path: str) -> UnknownAction:
    return UnknownAction(kind="sidecar", raw=json.dumps({"sidecar": {"path": path}}).encode())


class Naming:
    """A log whose checkpoint names sidecars, `AT_ONCE` at a time. `opened` are the files that are
    asked for, and `told` counts the names that were."""

    def __init__(self, *paths: str) -> None:
        self.opened: list[str] = []
        self.told = 0
        self._paths = paths

    async def checkpoint_actions(self, name: str):
        self.opened.append(name)
        if name != MAIN:
            return
        for first in range(0, len(self._paths), AT_ONCE):
            some = self._paths[first : first + AT_ONCE]
            self.told += len(some)
            yield [sidecar(path) for path in some]


async def refusal(log: Naming, **limits: int) -> str:
    with pytest.raises(UnreadableFile) as refused:
        async for _ in snapshot_actions(log, CHECKPOINT, location=LOCATION, **limits):
            pass
    return str(refused.value)


async def test_so_many_sidecars_and_no_more():
    names = [f"{number}.parquet" for number in range(100)]
    few = Naming(*names[:4])
    assert "has 0 protocol actions" in await refusal(few, most_sidecars=4)
    assert few.opened == [MAIN, *(f"_sidecars/{name}" for name in names[:4])]
    many = Naming(*names)
    assert "names more than 4 sidecars" in await refusal(many, most_sidecars=4)
    assert (many.opened, many.told) == ([MAIN], 2 * AT_ONCE)


@pytest.mark.parametrize("folder", ["", f"{LOCATION}/_delta_log/_sidecars/"])
async def test_a_name_is_as_long_as_those_of_file_systems(folder):
    longest = "\u00e9" * (MOST_NAME_BYTES // 2) + "x"
    assert "has 0 protocol actions" in await refusal(Naming(folder + longest))
    for longer in (longest + "x", "x" * 200_000):
        log = Naming(folder + longer)
        assert "bytes; at most 255 are expected" in await refusal(log)
        assert log.opened == [MAIN]


async def test_one_that_is_named_twice_is_not_read_twice():
    log = Naming("a.parquet", "b", "c", "d", f"{LOCATION}/_delta_log/_sidecars/a%2Eparquet")
    assert "names the sidecar 'a.parquet' twice" in await refusal(log)
    assert log.opened == [MAIN]
