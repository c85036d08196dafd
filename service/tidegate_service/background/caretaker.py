"""The caretaker: does the upkeep of tables' logs that no commit waits for.

It looks over the tables, some at a time, for what is due, and does one thing after the other.
After each it rests, so that it has a share of the instance's time and commits have the others.
Schemas have their turns, however many tables one has, and one whose work takes long rests by
itself. Compacted files bridge just these rests, so they have a share of their own; checkpoints that
take most of their parts over make them needless, and have that share. What is due is a
matter of state, so nothing is lost when a process dies. A claim in the index keeps two instances
from the same work.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tidegate_service.background.due_upkeep import DueUpkeep, rest_after
from tidegate_service.core.errors import ServiceError, StorageUnavailable
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.telemetry import (
    SILENT,
    Telemetry,
    UpkeepKind,
    UpkeepOutcome,
)
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.ports.upkeep.upkeep import Done, Due, UpkeepIndex, UpkeepRecord
from tidegate_service.core.upkeep.job import Job

logger = logging.getLogger("tidegate.upkeep")

FIRST_BACKOFF_S = 5.0
LONGEST_BACKOFF_S = 3600.0
LEAST_S = 0.1
RESTART_S = 1.0
URGENT_SHARE = 0.5
"""Of the time, for what is urgent in one schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaretakerLimits:
    """A look is at `tables`. A claim lasts `claim_s` where nobody renews it, so what a dead process
    has claimed rests so long; it is renewed each `renew_s`.

    A run may take `run_s`, and `run_s_a_file` more for each live file of its table. All rest for
    `rest_s` at most after one run; its schema rests for all that the share says.

    A checkpoint that is `taken_over` commits behind one whose parts can be taken over is urgent: it
    costs what these commits did, and not the table.
    """

    tables: int = 2000
    claim_s: float = 60.0
    renew_s: float = 20.0
    run_s: float = 120.0
    run_s_a_file: float = 0.0001
    rest_s: float = 60.0
    taken_over: int = 1_000


USUAL = CaretakerLimits()


def new_name() -> str:
    """That no other caretaker has."""
    return str(uuid.uuid4())


class _Pace(Enum):
    """What waits for what. `USUAL` rests after anything usual. The others may be done meanwhile:
    `URGENT` rests after what was urgent in its schema, and `BRIDGING` after any other such: what is
    done because a checkpoint is long in coming, and checkpoints that cost what changed."""

    USUAL = "usual"
    URGENT = "urgent"
    BRIDGING = "bridging"


class Caretaker:
    """Works until it is cancelled. `interval_s` bounds the wait between two looks, `share` is the
    part of the time that it may be at work (above 0, up to 1).

    A checkpoint of a table that has `most_behind` versions after its last one is urgent, one that
    takes parts over after `limits.taken_over`. It waits for no rest but the one after another
    urgent checkpoint of its schema, which is as long as that checkpoint took. `monotonic_s`
    measures how long work takes. Work is claimed under `name` (`new_name`).

    Of those that work `beside` one another, `at_once` of them, one at a time works for a schema,
    which rests from all of them; they have the share together.
    """

    def __init__(
        self,
        index: Index,
        upkeep: UpkeepIndex,
        jobs: Sequence[Job],
        *,
        share: float,
        interval_s: float = 1.0,
        most_behind: int = 20_000,
        telemetry: Telemetry = SILENT,
        monotonic_s: Callable[[], float] = elapsed_s,
        name: str | None = None,
        limits: CaretakerLimits = USUAL,
        beside: "Caretaker | None" = None,
        at_once: int = 1,
    ) -> None:
        self._index = index
        self._upkeep = upkeep
        self._jobs = {job.kind: job for job in jobs}
        self._share = share
        self._own_share = share / at_once
        self._interval_s = interval_s
        self._most_behind = most_behind
        self._telemetry = telemetry
        self._monotonic_s = monotonic_s
        self._name = new_name() if name is None else name
        self._limits = limits
        self._resting: dict[tuple[str, _Pace], float] = {} if beside is None else beside._resting
        self._busy: set[str] = set() if beside is None else beside._busy
        self._due = DueUpkeep(
            upkeep,
            self._jobs,
            tables=limits.tables,
            share=self._own_share,
            interval_s=interval_s,
            monotonic_s=monotonic_s,
        )

    def wake(self, table_id: str) -> None:
        """Have the table looked at with the next ones: something was committed to it."""
        self._due.wake(table_id)

    async def run_on(self) -> None:
        """`run`, begun again after a defect: that must not end upkeep for good."""
        while True:
            try:
                await self.run()
            except Exception:
                logger.exception("the caretaker met a defect and is started again")
                await asyncio.sleep(RESTART_S)

    async def run(self) -> None:
        """Look after look; a failure of one table or look is logged and tried again."""
        rests_until = self._monotonic_s()
        while True:
            try:
                due = await self._due.find()
            except ServiceError as error:
                logger.warning("looking for due upkeep failed", extra={"reason": error.detail})
                due = []
            began = self._monotonic_s()
            chosen = self._chosen(due, rests=began < rests_until, now_s=began)
            if chosen is None:
                await self._pause(until=rests_until)
                continue
            self._due.begin(chosen)
            self._busy.add(chosen.scope)
            try:
                if not await self._do(chosen):
                    continue
            finally:
                self._busy.discard(chosen.scope)
            self._rest(chosen, since_s=began)
            if self._pace(chosen) is _Pace.USUAL:
                now = self._monotonic_s()
                rests_until = now + min(
                    rest_after(now - began, self._own_share), self._limits.rest_s
                )

    def _rest(self, done: Due, *, since_s: float) -> None:
        """Have what waits for what was done rest."""
        now = self._monotonic_s()
        is_urgent = self._pace(done) is _Pace.URGENT
        share = max(self._share, URGENT_SHARE) if is_urgent else self._share
        for key in [key for key, until in self._resting.items() if until <= now]:
            del self._resting[key]
        self._resting[self._rests_as(done)] = now + rest_after(now - since_s, share)

    async def round(self) -> int:
        """Do all that is due now of all tables, without a rest; returns how much was done."""
        count = 0
        async for page in self._due.pages():
            for each in page:
                count += await self._do(each)
        return count

    def _chosen(self, due: Sequence[Due], *, rests: bool, now_s: float) -> Due | None:
        """Any of what may be begun now, so that every schema and table has its turn."""
        free = [each for each in due if each.scope not in self._busy]
        rested = [each for each in free if self._resting.get(self._rests_as(each), now_s) <= now_s]
        between = [each for each in rested if self._pace(each) is not _Pace.USUAL]
        # What is urgent or bridges takes the time between the others, never theirs.
        usual = [] if rests else [each for each in rested if self._pace(each) is _Pace.USUAL]
        among = usual or between
        if not among:
            return None
        scope = random.choice(sorted({each.scope for each in among}))
        return random.choice([each for each in among if each.scope == scope])

    def _pace(self, due: Due) -> _Pace:
        if due.kind == UpkeepKind.CHECKPOINT:
            taken_over = self._limits.taken_over if due.takes_over else self._most_behind
            most = min(self._most_behind, taken_over)
            if due.behind >= most:
                return _Pace.URGENT
        is_bridging = due.kind == UpkeepKind.COMPACTION or due.takes_over
        return _Pace.BRIDGING if is_bridging else _Pace.USUAL

    def _rests_as(self, due: Due) -> tuple[str, _Pace]:
        """What rests together: a schema's work, and bridging all in all."""
        pace = self._pace(due)
        return ("" if pace is _Pace.BRIDGING else due.scope), pace

    async def _pause(self, *, until: float) -> None:
        """Until the rest is over, or where nothing is left of what was found, until somebody wakes
        it. No longer than the interval, and no shorter than `LEAST_S`, however often it is woken:
        each time costs a question to the index."""
        rest_s = max(until - self._monotonic_s(), min(LEAST_S, self._interval_s))
        await asyncio.sleep(min(rest_s, self._interval_s))
        if rest_s < self._interval_s and self._due.is_empty:
            await self._due.woken(within_s=self._interval_s - rest_s)

    async def _do(self, due: Due) -> bool:
        """Whether this instance did it, or tried to."""
        job = self._jobs[due.kind]
        fields = {"table_id": due.table_id, "kind": due.kind}
        began = self._monotonic_s()
        record: UpkeepRecord | None = None
        try:
            record = await self._upkeep.claim(
                due.table_id, due.kind, by=self._name, for_s=self._limits.claim_s
            )
            if record is None:
                return False
            done = await self._run(job, due, record)
            outcome = UpkeepOutcome.DONE if done.trouble is None else UpkeepOutcome.HINDERED
            if done.trouble not in (None, record.trouble):
                # Once, and not at each run that it hinders.
                logger.warning("upkeep is hindered", extra={**fields, "reason": done.trouble})
            await self._upkeep.done(due.table_id, due.kind, done, by=self._name)
        except ServiceError as error:
            outcome = UpkeepOutcome.FAILED
            logger.warning("upkeep failed", extra={**fields, "reason": error.detail})
            await self._put_off(due, record, error.detail)
        except Exception:
            # A defect that one table brings out must not end the upkeep of the others.
            outcome = UpkeepOutcome.FAILED
            logger.exception("upkeep met a defect", extra=fields)
            await self._put_off(due, record, "it met a defect, which the service's log tells of")
        seconds = self._monotonic_s() - began
        self._telemetry.kept_up(UpkeepKind.of(due.kind), outcome, seconds=seconds)
        return True

    async def _run(self, job: Job, due: Due, record: UpkeepRecord) -> Done:
        table = await self._index.table(due.table_id)
        if table is None or table.state is not TableState.ACTIVE:
            # Forgotten or quarantined since; there is nothing to go on from.
            return Done(version=record.version, due_in_s=LONGEST_BACKOFF_S)
        limits = self._limits
        most_s = limits.run_s + table.num_files * limits.run_s_a_file
        until = self._monotonic_s() + most_s
        running = asyncio.create_task(job.run(table, record), name=f"upkeep-{due.kind}")
        try:
            while (left_s := until - self._monotonic_s()) > 0:
                if (await asyncio.wait({running}, timeout=min(limits.renew_s, left_s)))[0]:
                    return running.result()
                await self._extend_claim(due)
            raise StorageUnavailable(f"it took longer than {most_s:.0f} s, and was given up")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _extend_claim(self, due: Due) -> None:
        try:
            await self._upkeep.extend_claim(
                due.table_id, due.kind, by=self._name, for_s=self._limits.claim_s
            )
        except ServiceError as error:
            # Another may begin the same then, which costs time only.
            logger.warning("a claim was not renewed", extra={"reason": error.detail})

    async def _put_off(self, due: Due, record: UpkeepRecord | None, trouble: str) -> None:
        failures = 0 if record is None else record.failures
        again_in_s = min(FIRST_BACKOFF_S * 2 ** min(failures, 20), LONGEST_BACKOFF_S)
        try:
            await self._upkeep.failed(
                due.table_id, due.kind, trouble, by=self._name, again_in_s=again_in_s
            )
        except ServiceError as error:
            # The claim is over in a minute, and the table is looked at again.
            logger.warning("a failure was not noted", extra={"reason": error.detail})
