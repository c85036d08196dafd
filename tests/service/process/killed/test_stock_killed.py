"""kill -9 at numbered steps while a stock client's commit is at work.

The client sends the same request again, as it does after a lost connection, to another instance and
to the successor: one landing, one answer, the bytes that it staged.
"""

from contextlib import suppress

import httpx
import pytest

from tests.service.process.instance_process import Deed
from tests.service.process.killed.crashing import Pair
from tests.service.unity_catalog.stock import Staged, StockClient, StockTable
from tidegate_service.core.observe.faults import Side, Step

POINTS = ("before-M5", "before-M6", "after-M6", "after-M7", "after-M8", "after-M10")
"""Around the INSERT, the COMMIT, the answer, the PUT and the deletion of the bytes from the index.
`test_crash_points.py` has every point of the same section."""
CELLS = [
    pytest.param(step, side, id=name)
    for step in Step
    for side in Side
    if (name := f"{side.value}-{step.value}") in POINTS
]


@pytest.fixture(scope="module")
def victims(two: Pair) -> StockTable:
    """A table as a client of the victim knows it."""
    return StockClient(two.victim.url).create()


@pytest.fixture
def survivors(two: Pair, victims: StockTable) -> StockTable:
    """The same as a client of the survivor."""
    client = StockClient(two.survivor.url)
    return StockTable(client, victims.name, victims.table_id, victims.location)


@pytest.mark.parametrize(("step", "side"), CELLS)
def test_a_commit_lands_once_and_as_it_was_staged(two, victims, survivors, step, side):
    version = victims.load()["latest-table-version"] + 1
    staged = victims.stage(version)
    two.victim.arm(step, side, Deed.KILL)
    with suppress(httpx.TransportError):
        answer = victims.propose(staged)
        assert answer.status_code == 200, answer.text
    assert two.victim.ended() == -9

    check(survivors, staged, version)
    two.restart()
    check(victims, staged, version)
    rival = survivors.propose(survivors.stage(version))
    assert rival.status_code == 409, rival.text
    survivors.commit(version + 1)


def check(table: StockTable, staged: Staged, version: int) -> None:
    """That the commit is its version, told as often as it is asked for, and published."""
    answer = table.propose(staged)
    assert answer.status_code == 200, answer.text
    loaded = table.load()
    assert (loaded["latest-table-version"], loaded["commits"]) == (version, [])
    assert table.version(version) == (table.log / "_staged_commits" / staged.name).read_bytes()
