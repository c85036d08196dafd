"""A snapshot as the rows of a checkpoint: its few small actions, and its files page by page."""

from collections.abc import AsyncIterator, Iterator

from tidegate_protocol.checkpoint.policy import CheckpointPolicy
from tidegate_protocol.log.actions import Action, Txn
from tidegate_protocol.log.codec import decode
from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.checkpoints import (
    BEFORE_ALL,
    CheckpointFile,
    CheckpointIndex,
    FileRows,
    PathKey,
    SnapshotHead,
)
from tidegate_service.core.sharing import offload


async def small_actions(head: SnapshotHead, policy: CheckpointPolicy) -> list[Action]:
    """All actions of the snapshot that are no files: protocol and metadata first."""
    lines = [*head.transactions, *head.domains]
    size = max(len(lines), sum(map(len, lines)) // BYTES_AN_ACTION)
    return await offload.run(size, _small_actions, head, policy)


def _small_actions(head: SnapshotHead, policy: CheckpointPolicy) -> list[Action]:
    actions: list[Action] = [head.protocol, head.metadata]
    actions.extend(_transactions(head, policy))
    actions.extend(map(decode, head.domains))
    return actions


def _transactions(head: SnapshotHead, policy: CheckpointPolicy) -> Iterator[Action]:
    """As in Delta, a transaction that does not say when it was written is kept only where the table
    has none dropped."""
    for action in map(decode, head.transactions):
        if policy.transactions_ms is None:
            yield action
        elif isinstance(action, Txn) and action.last_updated is not None:
            age_ms = head.now_ms - action.last_updated
            if age_ms < policy.transactions_ms:
                yield action


class SnapshotRows:
    """The rows of a snapshot's files, counted as they come."""

    def __init__(
        self, index: CheckpointIndex, table_id: str, head: SnapshotHead, policy: CheckpointPolicy
    ) -> None:
        self._index = index
        self._table_id = table_id
        self._head = head
        self._removed_after_ms = head.now_ms - policy.deleted_files_ms
        self.num_adds = 0
        self.count = 0

    async def pages(
        self, *, after: PathKey = BEFORE_ALL, through: PathKey | None = None
    ) -> AsyncIterator[FileRows]:
        """The pages of files behind one key, up to another."""
        async for page in self._index.file_rows(
            self._table_id,
            self._head,
            removed_after_ms=self._removed_after_ms,
            after=after,
            through=through,
        ):
            self.num_adds += page.num_adds
            self.count += page.count
            yield page

    def portions(self, most: int) -> "Portions":
        """All files, about `most` live ones at a time."""
        return Portions(self, most)

    def check_complete(self) -> None:
        """Raise unless all live files of the version came by."""
        if self.num_adds != self._head.num_files:
            raise IndexUnavailable(
                f"the index has {self.num_adds} live files of version {self._head.version}, and "
                f"counts {self._head.num_files}; GET /tables/{{table}}/verify tells more"
            )


class Portions:
    """The pages of a snapshot for one file after the other."""

    def __init__(self, rows: SnapshotRows, most: int) -> None:
        self._pages = rows.pages()
        self._most = most

    async def fill(self, file: CheckpointFile) -> None:
        """Write pages until the file has its share."""
        written = 0
        while written < self._most:
            page = await anext(self._pages, None)
            if page is None:
                return
            await file.take(page)
            written += page.num_adds

    async def drain(self, file: CheckpointFile) -> None:
        """Write all that is left."""
        async for page in self._pages:
            await file.take(page)
