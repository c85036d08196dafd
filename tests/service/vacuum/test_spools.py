"""Spools: what lines take in memory, in open files and on the disk."""

import gc
import os
import resource
import tracemalloc
from contextlib import suppress

import pytest

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, StorageUnavailable, Unavailable
from tidegate_service.core.sharing import spools
from tidegate_service.core.sharing.spools import SortedSpool, Spool, SpoolRoom


@pytest.fixture
def most_held() -> int:
    return spools.HELD_BYTES


@pytest.fixture
def spool(most_held):
    spool = SortedSpool(who=None, most_held=most_held)
    yield spool
    spool.close()


def open_files() -> int:
    """But for connections, which clients of other tests close when they like."""
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{descriptor}").startswith("/")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("most_held", [1_000])
def test_lines_are_sorted_and_each_once_however_many_runs_they_are_in(spool):
    # What earlier tests have left is closed now, and not while it is counted.
    gc.collect()
    open_before = open_files()
    lines = [f"{n * 7919 % 3_000:04d}-\u00fc\U0001f30a\n" for n in range(9_000)]
    spool.add(lines)
    spool.add(["x" * 20_000])
    assert open_files() == open_before + 1
    assert list(spool.lines()) == sorted({*lines, "x" * 20_000})


@pytest.mark.slow
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


def test_a_spool_has_a_bound_for_which_less_is_asked():
    room = SpoolRoom(of_one=100)
    spool = Spool(who="a", room=room)
    spool.add(["a" * 90])
    with pytest.raises(Refused) as refused:
        spool.add(["a" * 3])
    assert refused.value.code is Code.TOO_LARGE
    spool.close()
    assert room.used == 0


def test_one_principal_leaves_a_part_of_the_disk_to_others_and_what_passes_is_waited_for():
    room = SpoolRoom(most=400)
    spools = [Spool(who=who, room=room) for who in ("a", "a", "b", None)]
    first, second, others, nobodys = spools
    try:
        first.add(["x" * 146])
        second.add(["x" * 146])
        with pytest.raises(Unavailable) as refused:
            second.add(["x"])
        assert refused.value.code is Code.BACKPRESSURE
        others.add(["x" * 71])
        nobodys.add(["x" * 21])
        with pytest.raises(Unavailable):
            nobodys.add([""])
        first.close()
        others.add(["x" * 71])
    finally:
        for spool in spools:
            spool.close()
    assert room.used == 0


def test_what_is_given_back_is_counted_once():
    room = SpoolRoom()
    spool = Spool(who="a", room=room)
    spool.add(["a"])
    assert room.used == 5
    spool.close()
    spool.close()
    assert room.used == 0
    with pytest.raises(ValueError, match="closed"):
        spool.add(["a"])
    assert room.used == 0


def test_a_full_disk_keeps_no_room():
    """What is left of the file's buffer is refused once more when the file is closed."""
    room = SpoolRoom()
    spool = Spool(who="a", room=room)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    spool.add(["a"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StorageUnavailable):
            spool.add(["x" * 50_000] * 10)
        spool.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert room.used == 0
