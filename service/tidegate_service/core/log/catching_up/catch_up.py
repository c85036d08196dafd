"""Catching up with a log: with all foreign commits of a plain table, and with the files that a
publisher put into the log of a catalog-managed table (`core.log.catching_up.unmarked`).

Reading hundreds of versions from a store may take long, and no other commit should wait for that.
So they are read several at a time, without the table's lock and without a Postgres transaction.
They are written in portions, each saved under a lock of its own. After a request that broke off,
and beside one that catches up with the same log, a request goes on from the saved portions.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from itertools import count
from typing import TypeVar

from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.replay.commits import UnreadableCommit, commit_info
from tidegate_protocol.replay.foreign import parse_foreign_commit
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound
from tidegate_service.core.instance.locked_table import LockedTable
from tidegate_service.core.log.catching_up.foreign_commits import quarantine_for, take_in
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.catching_up.unmarked import mark
from tidegate_service.core.log.catching_up.versions import in_order
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.ports.store.storage import DatedFile, Log
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.turns import OwnTurns

CHECK_S = 1.0
"""The store has at least so long to answer a question."""
LATE_ASKS = 4
"""So often the store is asked for one request, whose time is up, what sections want to know."""

T = TypeVar("T")


async def with_log_read(
    context: Context,
    table_id: str,
    section: Callable[[SeenBefore], Awaitable[T]],
    turns: OwnTurns | None = None,
) -> T:
    """The result of a use case's section. The section is begun again, after reading on, whenever
    it raises `Behind`.

    A principal has its `turns` at reading on, else `Context.catching_up`. Also raises
    `IndexUnavailable` where there is still more to read after half a request's time, what was
    waited for turns included.
    """
    until = context.monotonic_s() + context.commit_deadline_s / 2
    sight = SeenBefore()
    while True:
        try:
            return await section(sight)
        except Behind:
            async with _turn(context, turns or context.catching_up, until=until):
                await read_on(context, table_id, sight, until=until)


@asynccontextmanager
async def _turn(context: Context, turns: OwnTurns, *, until: float) -> AsyncIterator[None]:
    """The principal's turn at reading on for work that is no commit. Commits have no turns: how
    many read on is bounded by the number of groups, and none waits for another table's store."""
    if context.who is None:
        yield
        return
    try:
        async with asyncio.timeout(max(0.0, until - context.monotonic_s())):
            await turns.take(context.who)
    except TimeoutError:
        raise IndexUnavailable(
            "other requests of this principal have read logs for so long that this one's turn did "
            "not come; ask again"
        ) from None
    try:
        yield
    finally:
        turns.end(context.who)


async def read_on(
    context: Context,
    table_id: str,
    sight: SeenBefore,
    *,
    until: float = math.inf,
    state: TableState = TableState.ACTIVE,
) -> None:
    """Do, without a lock, what a section needs that raised `Behind`.

    Where the section left work to `sight`, the work is done. Otherwise the store is asked what the
    section asked `sight`. Where it asked nothing, the log is read to its end; of a catalog-managed
    table, up to the versions that the index has.

    Raises what the work and `catch_up` do for a table in this state. Raises `IndexUnavailable`
    where the work or the reading takes longer than `until`, a time of `monotonic_s`: beside a
    faster writer, a request could be behind for ever. Where `until` has passed before, the work is
    waited for a moment, one portion is saved at least, and the store is asked a few times.
    """
    now = context.monotonic_s()
    is_late = now >= until
    if (remedy := sight.take_remedy()) is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(CHECK_S, until - now) if until < math.inf else None):
                await remedy()
            return
    elif not sight.is_asked:
        is_read = await catch_up(context, table_id, until=until, state=state, sight=sight)
        if is_read and not is_late:
            return
    elif not is_late or sight.times_asked < LATE_ASKS:
        glance = await context.index.glance(table_id)
        if glance is not None:
            log = context.storage.log(glance.table.location, who=context.who)
            within_s = max(CHECK_S, min(until - now, context.commit_deadline_s))
            await sight.ask(glance, log, within_s=within_s)
        return
    raise _too_long()


def _too_long() -> IndexUnavailable:
    return IndexUnavailable(
        "so much lies in this table's log that the index was not told of that reading it takes "
        "longer than a request may; what was read is kept, and the next request goes on from there"
    )


async def catch_up(
    context: Context,
    table_id: str,
    *,
    until: float = math.inf,
    state: TableState = TableState.ACTIVE,
    sight: SeenBefore | None = None,
) -> bool:
    """Read the table's log into the index to its end, and tell `sight` of it. True where the end
    was reached, and where the table is gone or is not in this state any more. False at `until`, a
    time of `monotonic_s`; at least one portion is saved by then.

    A version that cannot be read quarantines an active table; for a quarantined table it raises
    `UnreadableCommit`. The versions before it are saved. Also raises `Unavailable`.
    """
    glance = await context.index.glance(table_id)
    if glance is None:
        return True
    head = glance.table
    try:
        if head.catalog_managed:
            return await mark(context, head, until=until)
        while head.state is state:
            log = context.storage.log(head.location, who=context.who)
            async with aclosing(_portions(context, log, after=head.latest_version)) as portions:
                async for portion, is_last in portions:
                    end = head.latest_version + len(portion)
                    epoch, head = head.epoch, await _saved(context, head, portion)
                    if (head.epoch, head.state) != (epoch, state) or head.latest_version < end:
                        break
                    if is_last:
                        # Whatever others have committed meanwhile lies behind that end.
                        if sight is not None:
                            sight.ends(head, glance.database)
                        return True
                    if head.latest_version > end:
                        # Another request wrote meanwhile: what was read ahead may not follow.
                        break
                    if context.monotonic_s() >= until:
                        return False
            if context.monotonic_s() >= until:
                return False
    except NotFound:
        return True
    return True


async def _portions(
    context: Context, log: Log, *, after: int
) -> AsyncGenerator[tuple[Sequence[DatedFile], bool], None]:
    """The versions after `after` in portions, each with whether the log ends after it."""
    limits = context.limits
    portion, size, began = list[DatedFile](), 0, context.monotonic_s()
    async with aclosing(in_order(log.read_dated, count(after + 1))) as commits:
        async for _, found in commits:
            if found is None:
                yield portion, True
                return
            portion.append(found)
            size += len(found)
            is_long = size >= limits.portion_bytes or (
                context.monotonic_s() - began >= limits.portion_s
            )
            if len(portion) == limits.portion_versions or is_long:
                yield portion, False
                portion, size, began = [], 0, context.monotonic_s()


async def _saved(context: Context, before: TableHead, portion: Sequence[DatedFile]) -> TableHead:
    """Write the portion, which follows `before`, without the versions that another request wrote
    meanwhile. Returns the new head."""
    if not portion:
        return before
    async with context.index.commit_section(before.id, who=context.who) as section:
        head = section.table
        written = head.latest_version - before.latest_version
        if (head.epoch, head.state) != (before.epoch, before.state) or written < 0:
            return head
        locked = LockedTable(section, context.windows, context.limits)
        try:
            if ids := await _ids(portion[written:]):
                await section.expect(ids)
            for found in portion[written:]:
                await take_in(section, found, to=locked)
        except UnreadableCommit as error:
            if head.state is TableState.QUARANTINED:
                await section.save()
                raise UnreadableCommit(
                    f"version {section.table.latest_version + 1}: {error}"
                ) from None
            await quarantine_for(section, error)
        await section.save()
        locked.keep()
        return section.table


async def _ids(portion: Sequence[DatedFile]) -> list[str]:
    """The transaction ids in the versions, as far as they can be read. Large versions are left out:
    their ids are looked up one by one."""
    ids = []
    for found in portion:
        content = found.content
        if not isinstance(content, bytes) or b"txnId" not in content:
            continue
        await asyncio.sleep(0)
        try:
            info = await offload.run(offload.weight_of_log(content), _info_of, content)
        except UnreadableCommit:
            # `take_in` raises the same error.
            break
        if info is not None and info.txn_id is not None:
            ids.append(info.txn_id)
    return ids


def _info_of(content: bytes) -> CommitInfo | None:
    return commit_info(parse_foreign_commit(content))
