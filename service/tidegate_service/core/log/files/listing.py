"""Listing a log, however many files it has."""

from collections.abc import Awaitable, Callable

from tidegate_protocol.log.segment import BrokenLog, Listing
from tidegate_service.core.ports.store.storage import LogReader, UnreadableFile
from tidegate_service.core.sharing import offload


async def listed(
    log: LogReader,
    *,
    behind: int | None = None,
    between: Callable[[], Awaitable[None]] | None = None,
) -> Listing:
    """The log's files, or those after the version `behind` (`Log.entries`). `between` is awaited
    between two pages. Raises `BrokenLog` where there are more files than are read, and
    `Unavailable`."""
    found = Listing()
    try:
        async for entries in log.entries(behind=behind):
            if found and between is not None:
                await between()
            files = [(entry.name, entry.size) for entry in entries]
            # One page takes no time. Further pages go to a thread, so that others have their turns.
            await offload.run(offload.HEAVY if found else 0, found.take, files)
    except UnreadableFile as error:
        raise BrokenLog(str(error)) from None
    return found
