"""Transaction ids: asking after one, and closing one for good."""

from dataclasses import dataclass
from enum import StrEnum

from tidegate_protocol.actions import Txn
from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_service.core.audit import Change, Deed
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.fence import fence, is_open
from tidegate_service.core.records import Aborted, TableRecord
from tidegate_service.core.tables import get_table


class TransactionState(StrEnum):
    """`pending`: a request with this id is being decided by this instance right now."""

    COMMITTED = "committed"
    PENDING = "pending"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStatus:
    """What is known of a transaction id; `version` where it is committed."""

    transaction_id: str
    state: TransactionState
    version: int | None


async def status(context: Context, ref: str, transaction_id: str) -> TransactionStatus:
    """Raises `NotFound` (`transaction-not-found`) for an id that nobody has proposed, or whose
    proposal was refused: neither leaves a trace."""
    table = await get_table(context, ref)
    # Asked before the index: a section that ends in between is then found there.
    pending = context.sections.under_way((table.id, transaction_id))
    known = await context.index.transaction(table.id, transaction_id)
    if isinstance(known, Aborted):
        return TransactionStatus(
            transaction_id=transaction_id, state=TransactionState.ABORTED, version=None
        )
    if known is not None:
        return TransactionStatus(
            transaction_id=transaction_id, state=TransactionState.COMMITTED, version=known.version
        )
    if pending:
        return TransactionStatus(
            transaction_id=transaction_id, state=TransactionState.PENDING, version=None
        )
    raise NotFound(
        f"table {table.name} knows no transaction {excerpt(transaction_id)}",
        code=Code.TRANSACTION_NOT_FOUND,
    )


async def abort(context: Context, ref: str, transaction_id: str) -> None:
    """Close the id: no proposal under it will ever land. Aborting twice is the same as once.

    A plain table gets an empty version by it (`core.fence`).

    Raises `Refused` (`transaction-committed`, with the version) where it has landed.
    """
    table = await get_table(context, ref)
    await context.sections.run((table.id, transaction_id), _abort(context, table, transaction_id))


async def _abort(context: Context, table: TableRecord, transaction_id: str) -> None:
    async with context.index.commit_section(table.id) as section:
        known = await section.transaction(transaction_id)
        closed = section.table.catalog_managed or not (known is None or is_open(section, known))
        if not closed:
            # An attempt of this very id may lie in the log with its index rows lost, or may
            # yet get there.
            known = await fence(context, section, transaction_id)
        if known is None:
            await section.abort(transaction_id)
            aborted = Change(deed=Deed.ABORT, by=context.caller, transaction_id=transaction_id)
            await section.note(aborted)
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
    table = await get_table(context, ref)
    return await context.index.app_transaction(table.id, app_id)
