"""Many deadlines on one timer: each falls due in its time, and none that has ended."""

import asyncio

import pytest

from tidegate_service.api.http.deadlines import Deadlines

pytestmark = pytest.mark.anyio

S = 0.05


class Watch:
    """Notes who was called, and how long after the watch began."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.called: dict[str, float] = {}
        self._last = asyncio.Event()

    def of(self, who: str):
        def overdue() -> None:
            assert who not in self.called
            self.called[who] = self._loop.time() - self._began
            if who == "last":
                self._last.set()

        return overdue

    async def until_last(self) -> None:
        async with asyncio.timeout(20):
            await self._last.wait()


async def test_each_is_called_once_and_not_before_its_time():
    deadlines, watch = Deadlines(S), Watch()
    for who in ("a", "b", "last"):
        deadlines.begin(who, watch.of(who))
    await watch.until_last()
    assert list(watch.called) == ["a", "b", "last"]
    assert all(after >= S - 0.002 for after in watch.called.values())


async def test_one_that_ended_is_not_called():
    deadlines, watch = Deadlines(S), Watch()
    for who in ("first", "a", "last"):
        deadlines.begin(who, watch.of(who))
    deadlines.end("first")
    deadlines.end("a")
    deadlines.end("never begun")
    await watch.until_last()
    assert list(watch.called) == ["last"]


async def test_one_that_begins_anew_has_its_whole_time_again():
    deadlines, watch, other = Deadlines(S), Watch(), Watch()
    deadlines.begin("last", watch.of("last"))
    deadlines.begin("other", other.of("last"))
    # The other's time being over is the signal; no clock of the test's own.
    restarted = Deadlines(S / 2)
    restarted.begin("half", lambda: deadlines.begin("last", watch.of("last")))
    await watch.until_last()
    assert watch.called["last"] >= 1.5 * S - 0.004
    assert other.called["last"] < watch.called["last"]


async def test_they_go_on_after_all_have_ended():
    deadlines, watch = Deadlines(S), Watch()
    deadlines.begin("a", watch.of("a"))
    deadlines.end("a")
    deadlines.begin("last", watch.of("last"))
    await watch.until_last()
    deadlines.begin("b", watch.of("b"))
    second = Watch()
    deadlines.begin("last", second.of("last"))
    await second.until_last()
    assert list(watch.called) == ["last", "b"]


async def test_an_overdue_one_may_begin_another():
    deadlines, watch = Deadlines(S), Watch()
    deadlines.begin("a", lambda: deadlines.begin("last", watch.of("last")))
    await watch.until_last()
    assert watch.called["last"] >= 2 * S - 0.004


def test_another_loop_has_timers_of_its_own():
    deadlines = Deadlines(S)

    async def abandoned() -> None:
        deadlines.begin("a", lambda: None)

    async def kept() -> None:
        watch = Watch()
        deadlines.begin("last", watch.of("last"))
        await watch.until_last()
        assert list(watch.called) == ["last"]

    asyncio.run(abandoned())
    asyncio.run(kept())


async def test_a_call_that_fails_keeps_no_other_from_its_own():
    deadlines, watch = Deadlines(S), Watch()
    told: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(context["exception"]))

    def fails() -> None:
        raise OSError("closed")

    deadlines.begin("first", fails)
    deadlines.begin("last", watch.of("last"))
    await watch.until_last()
    assert [str(error) for error in told] == ["closed"]


async def test_who_is_ended_by_the_call_for_another_one_is_not_called():
    deadlines, watch = Deadlines(S), Watch()
    deadlines.begin("first", lambda: deadlines.end("second"))
    deadlines.begin("second", watch.of("second"))
    deadlines.begin("last", watch.of("last"))
    await watch.until_last()
    assert set(watch.called) == {"last"}
