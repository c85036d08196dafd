"""The loop of an instance and the scheduler: virtual time, and processes that stop or die."""

import asyncio

import pytest

from tests.simulation.loop import InstanceLoop
from tests.simulation.schedule import NeverAtRest, Scheduler


@pytest.fixture
def scheduler():
    return Scheduler()


@pytest.fixture
def loop(scheduler):
    return InstanceLoop(scheduler)


def begun(loop, coroutine):
    task = loop.create_task(coroutine)
    loop.run_ready()
    return task


def ended(scheduler, task, limit_s=1_000.0):
    scheduler.run(until=task.done, limit_s=limit_s)
    return task.result()


def test_time_passes_by_what_is_waited_for(scheduler, loop):
    async def wait():
        await asyncio.sleep(100)
        await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))
        return asyncio.get_running_loop().time()

    assert ended(scheduler, begun(loop, wait())) == 102.0
    assert scheduler.now == 102.0


def test_a_timeout_is_one_of_virtual_time(scheduler, loop):
    async def impatient():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(100)

    ended(scheduler, begun(loop, impatient()))
    assert scheduler.now == 5.0


def test_what_is_ready_runs_in_its_order(scheduler, loop):
    order = []

    async def note(number):
        order.append(number)
        await asyncio.sleep(0)
        order.append(number)

    tasks = [loop.create_task(note(number)) for number in range(3)]
    loop.run_ready()
    assert all(task.done() for task in tasks)
    assert order == [0, 1, 2, 0, 1, 2]


def test_a_stopped_process_goes_on_where_it_was(scheduler, loop):
    async def wait():
        await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    task = begun(loop, wait())
    loop.stop_process()
    scheduler.after(30.0, loop.continue_process)
    assert ended(scheduler, task) == 30.0


def test_a_dead_process_never_does(scheduler, loop):
    done = []

    async def wait():
        try:
            await asyncio.sleep(1)
            done.append("on")
        finally:
            done.append("cleaned up")

    begun(loop, wait())
    loop.kill()
    assert not scheduler.run(until=lambda: bool(done), limit_s=100.0)
    assert done == []
    loop.forget()


def test_one_of_two_loops_can_wait_for_the_other(scheduler, loop):
    other = InstanceLoop(scheduler)
    asked = asyncio.Future(loop=loop)

    async def answer():
        await asyncio.sleep(1)
        loop.deliver(lambda: asked.set_result(asyncio.get_running_loop() is other))

    async def ask():
        return await asked, asyncio.get_running_loop() is loop

    begun(other, answer())
    assert ended(scheduler, begun(loop, ask())) == (True, True)


def test_a_world_without_an_end_is_told_of(scheduler):
    def again():
        scheduler.after(0.001, again)

    again()
    with pytest.raises(NeverAtRest):
        scheduler.run(until=lambda: False, limit_s=1e9)
