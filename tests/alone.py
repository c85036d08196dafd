"""Tests that have the machine to themselves: those that measure how long something takes.

Where several workers run tests side by side, one marked `alone` waits for the tests that the others
are at, and theirs wait for it. A test may also ask for the machine when it has begun, because what
it measured in company told nothing.
"""

import fcntl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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


class _Turn:
    """A running test's locks on the floor, which it shares or has to itself, and on the gate, which
    whoever waits to be alone keeps, so that no test comes in meanwhile."""

    def __init__(self, gate: IO[str], floor: IO[str]) -> None:
        self._gate = gate
        self._floor = floor

    def take(self, *, alone: bool) -> None:
        # Two tests that each wait for the other to leave the floor would wait for ever.
        fcntl.flock(self._floor, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        fcntl.flock(self._floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._gate, fcntl.LOCK_UN)


_turns: list[_Turn] = []
"""Of the test that this worker runs; none where one process runs all tests."""


def alone_from_now_on() -> None:
    """Wait until no other worker runs a test; none begins one until the running test has ended."""
    for turn in _turns:
        turn.take(alone=True)


@contextmanager
def _turn(folder: Path, *, alone: bool) -> Iterator[None]:
    with (folder / "gate").open("w") as gate, (folder / "floor").open("w") as floor:
        turn = _Turn(gate, floor)
        turn.take(alone=alone)
        _turns.append(turn)
        try:
            yield
        finally:
            _turns.remove(turn)
