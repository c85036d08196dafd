"""Questions about a plain table's log: whether it is still the one that the index knows, and goes
on from there.

A version's file never changes, and is there until a checkpoint stands for it. So a log that has
other bytes of a version is not the table's, whatever it has of later ones: those may be commits
that this service put into another table's log.
"""

from dataclasses import dataclass, replace
from functools import partial

from tidegate_protocol.log.segment import choose_segment, missing
from tidegate_service.core.log.catching_up.sight import Between
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload


@dataclass(frozen=True, slots=True)
class Tail:
    """What does the log have of an earlier version, of the head, and behind the head?"""

    earlier: int
    head: int

    @classmethod
    def of(cls, table: TableHead, *, checked: int | None = None) -> "Tail":
        """Of the head, and of the one that was `checked` before. Without that, of the first version
        of the index; where that is not version 0, the index may know a checkpoint of it alone, and
        the version after it is asked for."""
        first, latest = table.first_version, table.latest_version
        earlier = first + (first > 0) if checked is None else max(first, checked)
        return cls(min(earlier, latest), latest)

    def at(self, table: TableHead) -> "Tail":
        return replace(
            self, earlier=max(self.earlier, table.first_version), head=table.latest_version
        )

    async def ask(self, log: Log, between: Between | None) -> "TailFound":
        head = await sha256_in(log, self.head)
        earlier = head if self.earlier == self.head else await sha256_in(log, self.earlier)
        absent = None if head is None else await gap(log, self.head)
        return TailFound({self.earlier: earlier, self.head: head}, self, absent)


@dataclass(frozen=True, slots=True)
class TailFound:
    """The SHA-256 of the files by version, None of one that is gone. `absent` is the version that
    is missing behind the head, if any, and is looked for only where the head's file is there."""

    files: dict[int, str | None]
    asked: Tail
    absent: int | None

    @property
    def goes_on(self) -> bool:
        """Whether the head is there, and all that is behind."""
        return self.files[self.asked.head] is not None and self.absent is None

    @property
    def is_whole(self) -> bool:
        """Whether the earlier version is there, too."""
        return self.goes_on and self.files[self.asked.earlier] is not None


@dataclass(frozen=True, slots=True)
class Ends:
    """Which versions does the log begin and end with? The index has none behind `head`. `through`
    is the last one that counts."""

    head: int
    through: int | None = None

    def at(self, table: TableHead) -> "Ends":
        return replace(self, head=table.latest_version)

    async def ask(self, log: Log, between: Between | None) -> "EndsFound":
        names = await listed(log, between=between)
        choose = partial(choose_segment, names, through=self.through)
        segment = await offload.run(len(names), choose)
        base = 0 if segment.checkpoint is None else segment.checkpoint.version
        first = min((one for one in names.commits if one >= base), default=None)
        if first is None or first > self.head:
            return EndsFound({}, segment.head)
        return EndsFound({first: await sha256_in(log, first)}, segment.head)


@dataclass(frozen=True, slots=True)
class EndsFound:
    """The first commit that the log has from its first readable version on, with its SHA-256, where
    that is none behind the head, and the newest version."""

    files: dict[int, str | None]
    last: int


async def sha256_in(log: Log, version: int) -> str | None:
    """Of the version's file; None where there is none."""
    content = await log.read(version)
    return None if content is None else await offload.sha256_of(content)


async def gap(log: Log, head: int) -> int | None:
    """The first version behind the head that is missing in the log, although the log has a later
    version, or a complete checkpoint of the missing version or a later one; None where there is no
    such version. Raises `BrokenLog` where too many files lie behind the head."""
    files = await listed(log, behind=head)
    for version in await offload.run(len(files), partial(missing, files, behind=head)):
        # Others may have written it while the log was listed.
        if await log.read(version) is None:
            return version
    return None
