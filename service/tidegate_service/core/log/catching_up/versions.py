"""Reading the versions of a log, several at a time."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sized
from itertools import chain
from typing import TypeVar

from tidegate_protocol.log.content import LogFile
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.storage import LogReader

READ_AHEAD = 8
"""Most commits that are read from the store at once."""
AHEAD_BYTES = 64 * 1024 * 1024
"""Most bytes that are read at once: of large commits, fewer than `READ_AHEAD` are."""

T = TypeVar("T", bound=Sized | None)


def contents(
    log: LogReader, versions: Iterable[int], *, beside: bytes | LogFile | None = None
) -> AsyncGenerator[tuple[int, bytes | LogFile | None], None]:
    """The bytes of each version, as of `in_order`. `beside` is the content of the version before,
    if the caller has it: it tells how large the next may be."""
    return in_order(log.read, versions, beside=beside)


async def in_order(
    read: Callable[[int], Awaitable[T]], versions: Iterable[int], *, beside: Sized | None = None
) -> AsyncGenerator[tuple[int, T], None]:
    """What `read` returns of each version, in order. While the caller looks at one version, the
    next few are being read. A caller that does not read to the end has to close the generator.
    Lengths, of `beside` too, are bytes, and tell how large the next version may be."""
    ahead: deque[tuple[int, asyncio.Future[T]]] = deque()
    upcoming = iter(versions)
    # Without `beside`, one version is read alone first: it tells how large they are.
    largest = 1 if beside is None else max(1, len(beside))
    at_once = 1 if beside is None else _at_once(largest)
    try:
        while True:
            while len(ahead) < at_once:
                version = next(upcoming, None)
                if version is None:
                    break
                ahead.append((version, asyncio.ensure_future(read(version))))
            if not ahead:
                return
            version, reading = ahead[0]
            try:
                content = await reading
            except StorageUnavailable:
                if len(ahead) == 1:
                    raise
                # Memory may have no room for several large versions at once.
                await _given_up(ahead)
                upcoming = chain([waiting for waiting, _ in ahead], upcoming)
                ahead, at_once = deque(), 1
                continue
            ahead.popleft()
            largest = max(largest, 0 if content is None else len(content))
            at_once = _at_once(largest)
            yield version, content
    finally:
        await _given_up(ahead)


def _at_once(largest: int) -> int:
    return max(1, min(READ_AHEAD, AHEAD_BYTES // largest))


async def _given_up(ahead: Iterable[tuple[int, asyncio.Future[T]]]) -> None:
    tasks = [reading for _, reading in ahead]
    for reading in tasks:
        reading.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
