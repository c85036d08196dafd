"""Spools: their room on the disk, and whose it is."""

import resource

import pytest

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, StorageUnavailable, Unavailable
from tidegate_service.core.sharing.spools import Spool, SpoolRoom


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
