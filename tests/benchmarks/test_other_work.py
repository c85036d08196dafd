"""Work of a known size beside a loop."""

import time

from benchmarks.load.other_work import other_work


def test_no_more_is_begun_than_may_be_left():
    """Each piece takes its CPU time, which no clock can show to be less."""
    started = time.monotonic()
    with other_work(20_000, most=1) as work:
        for _ in range(10):
            work.begin()
        assert time.monotonic() - started > 0.2


def test_what_may_be_left_is_not_waited_for():
    with other_work(60_000_000, most=10) as work:
        started = time.monotonic()
        for _ in range(9):
            work.begin()
        assert time.monotonic() - started < 30
