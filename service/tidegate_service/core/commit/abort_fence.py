"""Fences: empty commits that keep a transaction out of a plain table's log for good.

An attempt that nobody heard of again may still write its version: its request is on its way to
the store, or its instance was stopped just before it and goes on. Whatever it was decided behind,
a file is sent only when all before it are in the log, also of a group. So what is on its way now
is for a version that exists, or for the one after the log's end. A fence takes that one. The
attempt then meets a version that exists, whenever it comes, and reads on. The fence carries an id,
which the index has to be asked for; an instance whose lock has ended is told so there, and decides
nothing more.

A fence names the id it stands for, so that an index made from the log knows the id as aborted.

A 409, 410 or 422 says that this id and body will never land. Why each of them is true of an
earlier attempt, too:

- A conflict is one with a version of the log. An attempt for that version or one before it meets a
  file; one for a later version was judged against it, and lost like this one.
- What is invalid by itself, or at the version that the transaction has read, is so at any head.
- What is invalid at the head may be valid at another one: a proposal that names no read version,
  judged where the index ends or in front of foreign versions. It is fenced before it is refused.
  The fence's own PUT finds out whether the log ends there; where it does not, the proposal is
  judged anew. An id that was made for this very copy has no earlier attempt: the log is read to
  its end, and that is all.
- That the read version is too old says what the index holds, which was more before it was made
  anew. It is fenced likewise.
- An id that landed with another body did so at a version of the log. An attempt for a later one
  read that version in, and met its id.
- An aborted id was fenced when it was aborted.

A catalog-managed table needs none of it. An attempt lands by the COMMIT of a session that holds the
table's row; whoever holds the row now knows that the session of every earlier one has ended.
"""

from tidegate_protocol.base.problems import PROBLEMS, Code
from tidegate_protocol.prepare.prepare import is_invalid_at_any_version
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal, ReadyCommit
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.commit.decide import Empty, decide
from tidegate_service.core.commit.locked_table import LockedTable
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    ServiceError,
    TableQuarantined,
)
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.foreign_commits import (
    FENCE_OPERATION,
    FENCED_ID,
    MOST_RACES,
    Behind,
    ingest,
)
from tidegate_service.core.log.put_version import PUT_ATTEMPTS, occupy, ratified
from tidegate_service.core.maintenance.truncation import reload_if_truncated
from tidegate_service.core.ports.index import CommitSection, Log, PutResult
from tidegate_service.core.ports.records import Aborted, CommitRecord, TableState

FINAL = (409, 410, 422)
"""The statuses of refusals that say of an id and body that they will never land."""

Refusal = Empty | Conflict | Invalid | Refused
"""Why a proposal does not land."""


def aborted(transaction_id: str) -> Refused:
    """The answer to a proposal under an id that is closed."""
    return Refused(
        f"transaction {transaction_id} was aborted and will never land",
        code=Code.TRANSACTION_ABORTED,
        hint="propose the work under a new transaction id",
    )


def check_operation(proposal: Proposal) -> Invalid | None:
    """Why a writer cannot name an operation so: a fence by its name alone would close the id of
    another's transaction wherever an index is made from the log."""
    if proposal.operation != FENCE_OPERATION:
        return None
    return Invalid(
        code=Code.INVALID_ACTION,
        detail=f"the operation {FENCE_OPERATION} is what aborts are written as; expected another",
    )


async def doubt_tombstone(context: Context, section: CommitSection, proposal: Proposal) -> int:
    """An id that was aborted may lie in a plain table's log all the same, beyond what the index
    knows, and the log wins; or it may yet get there, which a fence ends. Returns how many versions
    that makes; the caller saves the section. Raises `Behind` where the log has to be read in first.
    """
    known = await section.transaction(proposal.transaction_id)
    if not isinstance(known, Aborted):
        return 0
    head = section.table.latest_version
    await ingest(section, context.storage.log(section.table.location, who=context.who))
    if is_open(known) and is_open(await section.transaction(proposal.transaction_id)):
        known = await fence(context, section, proposal.transaction_id)
        if known is None:
            await section.abort(proposal.transaction_id)
    return section.table.latest_version - head


def is_open(known: CommitRecord | Aborted | None) -> bool:
    """Whether an attempt under an id may still land: one that nobody closed, or that an earlier
    release closed without a fence."""
    return known is None or (isinstance(known, Aborted) and known.unfenced_after is not None)


def is_of_the_head(proposal: Proposal, refusal: Refusal) -> bool:
    """Whether the refusal might be another at another head, so that the log has to be read to its
    end before it is given."""
    if isinstance(refusal, Refused) and refusal.code is Code.READ_VERSION_TOO_OLD:
        return True
    if isinstance(refusal, Conflict) or proposal.read_version is not None:
        return False
    return not (isinstance(refusal, Invalid) and is_invalid_at_any_version(proposal))


def is_final(refusal: Refusal) -> bool:
    """Whether it says that this id and body will never land."""
    if isinstance(refusal, Refused):
        return PROBLEMS[refusal.code].status in FINAL
    return not isinstance(refusal, Empty)


async def close(context: Context, section: CommitSection, transaction_id: str) -> None:
    """Tombstone an id of which no attempt can land any more, and note who did."""
    await section.abort(transaction_id)
    closed = Change(deed=Deed.ABORT, by=context.caller, transaction_id=transaction_id)
    await section.note(closed)


async def fence(
    context: Context, section: CommitSection, transaction_id: str
) -> CommitRecord | Aborted | None:
    """Take the version after the head, unless the log knows the transaction, which is returned.

    The caller saves the section. Raises `CommitStateUnknown` where the store does not say
    whether the version is taken, `Behind` where the log has to be read in first, and what else
    `propose` does.
    """
    table = section.table
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")
    check_clock(context, section)
    log = context.storage.log(table.location, who=context.who)
    if await reload_if_truncated(context, section, log):
        known = await section.transaction(transaction_id)
        if not is_open(known):
            return known
    locked = LockedTable(section, WindowCache())
    for _ in range(MOST_RACES):
        if await take_next(context, locked, log, transaction_id):
            return None
        await ingest(section, log)
        known = await section.transaction(transaction_id)
        if not is_open(known):
            return known
    raise Behind


async def take_next(context: Context, locked: LockedTable, log: Log, transaction_id: str) -> bool:
    """Fence the id by the version after the head; False where that is taken, so that the log goes
    on from there. The caller saves the section. Raises as `fence` does."""
    started = context.monotonic_s()
    ready = await decide(locked, _proposal(context.new_id(), transaction_id))
    if not isinstance(ready, ReadyCommit):
        raise ServiceError(f"an empty commit was refused: {ready}")
    try:
        taken = await occupy(log, ready, attempts=PUT_ATTEMPTS)
    except CommitStateUnknown as error:
        raise CommitStateUnknown(error.detail, transaction_id=transaction_id) from error
    if taken is PutResult.EXISTS:
        return False
    duration_ms = round((context.monotonic_s() - started) * 1000)
    await locked.append(
        ratified(ready, published=True, attempts=1, duration_ms=duration_ms, by=context.caller)
    )
    return True


def _proposal(fence_id: str, transaction_id: str) -> Proposal:
    # With an id of its own each time: an earlier fence for the same transaction stands behind
    # the head by now and keeps nothing out.
    return Proposal(
        transaction_id=fence_id,
        operation=FENCE_OPERATION,
        operation_parameters={FENCED_ID: transaction_id},
        actions=(),
    )
