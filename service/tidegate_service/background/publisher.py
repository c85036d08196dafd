"""The publisher: keeps the logs of catalog-managed tables up with their index.

Every table that lags behind has a task of its own, so none waits for another but for one of the
slots of its store. They go in step, so that what they ask of the index is asked for many tables at
once; the more there are, the longer each rests between two batches. Now and then the index is asked
which tables lag, so nothing is lost when a process dies or a wake-up is missed; wake-ups only
shorten the wait.
"""

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from functools import partial

from tidegate_service.background.waits import Waits
from tidegate_service.core.catalog_managed.look import (
    LONG_LOOK_S,
    QUICK_LOOK_S,
    NotSeenInTime,
    Unseen,
    look,
    not_seen_within,
)
from tidegate_service.core.catalog_managed.publish import Batch, publish_batch, publish_table
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.observe.telemetry import SILENT, Telemetry
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord, TableState
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.core.sharing.turns import NestedTurns

logger = logging.getLogger("tidegate.publisher")

TABLES_AT_ONCE = 1000
"""What one query finds; in random order, so that every table has its turn."""
SLOTS = 16
"""Tables of one store that are published at a time; those of one catalog leave some to others,
and of these its schemas to each other. Who writes a catalog makes as many schemas as they like."""
ROWS_AT_ONCE = 4
"""Rows of tables that are read at a time."""
LOOKS = ((QUICK_LOOK_S, 4), (LONG_LOOK_S, 2))
"""Before a log is first written to, it is looked at: so many logs of one store at a time, for so
many seconds. One that takes longer is looked at anew among those that do. None of them has a slot,
and they are few: what a store shows of one log, it does not show of another meanwhile."""
RESTART_S = 1.0
LONGEST_REST_OF_FAILED_S = 5.0
"""A table whose batch failed rests as long as that took, up to so long: one that waits long for its
store would otherwise have a slot nearly all the time. One whose log could not be looked through in
time rests as long as that took."""
LOOK_RESTS = 4
LONGEST_LOOK_REST_S = 5.0
"""A look is followed by a rest of so many times its length, up to so long: it passes over every
quarantined table that has versions waiting. Where another process commits, nothing else finds what
there is to publish."""
RESTS = 4
LONGEST_REST_S = 0.5
LONG_S = 2.5
"""A table that is being committed to rests so many times as long as it was published for: commits
are seen by whoever asks the service, published or not. It rests the less the longer its oldest
version has waited, and not at all from so many seconds on, so the log stays within 10 s of the
table's head. No rest is longer than this: what takes long waits for its store, and costs the
commits little."""
PAUSE_S = 3.0
"""For so long a batch pauses the table's next proposals, at most, where its versions have waited
for `LONG_S`, and the batch before left some. Commits at full rate leave it so little of the
interpreter, and of a disk that is slow, that fewer versions are put than come. A store that hangs
holds nobody up for longer."""
REST_OF_ONE_S = 0.1
REST_OF_MANY_S = 1.0
"""How long a table rests at least whose batch took what waited: so long for each of those that are
being published, up to so long. A batch costs about the same of however many versions it is."""
BEAT_S = 0.25
"""Tables end their rests on a beat, those of one beat together: what they ask the index then is
asked for all of them at once."""


class Publisher:
    """Publishes until it is cancelled. `interval_s` bounds the wait between two looks.

    `store_of` says of a location which store it is in; no store takes another one's slots. `pauses`
    are those of the proposals that this process decides, `own` what it knows of logs.
    `monotonic_s` measures how old is what was read, and how long a look or a batch took; `sleep`
    rests after those. `looks` are for how long logs are looked at, and how many at a time.
    """

    def __init__(
        self,
        index: Index,
        storage: Storage,
        *,
        interval_s: float = 1.0,
        store_of: Callable[[str], str] = lambda location: "the only one",
        faults: FaultPoints = NO_FAULTS,
        telemetry: Telemetry = SILENT,
        monotonic_s: Callable[[], float] = elapsed_s,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        pauses: Pauses | None = None,
        own: OwnLogs | None = None,
        looks: Sequence[tuple[float, int]] = LOOKS,
    ) -> None:
        self._index = index
        self._storage = storage
        self._interval_s = interval_s
        self._store_of = store_of
        self._faults = faults
        self._telemetry = telemetry
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._pauses = Pauses() if pauses is None else pauses
        self._slots: defaultdict[str, NestedTurns] = defaultdict(lambda: NestedTurns(SLOTS))
        # For each length of them.
        self._looks: list[tuple[float, defaultdict[str, NestedTurns]]] = [
            (within_s, defaultdict(partial(NestedTurns, at_once))) for within_s, at_once in looks
        ]
        self._own = OwnLogs() if own is None else own
        self._reading = asyncio.Semaphore(ROWS_AT_ONCE)
        self._running = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._woken: set[str] = set()
        # Of those that have a task: the others wait after an error.
        self._kept: set[str] = set()
        self._resting: set[str] = set()
        # When their last batch was begun.
        self._begun_s: dict[str, float] = {}

    def wake(self, table_id: str) -> None:
        """Have the table looked at soon: it has something to publish."""
        if table_id in self._tasks:
            self._woken.add(table_id)
        elif self._running:
            self._start(table_id, None)

    async def run_on(self) -> None:
        """`run`, begun again after a defect: that must not end publishing for good. What it met is
        met again, and logged."""
        while True:
            try:
                await self.run()
            except Exception:
                logger.exception("the publisher met a defect and is started again")
                await asyncio.sleep(RESTART_S)

    async def run(self) -> None:
        """Look after look; a failure of one table or look is logged and tried again."""
        self._running = True
        try:
            while True:
                began_s = self._monotonic_s()
                try:
                    for table in await self._index.unpublished(limit=TABLES_AT_ONCE):
                        if table.id not in self._tasks:
                            self._start(table.id, table)
                        elif table.id in self._resting:
                            # Where commits are another process's, nobody else says so.
                            self._woken.add(table.id)
                except ServiceError as error:
                    logger.warning("looking for versions failed", extra={"reason": error.detail})
                rest_s = LOOK_RESTS * (self._monotonic_s() - began_s)
                await self._sleep(max(self._interval_s, min(rest_s, LONGEST_LOOK_REST_S)))
        finally:
            self._running = False
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # One that was cancelled before its first step has not removed itself.
            self._tasks.clear()

    async def round(self) -> int:
        """Publish what every lagging table has waiting; returns the number of versions."""
        tables = await self._index.unpublished(limit=TABLES_AT_ONCE)
        counts = await asyncio.gather(*(self._publish_all(table) for table in tables))
        return sum(counts)

    def _start(self, table_id: str, table: TableRecord | None) -> None:
        self._tasks[table_id] = asyncio.create_task(
            self._keep_publishing(table_id, table), name="publishing"
        )

    async def _keep_publishing(self, table_id: str, table: TableRecord | None) -> None:
        name = table_id if table is None else table.name
        try:
            if table is None:
                async with self._reading:
                    table = _told(await self._index.table(table_id))
            if table is not None and _lags(table):
                name = table.name
                await self._keep_up(table)
        except ServiceError as error:
            _tell(name, error)
            # However many commits there are to wake it up: what is broken is left alone.
            now_s = self._monotonic_s()
            took_s = now_s - self._begun_s.get(table_id, now_s)
            if not isinstance(error, NotSeenInTime):
                took_s = min(took_s, LONGEST_REST_OF_FAILED_S)
            await self._sleep(max(self._interval_s, took_s))
        except Exception:
            # A defect that one table brings out must not end the publishing of the others.
            logger.exception("publishing met a defect", extra={"table_id": table_id})
            await asyncio.sleep(self._interval_s)
        finally:
            self._tasks.pop(table_id, None)
            self._kept.discard(table_id)
            self._resting.discard(table_id)
            self._begun_s.pop(table_id, None)
            if self._running and table_id in self._woken:
                # By a commit that came after the row was read.
                self._woken.discard(table_id)
                self._start(table_id, None)

    async def _keep_up(self, table: TableRecord) -> None:
        """Publish until nothing waits and nobody has woken it up for a while."""
        now = asyncio.get_running_loop().time
        waits, waited_s, is_behind = Waits(), 0.0, False
        self._kept.add(table.id)
        while True:
            began = now()
            self._woken.discard(table.id)
            try:
                async with self._slot(table):
                    self._begun_s[table.id] = self._monotonic_s()
                    with self._pause(table, waited_s, is_behind=is_behind):
                        batch = await publish_batch(
                            self._index,
                            self._storage,
                            table,
                            own=self._own,
                            faults=self._faults,
                            monotonic_s=self._monotonic_s,
                        )
            except Unseen as unseen:
                if not await self._look(table, unseen):
                    return
                continue
            self._telemetry.published(batch.count)
            if batch.is_over:
                return
            is_behind = batch.behind > 0
            waits.see(batch.through + batch.behind, at_s=began)
            waited_s = waits.waited_s(batch.through + 1, at_s=now())
            if batch.behind and table.id not in self._woken:
                continue
            self._resting.add(table.id)
            await asyncio.sleep(self._rest_s(batch, now() - began, waited_s))
            self._resting.discard(table.id)
            if not batch.behind and table.id not in self._woken:
                return

    async def _look(self, table: TableRecord, unseen: Unseen) -> bool:
        """As `look`. What takes long is begun anew among those that do, so nobody waits for one."""
        log, store = self._storage.log(table.location), self._store_of(table.location)
        for within_s, turns in self._looks:
            async with turns[store].turn(*_catalog_and_schema(table)):
                self._begun_s[table.id] = self._monotonic_s()
                with suppress(NotSeenInTime):
                    return await look(
                        self._index, log, table, unseen, own=self._own, within_s=within_s
                    )
        raise not_seen_within(within_s)

    def _slot(self, table: TableRecord) -> AbstractAsyncContextManager[None]:
        return self._slots[self._store_of(table.location)].turn(*_catalog_and_schema(table))

    def _pause(
        self, table: TableRecord, waited_s: float, *, is_behind: bool
    ) -> AbstractContextManager[None]:
        """`is_behind`: the batch before left some. What is late for other tables' sake is not made
        later by commits."""
        is_paused = is_behind and waited_s > LONG_S
        return self._pauses.pausing(table.id, for_s=PAUSE_S) if is_paused else nullcontext()

    def _rest_s(self, batch: Batch, took_s: float, waited_s: float) -> float:
        """As long as commits come, they have most of the time, unless the log falls behind:
        `waited_s` is how long the oldest version that waits has."""
        times = RESTS * max(0.0, 1 - waited_s / LONG_S)
        rest_s = min(LONGEST_REST_S, times * took_s)
        if batch.behind > batch.count:
            # Whoever takes less at a time than comes meanwhile would never catch up.
            return rest_s
        now = asyncio.get_running_loop().time()
        until = now + max(rest_s, min(REST_OF_MANY_S, REST_OF_ONE_S * len(self._kept)))
        if len(self._kept) > 1:
            until = math.ceil(until / BEAT_S) * BEAT_S
        return until - now

    async def _publish_all(self, table: TableRecord) -> int:
        """How many versions became published here; none where that failed."""
        try:
            async with self._slot(table):
                count = await publish_table(
                    self._index,
                    self._storage,
                    table,
                    own=self._own,
                    faults=self._faults,
                    monotonic_s=self._monotonic_s,
                )
        except ServiceError as error:
            _tell(table.name, error)
            return 0
        self._telemetry.published(count)
        return count


def _tell(table: str, error: ServiceError) -> None:
    logger.warning(
        "publishing failed",
        extra={"table": table, "code": str(error.code), "reason": error.detail},
    )


def _catalog_and_schema(table: TableRecord) -> tuple[str, str]:
    catalog, _, rest = table.name.lower().partition(".")
    schema, _, _ = rest.partition(".")
    return catalog, schema


def _told(table: TableRecord | None) -> TableRecord | None:
    """As `Index.unpublished` tells of it: it is kept for as long as it lags."""
    return None if table is None else replace(table, protocol=None, metadata=None)


def _lags(table: TableRecord) -> bool:
    return (
        table.catalog_managed
        and table.state is TableState.ACTIVE
        and table.published_version < table.latest_version
    )
