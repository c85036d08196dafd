"""Proposing a transaction: the commit path (design section 4).

Everything between the row lock and its release runs in a task of its own. The decision is a
function of the proposal and the log alone, so whenever the log turns out to be longer than the
index knew, the whole decision is taken again.
"""

from dataclasses import dataclass
from typing import assert_never

from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_protocol.transaction import (
    Conflict,
    Invalid,
    IsolationLevel,
    Proposal,
    ReadyCommit,
)
from tidegate_service.core.clock import check_clock
from tidegate_service.core.context import Context
from tidegate_service.core.decide import Empty, decide
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    TableQuarantined,
    Unavailable,
)
from tidegate_service.core.faults import Side, Step, around, steps_of
from tidegate_service.core.fence import (
    aborted,
    check_operation,
    close_invalid,
    doubt_tombstone,
)
from tidegate_service.core.hidden import reveal
from tidegate_service.core.ingest import ingest
from tidegate_service.core.observed import Ended, observed
from tidegate_service.core.ports import CommitSection, Log, PutResult
from tidegate_service.core.ratify import PUT_ATTEMPTS, occupy, ratified
from tidegate_service.core.records import (
    Aborted,
    CommitRecord,
    RatifiedCommit,
    TableRecord,
    TableState,
)
from tidegate_service.core.tables import get_table
from tidegate_service.core.telemetry import Outcome, Phase

SECTION_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The transaction is in the log; `replayed` says that an earlier request put it there."""

    table: TableRecord
    record: CommitRecord
    published: bool
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToCommit:
    """The proposal has no actions and asked to be skipped then."""

    table: TableRecord
    transaction_id: str
    read_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldCommit:
    """What a proposal would become if it were sent now and nobody else were faster."""

    table: TableRecord
    transaction_id: str
    version: int
    read_version: int
    isolation_level: IsolationLevel
    is_blind_append: bool
    rebased_over: int


async def propose(
    context: Context, ref: str, proposal: Proposal
) -> Committed | NothingToCommit | Conflict | Invalid:
    """Decide the proposal and, if it wins, land it as the table's next version.

    Raises `NotFound`, `Refused` (a transaction id that was aborted or reused, a read version
    that is too old), `Unavailable` (nothing is known to have happened) and
    `CommitStateUnknown` (it may have landed; the same request finds out).
    """
    async with around(context.faults, Step.M0_FIND_TABLE):
        table = await get_table(context, ref)
    reserved = check_operation(proposal)
    if reserved is not None:
        return reserved
    outcome = await context.sections.run(
        (table.id, proposal.transaction_id),
        observed(
            context.telemetry,
            lambda: _propose(context, table, proposal),
            catalog_managed=table.catalog_managed,
            ended=_ended,
        ),
    )
    async with around(context.faults, steps_of(table.catalog_managed).answer):
        return outcome


async def conflict_check(
    context: Context, ref: str, proposal: Proposal
) -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
    """What `propose` would answer now. Nothing of the proposal is written; foreign commits
    that are found on the way are read into the index as ever. Raises as `propose` does."""
    table = await get_table(context, ref)
    reserved = check_operation(proposal)
    if reserved is not None:
        return reserved
    return await context.sections.run(
        (table.id, proposal.transaction_id), _check(context, table, proposal)
    )


async def _check(
    context: Context, table: TableRecord, proposal: Proposal
) -> WouldCommit | NothingToCommit | Committed | Conflict | Invalid:
    async with context.index.commit_section(table.id) as section:
        ingested = 0
        if not section.table.catalog_managed:
            ingested += await reveal(context, section, _log(context, section))
            ingested += await _catch_up(context, section)
        landed = await landed_before(section, proposal)
        if landed is None:
            check_clock(context, section)
        decision = landed or await decide(section, proposal)
        if ingested:
            await section.save()
        if isinstance(decision, Empty):
            return _nothing(section, proposal, decision)
        if not isinstance(decision, ReadyCommit):
            return decision
        read_version = decision.transaction.read.version
        return WouldCommit(
            table=section.table,
            transaction_id=proposal.transaction_id,
            version=decision.version,
            read_version=read_version,
            isolation_level=decision.transaction.isolation_level,
            is_blind_append=decision.transaction.is_blind_append,
            rebased_over=decision.version - read_version - 1,
        )


async def _propose(
    context: Context, table: TableRecord, proposal: Proposal
) -> Committed | NothingToCommit | Conflict | Invalid:
    started = context.monotonic_s()
    for attempt in range(1, SECTION_ATTEMPTS + 1):
        try:
            return await _section(context, table, proposal, attempt=attempt, started=started)
        except CommitStateUnknown:
            # Only the lock tells: once it is granted again, the transaction that lost its
            # answer has ended, and the next section finds the id or decides afresh.
            if attempt == SECTION_ATTEMPTS or _too_late(context, started):
                raise
        except Unavailable as error:
            if attempt == 1:
                raise
            raise _unknown(proposal, error) from error
    raise AssertionError("the last attempt either returns or raises")


async def _section(
    context: Context, table: TableRecord, proposal: Proposal, *, attempt: int, started: float
) -> Committed | NothingToCommit | Conflict | Invalid:
    faults, steps = context.faults, steps_of(table.catalog_managed)
    await faults.reached(steps.lock, Side.BEFORE)
    async with context.index.commit_section(table.id) as section:
        await faults.reached(steps.lock, Side.AFTER)
        async with around(faults, steps.look_up):
            ingested = await doubt_tombstone(context, section, proposal)
            landed = await landed_before(section, proposal)
        if landed is not None:
            if ingested:
                await section.save()
            return landed
        check_clock(context, section)
        if not section.table.catalog_managed:
            async with around(faults, Step.O3_PROBE):
                revealed = await reveal(context, section, _log(context, section))
                if revealed or _reads_ahead(section, proposal):
                    ingested += revealed + await _catch_up(context, section)
                    landed = await landed_before(section, proposal)
            if landed is not None:
                await section.save()
                return landed
        while True:
            with context.telemetry.phase(Phase.DECIDE):
                decision = await decide(section, proposal, faults=faults)
            if not isinstance(decision, ReadyCommit):
                if await close_invalid(context, section, proposal, decision) or ingested:
                    await section.save()
                if isinstance(decision, Empty):
                    return _nothing(section, proposal, decision)
                return decision
            if section.table.catalog_managed:
                break
            # The one network call under the row lock: the lock is what keeps this service's own
            # writers from racing each other for the version.
            log = _log(context, section)
            with context.telemetry.phase(Phase.PUT):
                put = await occupy(log, decision, attempts=PUT_ATTEMPTS, faults=faults)
            if put is PutResult.CREATED:
                break
            ingested += await ingest(section, log)
            landed = await landed_before(section, proposal)
            if landed is not None:
                await section.save()
                return landed
        commit = ratified(
            decision,
            published=not section.table.catalog_managed,
            attempts=attempt,
            duration_ms=round((context.monotonic_s() - started) * 1000),
            by=context.caller,
        )
        try:
            with context.telemetry.phase(Phase.SAVE):
                await _record(context, section, commit)
        except (Refused, Unavailable) as error:
            # On a plain table the file is there already, whatever the index says to it; on either
            # kind, COMMIT may have been reached.
            raise _unknown(proposal, error) from error
    if table.catalog_managed:
        context.wake_publisher(table.id)
    return Committed(
        table=section.table, record=commit.record, published=commit.published, replayed=False
    )


async def _record(context: Context, section: CommitSection, commit: RatifiedCommit) -> None:
    faults = context.faults
    if section.table.catalog_managed:
        async with around(faults, Step.M5_INSERT):
            await section.append(commit)
        async with around(faults, Step.M6_COMMIT):
            await section.save()
    else:
        async with around(faults, Step.O8_INDEX):
            await section.append(commit)
            await section.save()


def _ended(result: Committed | NothingToCommit | Conflict | Invalid) -> Ended:
    match result:
        case Committed():
            return (Outcome.REPLAYED if result.replayed else Outcome.LANDED), None
        case NothingToCommit():
            return Outcome.EMPTY, None
        case Conflict():
            return Outcome.CONFLICT, result.code
        case Invalid():
            return Outcome.INVALID, result.code
        case _:
            assert_never(result)


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


def _nothing(section: CommitSection, proposal: Proposal, empty: Empty) -> NothingToCommit:
    return NothingToCommit(
        table=section.table,
        transaction_id=proposal.transaction_id,
        read_version=empty.read_version,
    )


def _reads_ahead(section: CommitSection, proposal: Proposal) -> bool:
    """A writer that reads the log itself can know a version before the index does."""
    read_version = proposal.read_version
    return read_version is not None and read_version > section.table.latest_version


async def _catch_up(context: Context, section: CommitSection) -> int:
    return await ingest(section, _log(context, section))


def _log(context: Context, section: CommitSection) -> Log:
    return context.storage.log(section.table.location)


def _too_late(context: Context, started: float) -> bool:
    return context.monotonic_s() - started > context.commit_deadline_s


def _unknown(proposal: Proposal, cause: Exception) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"an earlier attempt may have landed, and looking it up failed: {cause}",
        transaction_id=proposal.transaction_id,
    )
