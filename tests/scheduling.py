"""Which worker runs a file, and when.

Files that share what is slow to start go to one worker. Long ones are begun first.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

VECTORS = "tests/spark/dml/"
TOGETHER = ("tests/interop/", VECTORS, "tests/spark/")
"""Most tests of each folder need the same Spark. Two of ours beside each other do no more in a
minute than one does that is warm; but one alone would end long after the other workers, and so
would one for the vectors on both kinds of table."""
LONG = (
    "tests/spark/",
    "tests/service/machine/",
    "tests/interop/",
    "tests/chaos/",
    "tests/simulation/test_simulation.py",
    "tests/model/",
    "tests/service/process/",
    "tests/service/catalog_managed/",
)
"""The longest first: were one begun last, the other workers would end long before it."""
SHORT = "tests/protocol/"
"""Files that take next to no time fill what is left."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: "Producer"
) -> "LoadFileScheduling | None":
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class InOrder(LoadFileScheduling):
        """By file, in the order in which they were collected; some files are one."""

        def _split_scope(self, nodeid: str) -> str:
            scope = next((each for each in TOGETHER if nodeid.startswith(each)), file_of(nodeid))
            is_split = scope == VECTORS and config.getoption("vectors") == "twice"
            return scope + nodeid.rpartition("-")[2] if is_split else scope

    config.option.loadscopereorder = False
    return InOrder(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The scheduler takes files in this order, which has to be the same in each worker."""
    if not hasattr(config, "workerinput"):
        return
    items.sort(key=lambda item: _turn(file_of(item.nodeid)))


def _turn(file: str) -> int:
    if file.startswith(SHORT):
        return len(LONG) + 1
    return next((n for n, each in enumerate(LONG) if file.startswith(each)), len(LONG))


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
