"""A copy of a log, made without the lock of its table's row.

To make a table's index anew, its whole log is read in one commit section
(`core.log.loading.load`). A store may take minutes for that, and nobody could commit meanwhile. So
the log is copied to the instance's disk before, and the section reads the copy. A commit file never
changes: what is copied stays true, and what was committed since is read on from the store.
"""

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain

import msgspec

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import Unknown, parse
from tidegate_protocol.log.lines import decode_lines
from tidegate_protocol.log.segment import BrokenLog, Checkpoint, LogSegment, choose_segment
from tidegate_service.core.log.catching_up.sight import Behind
from tidegate_service.core.log.catching_up.versions import contents, in_order
from tidegate_service.core.log.copying.copy_file import CopyFile
from tidegate_service.core.log.files.checkpoint_stream import snapshot_actions
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.log.files.log_file import SpooledFile
from tidegate_service.core.log.loading.bases import MOST_BASES, BaseRefused
from tidegate_service.core.log.loading.reading_time import ReadingTime
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.storage import DatedFile, LogReader, UnreadableFile
from tidegate_service.core.sharing import offload

_PAGE = msgspec.msgpack.Decoder(list[LogEntry])


class CopiedLog:
    """What `core.log.loading.load.adopt` reads of `log`, which is that of the table at `location`.
    Until `copy` has returned, what is read is read from the store, and kept in `file`."""

    def __init__(
        self,
        log: LogReader,
        file: CopyFile,
        *,
        location: str,
        time: ReadingTime,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._log = log
        self._file = file
        self._time = time
        self._location = location
        self._monotonic_s = monotonic_s
        self._pages: list[int] | None = None
        self._checkpoints: dict[str, array[int]] = {}
        self._unreadable: UnreadableFile | None = None
        # In the order of the versions: there may be a million of them.
        self._versions, self._places = array("q"), array("q")
        self._large: dict[int, LogFile] = {}
        # Modification times of the versions behind the listing.
        self._times: dict[int, int] = {}
        self._end: int | None = None
        self._is_chosen = False
        self._refused = 0
        self._head = -1
        self._left_s = 0.0
        self.least = 0

    async def copy(self, *, through: int) -> None:
        """Copy the log to the end of its listing, and from there on to the version `through`. Later
        calls only go on to their version. What cannot be read is told to whoever reads the copy.
        Raises `StorageUnavailable`, also where the disk has no room, and as `ReadingTime` does."""
        if not self._is_chosen:
            try:
                await self._copy_segment(await self._segment())
            except (BrokenLog, UnreadableFile):
                return
            self._is_chosen = True
        assert self._end is not None
        behind = range(self._end + 1, through + 1)
        async with aclosing(in_order(self._log.read_dated, behind)) as commits:
            async for version, found in commits:
                if found is None:
                    return
                await self._keep(version, found.content)
                self._times[version] = found.modified_ms
                self._end = version

    def pass_over(self, refused: BaseRefused) -> None:
        """Have the next call of `copy` begin with a later base, of version `least` or later. Raises
        `refused` where `MOST_BASES` were tried."""
        self._refused += 1
        if self._refused == MOST_BASES:
            raise refused
        self.least = refused.base + 1
        self._is_chosen, self._unreadable = False, None

    def allow(self, head: int) -> None:
        """Have versions up to `head`, and no later ones, be read from the store where the copy
        lacks them. All reads together may take `CommitLimits.copy_read_on_s`."""
        self._head = head
        self._left_s = self._time.limits.copy_read_on_s

    async def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        """As of a `Log`, of the whole folder."""
        assert behind is None
        if self._pages is not None:
            for place in self._pages:
                yield _PAGE.decode(await self._file.text(place))
            return
        self._raise_unreadable()
        pages = []
        try:
            async for entries in self._log.entries():
                # A name of any bytes may lie beside those of a log.
                page = [entry for entry in entries if not isinstance(parse(entry.name), Unknown)]
                self._time.actions()
                pages.append(await self._file.add(msgspec.msgpack.encode(page)))
                yield page
        except UnreadableFile as error:
            self._unreadable = error
            raise
        self._pages = pages

    async def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        """As of a `Log`."""
        if (places := self._checkpoints.get(name)) is not None:
            for place in places:
                text = await self._file.text(place)
                yield await offload.run(offload.weight_of_log(text), _actions, text)
            return
        self._raise_unreadable()
        places = array("q")
        try:
            async for batch in self._log.checkpoint_actions(name):
                text = await offload.run(len(batch), encode_lines, batch)
                places.append(await self._file.add(text))
                self._time.actions(len(batch))
                yield batch
        except UnreadableFile as error:
            self._unreadable = error
            raise
        self._checkpoints[name] = places

    async def read(self, version: int) -> bytes | LogFile | None:
        """As of a `Log`, of a version that was copied."""
        if version in self._large:
            return self._large[version]
        place = bisect_left(self._versions, version)
        if place < len(self._versions) and self._versions[place] == version:
            return await self._file.text(self._places[place])
        return None

    async def read_dated(self, version: int) -> DatedFile | None:
        """As of a `Log`, of a version that `entries` lacks. Raises `Behind` where more was
        committed since than there is time for."""
        if (content := await self.read(version)) is not None:
            return DatedFile(content, self._times[version])
        if self._end is None or not self._end < version <= self._head:
            return None
        # What the section does between two reads may take much longer.
        began_s = self._monotonic_s()
        try:
            async with asyncio.timeout(max(0.0, self._left_s)):
                return await self._log.read_dated(version)
        except TimeoutError:
            raise Behind from None
        finally:
            self._left_s -= self._monotonic_s() - began_s

    def _raise_unreadable(self) -> None:
        if self._unreadable is not None:
            raise self._unreadable

    async def _segment(self) -> LogSegment:
        files = await listed(self)
        return await offload.run(len(files), partial(choose_segment, files, least=self.least))

    async def _copy_segment(self, segment: LogSegment) -> None:
        await self._copy_checkpoint(segment.checkpoint)
        if self._end is None:
            # They are the same whatever the base.
            base = () if segment.checkpoint is None else (segment.checkpoint.version,)
            versions = chain(segment.older, base, segment.replayed)
            async with aclosing(contents(self._log, versions)) as commits:
                async for version, content in commits:
                    if content is not None:
                        await self._keep(version, content)
            self._end = segment.head
        await self._copy_checkpoint(segment.newest)

    async def _copy_checkpoint(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is not None:
            async for _ in snapshot_actions(self, checkpoint, location=self._location):
                pass

    async def _keep(self, version: int, content: bytes | LogFile) -> None:
        self._time.version()
        if isinstance(content, bytes):
            self._places.append(await self._file.add(content))
            self._versions.append(version)
            return
        if isinstance(content, SpooledFile):
            await self._file.move_in(content)
        self._large[version] = content


def _actions(text: bytes) -> list[Action]:
    return list(decode_lines(text))
