"""Updating a table for a client of Unity Catalog's API: its commits, by compare-and-set.

The client has checked for conflicts itself, up to the version before its own. So its commit lands
as exactly the next version, or not at all. It goes the way of every proposal, so the service's own
writers are checked against it.

The same commit is recognized when it is sent again. It names the same file, or its commitInfo has
the same txnId in another file; the index keeps both for as long as it keeps the version.
"""

import logging
from collections.abc import Sequence
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, Metadata, Protocol
from tidegate_protocol.proposal.staged import digest_of
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_protocol.replay.staged import proposal_of
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused, ServiceError, with_cause
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableHead, TableRecord
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.unity_catalog import staged_files
from tidegate_service.core.unity_catalog.agreement import check_agreement
from tidegate_service.core.unity_catalog.identity import etag, table_uuid
from tidegate_service.core.unity_catalog.published import publish_through
from tidegate_service.core.unity_catalog.requests import AddCommit, Definition, Update

logger = logging.getLogger("tidegate.unity_catalog")


async def update_table(context: Context, ref: str, update: Update) -> TableRecord:
    """Do all of the update, and return the table after it.

    Raises `Refused`: `version-taken` where another commit is that version, `requirement-failed`,
    and other codes for what can never land. Raises `NotFound` for an unknown table and a version
    with a gap before it, and otherwise as `propose` does.
    """
    table = await get_table(context, ref)
    if update.table_uuid not in (None, table_uuid(table)):
        raise _required(f"the table {table.name} has the id {table_uuid(table)}")
    _check_published(update, table)
    commit = update.commit
    if commit is None:
        _check_idle(update)
        return table
    staged_files.check_name(commit)
    landed: TableRecord | None = None
    if not await _landed_by_name(context, table, commit):
        land = partial(_land, context, table, update, commit)
        landed = await staged_files.in_own_turn(context, table, commit, land)
    await _publish(context, table, landed)
    return await get_table(context, table.id) if landed is None else landed


async def _landed_by_name(context: Context, table: TableHead, commit: AddCommit) -> bool:
    """Whether the version is this very commit, as the index says. One that was made from the log
    knows the bytes, and not the file's name."""
    if commit.version > table.latest_version:
        return False
    record = await context.index.commit(table.id, commit.version)
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
    if not table.catalog_managed:
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
    try:
        outcome = await propose(context, table.id, proposal)
    except Refused as refused:
        if refused.code is not Code.TRANSACTION_ID_REUSED:
            raise
        # The same work, staged again in another file: a client cannot know that it has landed.
        _check_landed(commit, refused.version, staged.commit_info.txn_id)
        return None
    match outcome:
        case Committed():
            _check_landed(commit, outcome.record.version, outcome.record.transaction_id)
            is_next = commit.version == table.latest_version + 1
            if outcome.replayed or not is_next or _defines(staged.actions):
                return None
            return outcome.table.with_state(table.protocol, table.metadata)
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


async def _publish(context: Context, table: TableHead, landed: TableHead | None) -> None:
    """Publish the commit before it is answered. What goes wrong is no reason to call it failed:
    it has landed, and whoever loads the table has it published first."""
    try:
        await publish_through(context, landed or await _head(context, table))
    except ServiceError as error:
        logger.warning(
            "publishing after a commit failed",
            extra={"table": table.name, "code": str(error.code), "reason": with_cause(error)},
        )


def _defines(actions: Sequence[Action]) -> bool:
    return any(isinstance(action, Metadata | Protocol) for action in actions)


async def _head(context: Context, table: TableHead) -> TableHead:
    head = await context.index.head(table.id)
    return table if head is None else head


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
