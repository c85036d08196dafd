"""Whether the places for tables can be written, and refuse a second write of a name.

The warehouse decides whether the service may start and is ready. Any other place may be some
tenant's, who can take it away: it keeps nobody from the rest, and has a task that tries it again
until it answers, whether anybody asks for it or not.
"""

import asyncio
import logging
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress

from tidegate_service.core.access.locations import PROBES
from tidegate_service.core.errors import ServiceError, StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.limits import DEFAULTS, StorageLimits
from tidegate_service.storage.roots import ReadFile, Root

logger = logging.getLogger("tidegate.service")

PROBE = f"{PROBES}/put-if-absent"
PROBE_ATTEMPTS = 3
PROBE_BYTES = 16
"""The file has as many where a store let the second write be made, and none otherwise."""


class Probing:
    """Of the places of one storage, of which the first is the warehouse. Of one event loop."""

    def __init__(
        self, roots: Sequence[Root], read: ReadFile, *, limits: StorageLimits = DEFAULTS
    ) -> None:
        self._warehouse, *self._others = roots
        self._read = read
        self._limits = limits
        self._has_begun = False
        self._failed: dict[str, str] = {}
        self._trying: list[asyncio.Task[None]] = []

    def check(self, root: Root) -> None:
        """Raise `StorageUnavailable` for a place that was tried and is not to be used yet."""
        why = self._failed.get(root.url)
        if why is not None:
            raise StorageUnavailable(f"{root.url} cannot be used yet: {why}")

    async def probe(self) -> None:
        """Raise `StorageUnavailable` unless the warehouse can be used. The first time that it can,
        the other places are tried, too, and waited for, `StorageLimits.probe_s` at most: one that
        has not answered by then is not to be used before it does."""
        if self._has_begun:
            await _answers(self._warehouse)
            return
        await self._honours_put_if_absent(self._warehouse)
        self._has_begun = True
        tried = [asyncio.Event() for _ in self._others]
        self._trying = [
            asyncio.create_task(self._keep_trying(root, each), name=f"probing {root.url}")
            for root, each in zip(self._others, tried, strict=True)
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.probe_s):
                for each in tried:
                    await each.wait()
        for root, each in zip(self._others, tried, strict=True):
            if not each.is_set():
                self._fails(root, f"it did not answer within {self._limits.probe_s:g} s")

    async def close(self) -> None:
        """Try no place any more."""
        for trying in self._trying:
            trying.cancel()
        await asyncio.gather(*self._trying, return_exceptions=True)

    async def _keep_trying(self, root: Root, tried: asyncio.Event) -> None:
        """Until it can be used; `tried` is set once it was tried."""
        rest_s = self._limits.probe_rest_s
        while True:
            try:
                await self._honours_put_if_absent(root)
            except (ServiceError, UnreadableFile) as error:
                # Whatever its owner has put there.
                self._fails(root, str(error), getattr(error, "__notes__", ()))
            except Exception as error:
                # A defect that one place brings out must keep nobody from the others.
                logger.exception("probing met a defect", extra={"place": root.url})
                self._fails(root, f"a defect ({type(error).__name__})")
            else:
                break
            tried.set()
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, self._limits.probe_longest_rest_s)
        if self._failed.pop(root.url, None) is not None:
            logger.info("a place for tables can be used", extra={"place": root.url})
        tried.set()

    def _fails(self, root: Root, why: str, notes: Iterable[str] = ()) -> None:
        if root.url not in self._failed:
            logger.error(
                "a place for tables cannot be used",
                extra={"place": root.url, "why": why, "what to do": "; ".join(notes)},
            )
        self._failed[root.url] = why

    async def _honours_put_if_absent(self, root: Root) -> None:
        """A name that stays: a probe needs no right to delete, and leaves one file."""
        # A mount that hangs does so at once, before it has others' threads.
        await _put(root, b"", may_hang=True)
        before = await self._content(root)
        second = await _put(root, secrets.token_bytes(PROBE_BYTES))
        after = await self._content(root)
        # Not as a log is listed: its owner may have put a million names there.
        await root.has_any(PROBES, root.reading.of(""))
        if second is not PutResult.EXISTS or before is None or before != after:
            raise StorageUnavailable(
                f"{root.url} cannot be used to keep tables: it does not honour put-if-absent "
                "(a second write of one name is expected to be refused and was "
                f"{'made' if before != after else second.value}), so commits would overwrite "
                "each other"
            )

    async def _content(self, root: Root) -> bytes | None:
        found = await root.read(PROBE, self._read, root.reading.of(""), most_bytes=PROBE_BYTES)
        if found is None:
            return None
        if isinstance(found.content, bytes):
            return found.content
        raise StorageUnavailable(
            f"{root.url} cannot be used to keep tables: {PROBE} is expected to have at most "
            f"{PROBE_BYTES} bytes and has {len(found)}"
        )


async def _answers(root: Root) -> None:
    """Raise `StorageUnavailable` unless the file of the first probe is there."""
    try:
        # No folder is made: a missing one is a file system that was taken away since, and its mount
        # point would pass for it.
        result = await root.put_if_absent(PROBE, b"", create_folders=False)
    except StorageUnknown as error:
        raise _unavailable(error) from error
    if result is not PutResult.EXISTS:
        raise StorageUnavailable(
            f"{root.url} is not what it was at the start: {PROBE}, which was written then, was gone"
        )


async def _put(root: Root, content: bytes, *, may_hang: bool = False) -> PutResult:
    """Other instances probe the same name, and a store may make them wait for each other."""
    for attempt in range(1, PROBE_ATTEMPTS + 1):
        try:
            return await root.put_if_absent(PROBE, content, create_folders=True, may_hang=may_hang)
        except StorageUnknown as error:
            if attempt == PROBE_ATTEMPTS:
                raise _unavailable(error) from error
    raise AssertionError("the last attempt either returns or raises")


def _unavailable(error: StorageUnknown) -> StorageUnavailable:
    unavailable = StorageUnavailable(error.detail)
    for note in getattr(error, "__notes__", ()):
        unavailable.add_note(note)
    return unavailable
