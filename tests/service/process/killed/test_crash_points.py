"""kill -9 at every numbered step, before and after it, on both kinds of table.

The same request is then sent to another instance and to the restarted one: one landing, one
answer, nothing lost (promises I1 to I7). `make chaos` does the same ten times over.
"""

import pytest
from deltalake import DeltaTable

from tests.service.process.killed.crashing import Pair, Table, crash_and_retry
from tidegate_service.core.observe.faults import Side, Step

CELLS = [
    pytest.param(step, side, id=f"{side.value}-{step.value}") for step in Step for side in Side
]


@pytest.fixture(scope="module")
def managed(two: Pair) -> Table:
    return two.create(catalog_managed=True)


@pytest.fixture(scope="module")
def plain(two: Pair) -> Table:
    return two.create(catalog_managed=False)


@pytest.mark.parametrize(("step", "side"), CELLS)
def test_one_landing_and_one_answer(two, managed, plain, step, side):
    table = plain if step.startswith("O") else managed
    crash_and_retry(two, table, step, side)


def test_what_is_left_is_a_delta_table(two, plain):
    read = DeltaTable(str(plain.folder))
    head = plain.caught_up()
    assert (read.version(), len(read.file_uris())) == (head["latest_version"], head["num_files"])
