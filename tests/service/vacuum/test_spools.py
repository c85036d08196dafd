"""Spools: what lines take in memory, in open files and on the disk."""

import gc
import os
import tracemalloc

import pytest

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused
from tidegate_service.core.sharing import spools
from tidegate_service.core.sharing.spools import SortedSpool, Spool, SpoolRoom


@pytest.fixture
def most_held() -> int:
    return spools.HELD_BYTES


@pytest.fixture
def spool(most_held):
    spool = SortedSpool(most_held=most_held)
    yield spool
    spool.close()


@pytest.mark.parametrize("most_held", [1_000])
def test_lines_are_sorted_and_each_once_however_many_runs_they_are_in(spool):
    # What earlier tests have left is closed now, and not while it is counted.
    gc.collect()
    open_before = len(os.listdir("/proc/self/fd"))
    lines = [f"{n * 7919 % 3_000:04d}-\u00fc\U0001f30a\n" for n in range(9_000)]
    spool.add(lines)
    spool.add(["x" * 20_000])
    assert len(os.listdir("/proc/self/fd")) == open_before + 1
    assert list(spool.lines()) == sorted({*lines, "x" * 20_000})


def test_long_lines_are_held_by_their_bytes(spool):
    tracemalloc.start()
    try:
        for n in range(10_000):
            spool.add([f"{n:04096d}"])
        assert tracemalloc.get_traced_memory()[1] < 3 * spools.HELD_BYTES
        assert spool.held_bytes < spools.HELD_BYTES
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in spool.lines()) == 10_000


def test_the_disk_has_a_bound_for_one_and_for_all():
    room = SpoolRoom(of_one=100, most=150)
    first, second = Spool(room), Spool(room)
    try:
        first.add(["a" * 90])
        with pytest.raises(Refused) as refused:
            second.add(["a" * 60])
        assert refused.value.code is Code.TOO_LARGE
        first.close()
        with pytest.raises(Refused):
            second.add(["a" * 60])
        second.close()
        third = Spool(room)
        third.add(["a" * 90])
        third.close()
    finally:
        first.close()
        second.close()


def test_what_is_given_back_is_counted_once():
    room = SpoolRoom()
    spool = Spool(room)
    spool.add(["a"])
    assert room.used == 5
    spool.close()
    spool.close()
    assert room.used == 0
    with pytest.raises(ValueError, match="closed"):
        spool.add(["a"])
    assert room.used == 0
