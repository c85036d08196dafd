"""The memory that large bodies share: who is refused is not in the way of who is not."""

import pytest

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.request.body_memory import (
    FREE_BYTES,
    BodyMemory,
    Reservation,
    memory_for_bodies,
)
from tidegate_service.core.errors import Refused, Unavailable


def test_what_there_is_no_room_for_is_refused_for_ever():
    memory = BodyMemory(memory_for_bodies(10 * FREE_BYTES))
    with pytest.raises(Refused) as refusal:
        Reservation(memory).grow(10 * FREE_BYTES + 1)
    assert refusal.value.code is Code.TOO_LARGE
    assert memory.shares.taken == 0


def test_one_caller_leaves_room_to_others():
    shares = memory_for_bodies(16 * FREE_BYTES)
    flood = [Reservation(BodyMemory(shares, "flood")) for _ in range(10)]
    for reservation in flood[:6]:
        reservation.grow(2 * FREE_BYTES)
    with pytest.raises(Unavailable) as refusal:
        flood[6].grow(2 * FREE_BYTES)
    assert refusal.value.code is Code.BACKPRESSURE
    Reservation(BodyMemory(shares, "other")).grow(3 * FREE_BYTES)
    flood[0].give_back()
    assert shares.taken == 13 * FREE_BYTES


def test_what_one_caller_may_never_have_is_refused_for_ever():
    shares = memory_for_bodies(16 * FREE_BYTES)
    with pytest.raises(Refused) as refusal:
        Reservation(BodyMemory(shares, "one")).grow(12 * FREE_BYTES + 1)
    assert refusal.value.code is Code.TOO_LARGE
    Reservation(BodyMemory(shares, "one")).grow(12 * FREE_BYTES)
    shares = memory_for_bodies(16 * FREE_BYTES)
    Reservation(BodyMemory(shares)).grow(16 * FREE_BYTES)
