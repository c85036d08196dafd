"""Whether a log has a version as the index has it, before the version's checkpoint is written."""

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.file_names import V2Checkpoint, parse
from tidegate_protocol.log.segment import BrokenLog, Checkpoint, Listing
from tidegate_service.core.checkpoints.comparison import difference
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.log.catching_up.tail import Ends, Tail, sha256_in
from tidegate_service.core.ports.checkpoints import SnapshotHead
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload


class SameLog:
    """A log that must hold a version as the index has it.

    The folder may have been deleted, or be another table's by now, and the database may have been
    restored to a time before. A checkpoint of the index's version would then tell the readers of
    that log that they have this table. The file of the version itself may be one that this service
    put into another table's log, so the log must have an earlier one, too.
    """

    def __init__(self, index: Index, log: Log, table: TableHead, head: SnapshotHead) -> None:
        self._index = index
        self._log = log
        self._table = table
        self._head = head
        self._compared: Checkpoint | None = None
        self._is_own = False

    async def check(self) -> None:
        """Raise `IndexUnavailable` where the index has another version than was read, and
        `StorageUnavailable` where the log has."""
        await self._index.is_published(self._table.id, self._head)
        if self._head.content_sha256 is None:
            await self._check_base()
            return
        content = await self._log.read(self._head.version)
        if content is None:
            raise self._not_own("its commit is not there")
        if await offload.sha256_of(content) != self._head.content_sha256:
            raise self._not_own("its commit has other bytes than the one in the index")
        await self._check_earlier()

    async def check_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Raise `Refused` where the log's checkpoint of the version cannot be read, and
        `StorageUnavailable` where the checkpoint is of another snapshot."""
        try:
            found = await difference(self._index, self._log, self._table, checkpoint)
        except UnreadableFile as error:
            raise Refused(
                f"the log's checkpoint of version {checkpoint.version} cannot be read: {error}",
                code=Code.BROKEN_LOG,
                hint="move the files of this checkpoint out of the log, and ask again",
            ) from None
        if found is not None:
            raise self._not_own(f"its checkpoint is not what the index has: {found}")

    async def has_v2(self, version: int) -> bool:
        """Whether the log has a V2 checkpoint of a version."""
        found, _ = await self.checkpoint(version)
        return found is not None and isinstance(parse(found.files[0]), V2Checkpoint)

    async def checkpoint(
        self, version: int, *, but_v2: bool = False
    ) -> tuple[Checkpoint | None, int]:
        """The log's complete checkpoint of a version, a V2 one before others or left out, and the
        bytes of its files in the log."""
        found = Listing()
        sizes: dict[str, int] = {}
        try:
            async for entries in self._log.entries(behind=version - 1 if version else None):
                some = {
                    entry.name: entry.size
                    for entry in entries
                    if not (but_v2 and isinstance(parse(entry.name), V2Checkpoint))
                }
                sizes |= some
                found.take(some.items())
                if entries and entries[-1].name >= f"{version + 1:020d}":
                    break
        except UnreadableFile:
            # The files that come first were listed.
            pass
        whole = found.checkpoints().get(version)
        return whole, sum(sizes[name] for name in whole.files) if whole else 0

    async def _check_earlier(self) -> None:
        """Check the version of the last checkpoint, which was put into the table's own log, else
        one that the index begins with. Where a checkpoint of others stands for that, the first
        commit behind counts. Once is enough: a log that is made anew afterwards has no such head.

        A version that is in the log after its rows are in the index is put by publishers, who see
        that the log is the table's."""
        if self._is_own or not self._table.kind.log_first:
            return
        known = await self._index.known_checkpoint(self._table.id)
        checked = known.version if known and known.epoch == self._table.epoch else None
        head = self._head.version
        earlier = min(Tail.of(self._table, checked=checked).earlier, head)
        files = {earlier: await sha256_in(self._log, earlier)}
        if files[earlier] is None:
            try:
                files = (await Ends(head, through=head).ask(self._log, None)).files
            except BrokenLog as error:
                raise self._not_own(f"the log cannot be read: {error}") from None
        for version, found in files.items():
            commit = await self._index.commit(self._table.id, version)
            known_sha256 = None if commit is None else commit.content_sha256
            if found is not None and known_sha256 not in (None, found):
                raise self._not_own(
                    f"version {version} has other bytes than the one in the index, as where others "
                    "have made another table in the folder"
                )
        self._is_own = True

    async def _check_base(self) -> None:
        """Check the checkpoint that the index was made from, where the index knows no commit of the
        version. The checkpoint is compared once, and later calls see that it is still there."""
        checkpoint, _ = await self.checkpoint(self._head.version)
        if checkpoint is None:
            raise self._not_own("the checkpoint that the index was made from is not there")
        if self._compared is None:
            await self.check_checkpoint(checkpoint)
            self._compared = checkpoint

    async def check_none(self) -> None:
        """Raise `StorageUnavailable` where the log has a complete checkpoint of the version by now,
        but a V2 one: there would be two."""
        found, _ = await self.checkpoint(self._head.version, but_v2=True)
        if found is not None:
            raise StorageUnavailable(
                f"another checkpoint of version {self._head.version} was written meanwhile; ask "
                "again, and that one is pointed to"
            )

    def _not_own(self, why: str) -> StorageUnavailable:
        return StorageUnavailable(
            f"version {self._head.version} in the log is not what the index has of it: {why}; no "
            "checkpoint is written there, and GET /tables/{table}/verify tells more"
        )
