"""One table of a group: its proposals, one after the other, each decided behind the one before.

The decision is a function of the proposal and the log alone, so whenever the log turns out to be
longer than the index knew, the whole decision is taken again.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_protocol.transaction import Proposal, ReadyCommit
from tidegate_service.core import heavy
from tidegate_service.core.clock import check_clock
from tidegate_service.core.context import Context
from tidegate_service.core.decide import Empty, decide
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    StorageUnavailable,
    TableQuarantined,
    Unavailable,
)
from tidegate_service.core.faults import Step, around, steps_of
from tidegate_service.core.fence import aborted, close_invalid, doubt_tombstone
from tidegate_service.core.held_files import MOST_FILES, HeldFiles
from tidegate_service.core.hidden import reveal
from tidegate_service.core.ingest import ingest
from tidegate_service.core.locked import LockedTable
from tidegate_service.core.outcomes import Committed, NothingToCommit, Outcome
from tidegate_service.core.ports import CommitGroup, CommitSection, FilesFirst, Log, PutResult
from tidegate_service.core.ratify import PUT_ATTEMPTS, occupy, ratified
from tidegate_service.core.records import Aborted, TableRecord, TableState
from tidegate_service.core.telemetry import Phase

WRITTEN_AHEAD = 16
"""So many files of a plain table are written before their rows begin to be."""


class Landing:
    """Lands proposals on a locked table. `must_save` says that something was written that has to
    be saved, `is_stopped` that the store did not answer, so that nobody else should try."""

    def __init__(self, context: Context, section: CommitSection) -> None:
        self.section = section
        self.locked = LockedTable(section, context.windows)
        self.must_save = False
        self.is_stopped = False
        self._is_revealed = False
        self._storage = context.storage
        self._opened: Log | None = None
        self._taken = 0
        self._files = HeldFiles(self.locked)
        self._others_wait = False
        self._steps = steps_of(section.table.catalog_managed)

    @property
    def _log(self) -> Log:
        if self._opened is None:
            self._opened = self._storage.log(self.section.table.location)
        return self._opened

    @property
    def holds(self) -> int:
        """How many commits were decided whose files are not there yet: their outcomes, and all
        that were decided behind them, hold only once `put_files` has put them there."""
        return len(self._files)

    def together(self, others_wait: bool) -> None:
        """Whether files may wait for those of others that are decided next."""
        self._others_wait = others_wait and not self.section.table.catalog_managed

    @property
    def is_full(self) -> bool:
        return self.holds >= MOST_FILES

    @property
    def in_doubt(self) -> int:
        """How many of the files that `put_files` did not put may be there all the same."""
        return self._files.in_doubt

    async def put_files(self, context: Context) -> int:
        """Put the files that wait; how many of their commits have none and are forgotten."""
        return await self._files.put(context, self._log)

    def write_ahead(self) -> None:
        """On a plain table, the index is written while the next file is: not for each one, since
        a few rows cost the database as much as one."""
        self._taken += 1
        if not self.section.table.catalog_managed and self._taken % WRITTEN_AHEAD == 0:
            self.section.write_ahead()

    async def land(
        self, context: Context, proposal: Proposal, *, attempt: int, started: float
    ) -> Outcome:
        """The proposal's outcome, which holds once the section is saved; `context` is its
        caller's. Raises what `propose` does."""
        landed = await self._known(context, proposal)
        if landed is not None:
            return landed
        ready = await self._ready(context, proposal)
        if not isinstance(ready, ReadyCommit):
            return ready
        section = self.section
        commit = await heavy.run(
            len(ready.actions),
            partial(
                ratified,
                ready,
                published=not section.table.catalog_managed,
                attempts=attempt,
                duration_ms=round((context.monotonic_s() - started) * 1000),
                by=context.caller,
            ),
        )
        self.must_save = True
        if self._may_wait(ready):
            # Not before: what goes wrong until here leaves no file of it behind.
            self._files.hold(ready)
        try:
            await self.locked.append(commit)
        except FilesFirst:
            raise
        except Exception as error:
            if self._files.forget(ready):
                raise
            if section.table.catalog_managed and not isinstance(error, Refused | Unavailable):
                raise
            # On a plain table the file is there already, whatever the index says to it.
            raise CommitStateUnknown(
                f"the index did not take what may have landed: {error}",
                transaction_id=proposal.transaction_id,
            ) from error
        return Committed(
            table=section.table, record=commit.record, published=commit.published, replayed=False
        )

    async def _known(self, context: Context, proposal: Proposal) -> Committed | None:
        """The first answer to the proposal's id, looked for wherever it may lie."""
        section, faults = self.section, context.faults
        async with around(faults, self._steps.look_up):
            self._ingested(await doubt_tombstone(context, section, proposal))
            landed = await landed_before(section, proposal)
        if landed is not None:
            return landed
        check_clock(context, section)
        if section.table.catalog_managed:
            _check_backlog(context, section.table)
            return None
        async with around(faults, Step.O3_PROBE):
            # Once is enough: what this transaction lands on is too young to be cleaned up.
            if self.holds and reads_ahead(section, proposal):
                raise FilesFirst
            revealed = not self._is_revealed and await reveal(context, section, self._log)
            self._is_revealed = True
            self._ingested(revealed)
            if not revealed and not reads_ahead(section, proposal):
                return None
            self._ingested(await ingest(section, self._log))
            return await landed_before(section, proposal)

    async def _ready(self, context: Context, proposal: Proposal) -> ReadyCommit | Outcome:
        """The proposal as the next version, which on a plain table lies in the log by now, or the
        outcome that it has instead."""
        section, faults = self.section, context.faults
        while True:
            with context.telemetry.phase(Phase.DECIDE):
                decision = await decide(self.locked, proposal, faults=faults)
            if isinstance(decision, Empty):
                return nothing(section, proposal, decision)
            if not isinstance(decision, ReadyCommit):
                self.must_save |= await close_invalid(context, section, proposal, decision)
                return decision
            if section.table.catalog_managed:
                return decision
            if self._may_wait(decision):
                return decision
            if self.holds:
                raise FilesFirst
            if await self._put(context, decision):
                return decision
            self._ingested(await ingest(section, self._log))
            landed = await landed_before(section, proposal)
            if landed is not None:
                return landed

    def _may_wait(self, ready: ReadyCommit) -> bool:
        """Whether its file is put with others'."""
        if self.section.table.catalog_managed:
            return False
        return (self.holds > 0 or self._others_wait) and self._files.takes(ready)

    async def _put(self, context: Context, ready: ReadyCommit) -> bool:
        # The one network call under the row lock: the lock is what keeps this service's own
        # writers from racing each other for the version.
        try:
            with context.telemetry.phase(Phase.PUT):
                put = await occupy(self._log, ready, attempts=PUT_ATTEMPTS, faults=context.faults)
        except (CommitStateUnknown, StorageUnavailable):
            self.is_stopped = True
            raise
        return put is PutResult.CREATED

    def _ingested(self, count: int) -> None:
        self.must_save |= bool(count)


async def record(context: Context, group: CommitGroup, landings: Sequence[Landing]) -> None:
    """Write what landed, and save it. On a plain table it is in the log already."""
    plain = any(not landing.section.table.catalog_managed for landing in landings)
    async with AsyncExitStack() as steps:
        if plain:
            await steps.enter_async_context(around(context.faults, Step.O8_INDEX))
        else:
            async with around(context.faults, Step.M5_INSERT):
                for landing in landings:
                    await landing.section.flush()
            await steps.enter_async_context(around(context.faults, Step.M6_COMMIT))
        await group.save()


async def landed_before(section: CommitSection, proposal: Proposal) -> Committed | None:
    """The first answer to this transaction id, or None for a new one.

    Raises `Refused` for an id that was aborted or that landed with another body, and
    `TableQuarantined`: a quarantined table still answers for what it holds.
    """
    known = await section.transaction(proposal.transaction_id)
    table = section.table
    if isinstance(known, Aborted):
        raise aborted(proposal.transaction_id)
    if known is not None:
        if known.body_digest != proposal.digest():
            raise Refused(
                f"transaction id {excerpt(proposal.transaction_id)} landed as version "
                f"{known.version} with another body; an id names one body for ever",
                code=Code.TRANSACTION_ID_REUSED,
                hint="use a new transaction id for new work",
                version=known.version,
            )
        return Committed(
            table=table,
            record=known,
            published=known.version <= table.published_version,
            replayed=True,
        )
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")
    return None


def _check_backlog(context: Context, table: TableRecord) -> None:
    behind = table.latest_version - table.published_version
    if behind >= context.max_unpublished_versions:
        raise Unavailable(
            f"{behind} versions of table {table.name} wait for publishing, as many as may; nothing "
            "was done",
            code=Code.BACKPRESSURE,
        )


def nothing(section: CommitSection, proposal: Proposal, empty: Empty) -> NothingToCommit:
    return NothingToCommit(
        table=section.table,
        transaction_id=proposal.transaction_id,
        read_version=empty.read_version,
    )


def reads_ahead(section: CommitSection, proposal: Proposal) -> bool:
    """A writer that reads the log itself can know a version before the index does."""
    read_version = proposal.read_version
    return read_version is not None and read_version > section.table.latest_version
