"""What is kept of tables that were forgotten, by their ids and the places they were at.

A log does not tell everything for ever: clean-up takes commits and with them the transaction ids
that they landed under, aborted ids of catalog-managed tables were never in it, and nothing in a
folder says that another table was there before. So forgetting a table keeps its ids and its head,
until it is registered again or what is kept is deleted for good.

These are the parts of the ports of `core.ports.index` that know of it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_service.core.access.roles import Caller
from tidegate_service.core.ports.records import CommitRecord, ForgottenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What the log of a table that was forgotten has otherwise than what landed: the first version
    with other bytes, None where there is none; and the versions and ids that are `lost` by that."""

    rewritten: int | None = None
    lost: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPlaces:
    """Where tables were forgotten that are still kept, at, inside or around a location: whether
    there are `others` than those in some scopes, and the folders `around` it where only such ones
    were."""

    others: bool
    around: frozenset[str]


class ForgottenHere(Protocol):
    """The part of `CommitSection` that knows who was at the table's location before."""

    async def forgotten(
        self,
        metadata_ids: Collection[str] | None = None,
        *,
        catalog_managed: bool | None = None,
        most: int | None = None,
    ) -> Sequence[ForgottenTable]:
        """What is kept of tables that were forgotten at the location of the section's table, the
        latest first, and no more than `most`; with `metadata_ids`, only of those whose metadata
        ever had one of these, with `catalog_managed`, only of those that were that, or were not."""
        ...

    async def metadata_ids(self) -> Collection[str]:
        """The ids that the metadata of the section's table has at its versions."""
        ...

    async def kept_places(self, scopes: Sequence[str]) -> KeptPlaces:
        """For the location of the section's table."""
        ...

    async def recall(self, table: ForgottenTable) -> Recalled:
        """Give the section's table, which has its versions, the ids of a forgotten one that it
        is: what landed up to its head under ids that its own versions do not hold, and
        aborted ids. Nothing is kept apart of them any more. An id whose version has other bytes
        now, and that no version has, is closed."""
        ...

    async def keep_landed(self, record: CommitRecord) -> None:
        """Keep what a transaction landed as whose version is before the table's first one; it has
        an id, under which nothing else has landed."""
        ...


class ForgottenTables(Protocol):
    """The part of `Index` that lists what is kept, and drops it."""

    async def forgotten_tables(self, *, after: str | None, limit: int) -> list[ForgottenTable]:
        """In the order of their ids, strictly after one."""
        ...

    async def delete_forgotten(self, table_id: str, *, by: Caller) -> bool:
        """Drop all that is kept of a forgotten table, and record it; False where there is none."""
        ...
