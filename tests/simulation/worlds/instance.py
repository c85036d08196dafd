"""One instance of the service in a world: the real use cases over the ports in memory.

An instance lives until it is killed; its next life has nothing of the one before but its name. A
request is a task of its loop, with the deadline of the edge; it is answered to whoever waits for
it.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.loop import InstanceLoop
from tests.simulation.ports.index import MemoryIndex
from tests.simulation.ports.network import InstanceNetwork
from tests.simulation.ports.server import Server
from tests.simulation.ports.store import NO_STORE_FAULTS, MemoryStorage, Store
from tests.simulation.ports.unit import NO_DATABASE_FAULTS
from tests.simulation.schedule import Scheduler
from tests.simulation.worlds.choices import Choices
from tests.simulation.worlds.plan import Plan
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.context import Context
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.limits import CommitLimits

WAREHOUSE = "s3://lake/tables"
DEADLINE_S = 30.0
EPOCH_MS = 1_790_000_000_000
"""The world's beginning, on every clock that is right."""
LOCATIONS = LocationPolicy(warehouse=WAREHOUSE)
PUBLISHING_INTERVAL_S = 20.0


@dataclass(slots=True)
class Clock:
    """An instance's own; `skew_ms` is how far it is off."""

    scheduler: Scheduler
    skew_ms: int = 0

    def now_ms(self) -> int:
        return EPOCH_MS + int(self.scheduler.now * 1000) + self.skew_ms


@dataclass(slots=True)
class Shared:
    """What all of a world have in common."""

    scheduler: Scheduler
    choices: Choices
    server: Server
    store: Store
    plan: Plan
    new_id: Callable[[], str]
    trace: list[str] | None = None
    """What happened, where somebody wants to be told."""

    def note(self, *what: object) -> None:
        """Something that happened, in parts: most worlds are told to nobody, and to make a text of
        a table's rows takes longer than to change them."""
        if self.trace is not None:
            parts = (repr(one) if isinstance(one, BaseException) else str(one) for one in what)
            self.trace.append(f"{self.scheduler.now:10.3f} {''.join(parts)[:150]}")


@dataclass(slots=True)
class _Life:
    loop: InstanceLoop
    network: InstanceNetwork
    context: Context
    publisher: Publisher
    index: MemoryIndex
    storage: MemoryStorage
    waiting: dict[int, Callable[[Any, BaseException | None], None]] = field(default_factory=dict)


class Instance:
    """`name` is its own in its world; `clock` is the machine's, which outlives it."""

    def __init__(self, shared: Shared, name: str) -> None:
        self._shared = shared
        self.name = name
        self.clock = Clock(shared.scheduler)
        self.lives: list[_Life] = []
        self._requests = 0
        self.start()

    @property
    def life(self) -> _Life:
        return self.lives[-1]

    @property
    def is_up(self) -> bool:
        return not self.life.loop.is_dead

    @property
    def is_asked(self) -> bool:
        """Whether a request to it has no answer yet."""
        return bool(self.life.waiting)

    @property
    def is_publishing(self) -> bool:
        """Whether it may yet put into the log what it has read in the index."""
        publisher = self.publisher
        return self.is_up and bool(publisher._tasks.keys() - publisher._resting)

    @property
    def context(self) -> Context:
        return self.life.context

    @property
    def publisher(self) -> Publisher:
        return self.life.publisher

    @property
    def defects(self) -> list[dict[str, Any]]:
        return [defect for life in self.lives for defect in life.loop.defects]

    def start(self) -> None:
        """A new life, as that of a process that was just started."""
        shared, plan = self._shared, self._shared.plan
        loop = InstanceLoop(shared.scheduler)
        network = InstanceNetwork(
            shared.scheduler,
            loop,
            shared.choices,
            name=self.name,
            temper=plan.temper,
            read_s=plan.read_s,
            note=shared.note,
        )
        index = MemoryIndex(shared.server, network, faults=plan.database, unsynced=plan.unsynced)
        storage = MemoryStorage(
            shared.store,
            network,
            faults=plan.store,
            clock_ms=lambda seconds: EPOCH_MS + int(seconds * 1000),
        )
        publisher = Publisher(
            index, storage, interval_s=PUBLISHING_INTERVAL_S, monotonic_s=loop.time
        )
        context = Context(
            index=index,
            storage=storage,
            locations=LOCATIONS,
            new_id=shared.new_id,
            monotonic_s=loop.time,
            now_ms=self.clock.now_ms,
            commit=CommitQueue(run_group).commit,
            wake_publisher=publisher.wake,
            windows=WindowCache(commits_a_table=0) if plan.checks_early else WindowCache(),
            limits=CommitLimits(locked_winner_bytes=0) if plan.checks_early else CommitLimits(),
        )
        self.lives.append(_Life(loop, network, context, publisher, index, storage))
        if plan.catalog_managed:
            loop.create_task(publisher.run_on(), name="publisher")
            loop.run_ready()

    def ask(
        self,
        request: Callable[[Context], Coroutine[Any, Any, Any]],
        answer: Callable[[Any, BaseException | None], None],
    ) -> None:
        """Have the use case run; `answer` is called with what it came to, or with an error where
        the instance dies before. Nobody listens where it is dead already."""
        life = self.life
        self._requests += 1
        number = self._requests
        if life.loop.is_dead:
            answer(None, ConnectionRefusedError("nobody listens"))
            return
        life.waiting[number] = answer

        def ended(task: asyncio.Task[Any]) -> None:
            told = life.waiting.pop(number, None)
            if told is None:
                return
            if task.cancelled():
                told(None, asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                told(None, error)
            else:
                told(task.result(), None)

        def begin() -> None:
            task = life.loop.create_task(_within_deadline(request(life.context)), name="request")
            task.add_done_callback(ended)

        life.loop.deliver(begin)

    def stop(self) -> None:
        self._shared.note(self.name, " is stopped")
        self.life.loop.stop_process()

    def go_on(self) -> None:
        self._shared.note(self.name, " goes on")
        self.life.loop.continue_process()

    def kill(self, *, noticed_s: float) -> None:
        """As by SIGKILL; the database notices after a while that its sessions are nobody's."""
        self._shared.note(self.name, " dies")
        life = self.life
        life.loop.kill()
        waiting, life.waiting = life.waiting, {}
        for told in waiting.values():
            told(None, ConnectionResetError("the instance died"))
        self._shared.scheduler.after(
            noticed_s,
            lambda: self._shared.server.end_some(lambda s: s.network is life.network),
        )

    def restart(self) -> None:
        """Start it, unless somebody has."""
        if not self.is_up:
            self.start()

    def heal(self) -> None:
        """All trouble is over: it runs, and whatever it asks for it gets."""
        self.restart()
        life = self.life
        life.network.temper = (1.0,)
        life.index.faults, life.index.unsynced = NO_DATABASE_FAULTS, 0.0
        life.storage.faults = NO_STORE_FAULTS
        self.clock.skew_ms = 0
        if life.loop.is_stopped:
            life.loop.continue_process()

    def end(self) -> None:
        """The world ends."""
        for life in self.lives:
            life.loop.kill()
            life.loop.forget()


async def _within_deadline(request: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(DEADLINE_S):
        return await request


def ids(seed: int) -> Callable[[], str]:
    """Made of the world's seed, so that a world that is repeated has the same."""
    dice = random.Random(seed)

    def new_id() -> str:
        text = f"{dice.getrandbits(128):032x}"
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"

    return new_id
