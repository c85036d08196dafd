"""Tests that have the machine to themselves: those that measure how long something takes.

Where several workers run tests side by side, one marked `alone` waits for the tests that the others
are at, and theirs wait for it.
"""

import fcntl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: it measures time; no other worker runs a test then")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not hasattr(item.config, "workerinput"):
        return (yield)
    # Of a worker, the folder above is the session's, which all of them share.
    factory = item.config._tmp_path_factory
    folder = factory.getbasetemp().parent
    with _turn(folder, alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def _turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Who waits to be alone keeps the gate, so that no test comes in meanwhile."""
    with (folder / "gate").open("w") as gate, (folder / "floor").open("w") as floor:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
