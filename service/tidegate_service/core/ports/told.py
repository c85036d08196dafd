"""What an index answers of heads that may go out to callers.

A primary shows commits that its synchronous standby never had: after a crash, and where somebody
cancelled the wait of a COMMIT. Where the standby takes over, another commit may get the version of
such a one. Who was told of the first would then take what it read for the second.
"""

from collections.abc import Sequence
from typing import Protocol

from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_service.core.ports.records import PAGE_BYTES, Glance, TableHead, TableRecord


class HeadsOnStandby(Protocol):
    """Heads of which it is known that the synchronous standby, where there is one, has them. What
    is before such a head it has, too."""

    def has(self, table: TableHead, *, database: str) -> bool:
        """Whether the row's head, read from this database, is known to be there."""

    def remember(self, table: TableHead, *, database: str) -> None:
        """It is there."""


class TellingIndex(Protocol):
    """Answers wait until the synchronous standby has the heads of all catalog-managed tables in
    them. Where there is none, and for heads that `known` has, nothing is waited for; `known` is
    made to remember the others. All raise `IndexUnavailable` where the standby does not say that it
    has them.
    """

    async def told_head(self, ref: str, *, known: HeadsOnStandby) -> TableHead | None: ...

    async def told_table(
        self, ref: str, *, known: HeadsOnStandby, most_metadata: int
    ) -> TableRecord | TableHead | None:
        """The head, with its version's protocol and metadata where these are no longer than
        `most_metadata` bytes."""

    async def told_glance(self, table_id: str, *, known: HeadsOnStandby) -> Glance | None: ...

    async def tables(
        self,
        *,
        prefix: str,
        after: str | None,
        limit: int,
        known: HeadsOnStandby,
        within: Sequence[str] | None = None,
        most_bytes: int = PAGE_BYTES,
    ) -> list[TableRecord]:
        """Tables whose name starts with `prefix`, in name order, strictly after a name; only those
        in a scope of `within` (lower case, `core.access.roles.Grant`) where that is given. Fewer
        than `limit` where their metadata holds `most_bytes` or more."""

    async def app_transaction(
        self, table_id: str, app_id: str, *, known: HeadsOnStandby
    ) -> Txn | None: ...

    async def domain(
        self, table_id: str, domain: str, *, known: HeadsOnStandby
    ) -> DomainMetadata | None:
        """The latest action of a metadata domain that is not removed."""
