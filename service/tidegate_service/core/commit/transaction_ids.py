"""Transaction ids: asking after one, and closing one for good."""

from dataclasses import dataclass
from enum import StrEnum

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.commit.batches.kinds import batches_of
from tidegate_service.core.commit.refusals import close, is_open
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import Aborted, CommitRecord, TableHead
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import find_head, get_head, wide_section


class TransactionState(StrEnum):
    """`pending`: a request with this id is being decided by this instance right now."""

    COMMITTED = "committed"
    PENDING = "pending"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStatus:
    """What is known of a transaction id. `landed` is set where the id is committed: what a retry of
    the same body would be told."""

    transaction_id: str
    state: TransactionState
    landed: Committed | None = None


async def status(context: Context, ref: str, transaction_id: str) -> TransactionStatus:
    """What the index knows of the id.

    Raises `NotFound` (`transaction-not-found`) where the index knows nothing. A proposal may still
    be on its way, or its commit may lie in a log that was not read yet.
    """
    table = await get_head(context, ref)
    # Asked before the index: a commit that ends in between is found in the index then.
    pending = context.running.under_way((table.id, transaction_id))
    known = await context.index.transaction(table.id, transaction_id)
    if isinstance(known, CommitRecord):
        published = table.kind.log_first or known.version <= table.published_version
        return TransactionStatus(
            transaction_id=transaction_id,
            state=TransactionState.COMMITTED,
            landed=Committed(table=table, record=known, published=published, replayed=True),
        )
    if not is_open(known):
        return TransactionStatus(transaction_id=transaction_id, state=TransactionState.ABORTED)
    if pending:
        return TransactionStatus(transaction_id=transaction_id, state=TransactionState.PENDING)
    raise NotFound(
        f"table {table.name} knows no transaction {excerpt(transaction_id)}",
        code=Code.TRANSACTION_NOT_FOUND,
    )


async def abort(context: Context, ref: str, transaction_id: str) -> None:
    """Close the id: no proposal under it will ever land. Aborting twice is the same as once.

    On a plain table this writes an empty version (`core.commit.batches.abort_fence`).

    Raises `Refused` (`transaction-committed`, with the version) where the id has landed.
    """
    table = await find_head(context, ref)

    async def section() -> None:
        async with wide_section(context, table):
            await with_log_read(
                context, table.id, lambda sight: _abort(context, table, transaction_id, sight)
            )

    await in_turn(context, context.aborting, (table.id, transaction_id), section)


async def _abort(
    context: Context, table: TableHead, transaction_id: str, sight: SeenBefore
) -> None:
    async with context.index.commit_section(table.id, who=context.who) as section:
        known = await section.transaction(transaction_id)
        if is_open(known):
            batches = batches_of(section.table)
            known = await batches.shut_out(context, section, sight, transaction_id, known)
        if known is None:
            await close(context, section, transaction_id)
        await section.save()
    if known is not None and not isinstance(known, Aborted):
        raise Refused(
            f"transaction {excerpt(transaction_id)} has landed as version {known.version}",
            code=Code.TRANSACTION_COMMITTED,
            hint="undo it by a new commit",
            version=known.version,
        )


async def app_transaction(context: Context, ref: str, app_id: str) -> Txn | None:
    """The latest `txn` action of an application; None where it has written none."""
    table = await find_head(context, ref)
    return await context.index.app_transaction(table.id, app_id, known=context.heads.replicated)
