"""The memory that large bodies share: who is refused is not in the way of who is not."""

import pytest

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.room import FREE_BYTES, Claim, Room, room_for_bodies
from tidegate_service.core.errors import Refused, Unavailable


def test_who_is_refused_leaves_the_room_to_the_other():
    room = Room(room_for_bodies(10 * FREE_BYTES))
    first, second = Claim(room), Claim(room)
    first.grow(6 * FREE_BYTES)
    second.grow(4 * FREE_BYTES)
    with pytest.raises(Unavailable) as refusal:
        second.grow(5 * FREE_BYTES)
    assert refusal.value.code is Code.BACKPRESSURE
    # At once, and not when the refused request has been answered.
    first.grow(10 * FREE_BYTES)
    second.give_back()
    assert room.shares.taken == 10 * FREE_BYTES
    first.give_back()
    assert room.shares.taken == 0


def test_what_there_is_no_room_for_is_refused_for_ever():
    room = Room(room_for_bodies(10 * FREE_BYTES))
    with pytest.raises(Refused) as refusal:
        Claim(room).grow(10 * FREE_BYTES + 1)
    assert refusal.value.code is Code.TOO_LARGE
    assert room.shares.taken == 0


def test_one_caller_leaves_room_to_others():
    shares = room_for_bodies(16 * FREE_BYTES)
    flood = [Claim(Room(shares, "flood")) for _ in range(10)]
    for claim in flood[:6]:
        claim.grow(2 * FREE_BYTES)
    with pytest.raises(Unavailable) as refusal:
        flood[6].grow(2 * FREE_BYTES)
    assert refusal.value.code is Code.BACKPRESSURE
    Claim(Room(shares, "other")).grow(3 * FREE_BYTES)
    flood[0].give_back()
    assert shares.taken == 13 * FREE_BYTES


def test_what_one_caller_may_never_have_is_refused_for_ever():
    shares = room_for_bodies(16 * FREE_BYTES)
    with pytest.raises(Refused) as refusal:
        Claim(Room(shares, "one")).grow(12 * FREE_BYTES + 1)
    assert refusal.value.code is Code.TOO_LARGE
    Claim(Room(shares, "one")).grow(12 * FREE_BYTES)
    shares = room_for_bodies(16 * FREE_BYTES)
    Claim(Room(shares)).grow(16 * FREE_BYTES)
