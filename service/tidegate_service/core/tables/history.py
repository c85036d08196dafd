"""A table's past: its commits, and the bytes of each version."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import LogFile
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound
from tidegate_service.core.log.files.log_file import OversizedFile
from tidegate_service.core.ports.contents import LargeVersion
from tidegate_service.core.ports.records import CommitRecord, TableHead
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.tables.lookup import get_head


async def history(
    context: Context, ref: str, *, from_version: int | None, to_version: int | None, limit: int
) -> tuple[TableHead, list[CommitRecord]]:
    """Commits between two versions (both included; open where None), newest first. A caller's
    pages are read one after the other."""
    table = await get_head(context, ref)
    # Commits that land meanwhile are behind the head that may be told.
    last = table.latest_version if to_version is None else min(to_version, table.latest_version)
    async with context.histories.turn(context.who):
        commits = await context.index.history(
            table.id, from_version=from_version, to_version=last, limit=limit
        )
    return table, commits


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeContent:
    """Bytes that are not held in one piece: how many there are, and all of them in order."""

    size: int
    pieces: AsyncGenerator[bytes, None]


async def content(context: Context, ref: str, version: int) -> bytes | LargeContent:
    """The bytes of `<version>.json`; of many, those of the index are held nowhere, and those of the
    log compressed.

    They come from the index while it keeps them for publishing, else from the log. Where the log
    lacks the file, or has other bytes than were ratified of a catalog-managed table, they come from
    the index again. Raises `NotFound` (`version-not-found`).
    """
    table = await get_head(context, ref)
    if table.first_version <= version <= table.latest_version:
        # Inline bytes may be forgotten between the two look-ups, but only once they are
        # published, so the second one finds them.
        held = await context.index.content(table.id, version)
        if held is None:
            found = await context.storage.log(table.location, who=context.who).read(version)
            if isinstance(found, OversizedFile):
                raise NotFound(
                    f"the file of version {version} of table {table.name} is not what was "
                    f"committed: {found.why}",
                    code=Code.VERSION_NOT_FOUND,
                )
            record = await context.index.glance_at_commit(table.id, version)
            ratified = None if record is None or found is None else record.content_sha256
            if found is not None and (
                table.kind.log_first or ratified in (None, await offload.sha256_of(found))
            ):
                return _of_log(context, found)
            kept = await context.index.kept_content(table.id, version)
            if record is not None and kept is not None:
                is_it = not isinstance(kept, bytes) or (
                    await offload.sha256_of(kept) == record.content_sha256
                )
                if is_it:
                    # Clean-up took the file, or it is lost, or others have replaced it.
                    return _of_index(context, kept)
        else:
            return _of_index(context, held)
        if version == table.first_version:
            raise NotFound(
                f"version {version} of table {table.name} is known from a checkpoint only; its "
                "commit was gone from the log when the table was registered",
                code=Code.VERSION_NOT_FOUND,
            )
    raise no_such_version(table, version)


def _of_index(context: Context, found: bytes | LargeVersion) -> bytes | LargeContent:
    if isinstance(found, bytes):
        return found
    principal = context.caller.principal.name
    turn = partial(context.scan_pages.turn, principal)
    pieces = found.pieces(turn, context.scan_threads.of(principal))
    return LargeContent(size=len(found), pieces=pieces)


def _of_log(context: Context, found: bytes | LogFile) -> bytes | LargeContent:
    if isinstance(found, bytes):
        return found
    threads = context.scan_threads.of(context.caller.principal.name)
    return LargeContent(size=len(found), pieces=_in_threads(threads, found.pieces()))


async def _in_threads(threads: Share, pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    while (piece := await threads.run(next, pieces, None)) is not None:
        yield piece


def no_such_version(table: TableHead, version: int) -> NotFound:
    known = f"its latest is {table.latest_version}"
    if version < table.first_version:
        known = f"the first one that is held is {table.first_version}"
    return NotFound(
        f"table {table.name} has no version {version}; {known}", code=Code.VERSION_NOT_FOUND
    )
