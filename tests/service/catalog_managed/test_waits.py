"""How long the oldest version that waits has waited, by the heads that were seen."""

import pytest

from tidegate_service.background.waits import APART_S, RECENT, Waits


@pytest.fixture
def waits() -> Waits:
    return Waits()


def test_nothing_seen_is_nothing_waited_for(waits: Waits):
    assert waits.waited_s(1, at_s=100.0) == 0.0


def test_a_version_waits_from_the_first_head_that_has_it(waits: Waits):
    waits.see(10, at_s=100.0)
    waits.see(20, at_s=101.0)
    assert waits.waited_s(5, at_s=102.0) == 2.0
    assert waits.waited_s(10, at_s=102.0) == 2.0
    assert waits.waited_s(11, at_s=102.5) == 1.5
    assert waits.waited_s(21, at_s=103.0) == 0.0


def test_heads_in_quick_succession_are_as_young_as_the_next_that_is_kept(waits: Waits):
    waits.see(10, at_s=100.0)
    waits.see(20, at_s=100.0 + APART_S / 2)
    waits.see(30, at_s=100.0 + APART_S)
    assert waits.waited_s(15, at_s=101.0) == pytest.approx(1.0 - APART_S)


def test_a_head_that_stands_is_as_old_as_it_was(waits: Waits):
    for at_s in range(100, 110):
        waits.see(10, at_s=float(at_s))
    assert waits.waited_s(10, at_s=110.0) == 10.0


def test_a_backlog_without_end_keeps_the_newest_heads(waits: Waits):
    for look in range(RECENT * 3):
        waits.see(look, at_s=look * APART_S)
    assert waits.waited_s(0, at_s=RECENT * 3 * APART_S) == pytest.approx(RECENT * APART_S)
