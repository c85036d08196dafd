"""The memory that large bodies share: who is refused is not in the way of who is not."""

import pytest

from tidegate_protocol.problems import Code
from tidegate_service.api.room import FREE_BYTES, Claim, Room
from tidegate_service.core.errors import Refused, Unavailable


def test_who_is_refused_leaves_the_room_to_the_other():
    room = Room(10 * FREE_BYTES)
    first, second = Claim(room), Claim(room)
    first.grow(6 * FREE_BYTES)
    second.grow(4 * FREE_BYTES)
    with pytest.raises(Unavailable) as refusal:
        second.grow(5 * FREE_BYTES)
    assert refusal.value.code is Code.BACKPRESSURE
    # At once, and not when the refused request has been answered.
    first.grow(10 * FREE_BYTES)
    second.give_back()
    assert room.taken == 10 * FREE_BYTES
    first.give_back()
    assert room.taken == 0


def test_what_there_is_no_room_for_is_refused_for_ever():
    room = Room(10 * FREE_BYTES)
    with pytest.raises(Refused) as refusal:
        Claim(room).grow(10 * FREE_BYTES + 1)
    assert refusal.value.code is Code.TOO_LARGE
    assert room.taken == 0
