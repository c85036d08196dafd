"""Updating a table for a client of Unity Catalog's API: its commits, by compare-and-set.

The client has checked for conflicts itself, up to the version before its own. So its commit lands
as exactly the next version, or not at all. It goes the way of every proposal, so the service's own
writers are checked against it.

The same commit is recognized when it is sent again. It names the same file, or its commitInfo has
the same txnId in another file; the index keeps both for as long as it keeps the version.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Metadata, Protocol
from tidegate_protocol.proposal.staged import digest_of
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal
from tidegate_protocol.replay.staged import proposal_of
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.refusals import aborted
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Overtaken, Refused, ServiceError, with_cause
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import Aborted, TableHead, TableRecord, TableState
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.unity_catalog import staged_files
from tidegate_service.core.unity_catalog.agreement import check_agreement
from tidegate_service.core.unity_catalog.identity import etag, is_managed, table_uuid
from tidegate_service.core.unity_catalog.published import publish_landed, publish_through
from tidegate_service.core.unity_catalog.requests import AddCommit, Definition, Update

logger = logging.getLogger("tidegate.unity_catalog")


class _TooLate(Refused):
    """The version is another commit. Its writer is told so in its turn."""

    def __init__(self, refused: Refused, table: TableHead, proposal: Proposal) -> None:
        super().__init__(refused.detail, code=refused.code, version=refused.version)
        self.table_id = table.id
        self.transaction_id = proposal.transaction_id
        self.engine_info = proposal.engine_info
        self.has_own_id = proposal.staged is None or proposal.staged.name != self.transaction_id


async def update_table(context: Context, ref: str, update: Update) -> TableRecord:
    """Do all of the update, and return the table after it.

    Raises `Refused`: `version-taken` where another commit is that version, `requirement-failed`,
    and other codes for what can never land. Raises `NotFound` for an unknown table and a version
    with a gap before it, and otherwise as `propose` does.
    """
    try:
        updated = await _updated_by_memory(context, ref, update)
        if updated is None:
            updated = await _updated(context, await get_table(context, ref), update)
    except _TooLate as late:
        await context.late(context, late.table_id, late.transaction_id, late.engine_info)
        raise
    context.recent.remember(updated)
    return updated


async def _updated_by_memory(context: Context, ref: str, update: Update) -> TableRecord | None:
    """The same without a look at the table first, where this instance knows it at the version
    before the commit: the lock tells whether it is there still. None where a look has to say what
    becomes of the update: the memory may be old."""
    known, commit = context.tables.known(ref), update.commit
    if known is None or commit is None:
        return None
    table = context.recent.before(known.id, commit.version)
    if table is None:
        return None
    try:
        return await _updated(context, table, update)
    except _TooLate as late:
        # An index that was made from the log knows a commit without an id by its bytes alone.
        if late.has_own_id:
            raise
    except (NotFound, Refused) as passed_over:
        # The commit's actions are in the frames that it came through.
        passed_over.__traceback__ = None
    return None


async def _updated(context: Context, table: TableRecord, update: Update) -> TableRecord:
    if update.table_uuid not in (None, table_uuid(table)):
        raise _required(f"the table {table.name} has the id {table_uuid(table)}")
    _check_published(update, table)
    commit = update.commit
    if commit is None:
        _check_idle(update)
        await _publish(context, table)
        return table
    staged_files.check_name(commit)
    if await _landed_by_name(context, table, commit):
        await _publish(context, table)
        return table
    land = partial(_land, context, table, update, commit)
    landed = await staged_files.in_own_turn(context, table, commit, land)
    if landed is None:
        landed = await get_table(context, table.id)
    await _publish(context, landed)
    return landed


async def _landed_by_name(context: Context, table: TableHead, commit: AddCommit) -> bool:
    """Whether the version is this very commit, as the index says. One that was made from the log
    knows the bytes, and not the file's name."""
    if commit.version > table.latest_version:
        return False
    async with context.lookups.turn(context.who):
        record = await context.index.glance_at_commit(table.id, commit.version)
    if record is None:
        return False
    if record.body_digest == digest_of(commit.file_name):
        return True
    if record.body_digest is not None or record.content_sha256 is None:
        return False
    is_same = partial(_has_digest, context, table, commit, record.content_sha256)
    return await staged_files.in_own_turn(context, table, commit, is_same)


async def _has_digest(context: Context, table: TableHead, commit: AddCommit, sha256: str) -> bool:
    content = await staged_files.content_of(context, table, commit)
    if content is None or len(content) != commit.file_size:
        return False
    return await offload.sha256_of(content) == sha256


async def _land(
    context: Context, table: TableRecord, update: Update, commit: AddCommit
) -> TableRecord | None:
    """The table as this commit leaves it, where that is known; None where the commit defines it
    anew, or landed before."""
    if not is_managed(table):
        raise Refused(
            f"table {table.name} is a plain table: what is committed to it is "
            "`_delta_log/<version>.json`, and not through this API",
            code=Code.UNSUPPORTED_FEATURE,
        )
    if commit.version > table.latest_version + 1:
        raise NotFound(
            f"version {commit.version} cannot follow version {table.latest_version}, the latest "
            f"one of {table.name}",
            code=Code.VERSION_NOT_FOUND,
        )
    content = await staged_files.content_of(context, table, commit)
    if content is None:
        if commit.version <= table.latest_version:
            raise _taken(table, commit)
        raise staged_files.missing(commit)
    staged = await staged_files.staged_of(commit, content)
    if commit.version == table.latest_version + 1:
        # Of any other version it does not land, whatever is required or said.
        await _check_etag(update, table)
        agree = partial(
            check_agreement,
            update.definition,
            staged.actions,
            before=table.metadata,
            protocol_before=table.protocol,
        )
        # What is said may be thousands of columns, which are parsed, and as many properties.
        said = 0 if update.definition == Definition() else offload.LONG
        await offload.run(max(said, len(staged.actions)), agree)
    proposal = await offload.run(len(staged.actions), proposal_of, staged)
    began_s = context.monotonic_s()
    try:
        if commit.version <= table.latest_version and table.state is TableState.ACTIVE:
            raise Overtaken(_taken(table, commit).detail)
        outcome = await propose(context, table.id, proposal)
    except Overtaken as overtaken:
        async with context.lookups.turn(context.who):
            known = await context.index.transaction(table.id, proposal.transaction_id)
        if isinstance(known, Aborted):
            raise aborted(proposal.transaction_id) from overtaken
        if known is None:
            raise _TooLate(overtaken, table, proposal) from overtaken
        _check_landed(commit, known.version, known.transaction_id)
        return None
    except Refused as refused:
        if refused.code is Code.VERSION_TAKEN:
            raise _TooLate(refused, table, proposal) from refused
        if refused.code is not Code.TRANSACTION_ID_REUSED:
            raise
        # The same work, staged again in another file: a client cannot know that it has landed.
        _check_landed(commit, refused.version, staged.commit_info.txn_id)
        return None
    match outcome:
        case Committed():
            _check_landed(commit, outcome.record.version, outcome.record.transaction_id)
            head = outcome.table
            with _landed_anyway(head):
                await publish_landed(context, outcome, content, began_s=began_s)
            is_next = (table.latest_version + 1, table.epoch) == (commit.version, head.epoch)
            if outcome.replayed or not is_next or _defines(staged.actions):
                return None
            return head.with_state(table.protocol, table.metadata)
        case Invalid() | Conflict():
            raise Refused(outcome.detail, code=outcome.code)
        case _:
            raise AssertionError(f"a staged commit is never left out: {outcome}")


async def _check_etag(update: Update, table: TableRecord) -> None:
    if update.etag is None:
        return
    found = await offload.run(offload.weight_of_metadata(table.metadata), etag, table)
    if update.etag != found:
        raise _required(f"the metadata of table {table.name} has changed: it is {found}")


def _check_landed(commit: AddCommit, version: int | None, transaction_id: str | None) -> None:
    """Raise `Refused` where the transaction landed as another version than the client asks for: it
    would go on, and write a checksum, as if that version were its own."""
    if version != commit.version:
        raise Refused(
            f"the transaction {transaction_id} has landed as version {version} already, and is not "
            f"committed a second time as version {commit.version}",
            code=Code.TRANSACTION_COMMITTED,
            version=version,
        )


async def _publish(context: Context, table: TableHead) -> None:
    """Publish what is answered, up to the table's latest version, before it is."""
    with _landed_anyway(table):
        await publish_through(context, table)


@contextmanager
def _landed_anyway(table: TableHead) -> Iterator[None]:
    """What goes wrong in publishing is no reason to call a commit failed: it has landed, and
    whoever loads the table has it published first."""
    try:
        yield
    except ServiceError as error:
        logger.warning(
            "publishing after a commit failed",
            extra={"table": table.name, "code": str(error.code), "reason": with_cause(error)},
        )


def _defines(actions: Sequence[Action]) -> bool:
    return any(isinstance(action, Metadata | Protocol) for action in actions)


def _check_published(update: Update, table: TableHead) -> None:
    """A client's note of what it has seen in the log is believed in nothing; one that cannot be
    true is refused."""
    if update.published is not None and update.published > table.latest_version:
        raise Refused(
            f"version {update.published} cannot be published: the latest version of {table.name} "
            f"is {table.latest_version}",
            code=Code.INVALID_REQUEST,
        )


def _check_idle(update: Update) -> None:
    if update.definition != Definition():
        raise Refused(
            "a table is changed by a commit: expected add-commit beside the other updates",
            code=Code.INVALID_REQUEST,
        )


def _taken(table: TableHead, commit: AddCommit) -> Refused:
    return Refused(
        f"version {commit.version} of {table.name} is another commit; the latest version is "
        f"{table.latest_version}",
        code=Code.VERSION_TAKEN,
    )


def _required(detail: str) -> Refused:
    return Refused(f"what is required does not hold: {detail}", code=Code.REQUIREMENT_FAILED)
