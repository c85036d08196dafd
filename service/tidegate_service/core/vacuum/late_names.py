"""The names that tables gave to a table's files since its vacuum began: what `OtherNames` is of the
versions before. Asked for before files are deleted, since a version may bring back a file that the
listing found unnamed, as RESTORE does."""

from collections.abc import Collection, Sequence

from tidegate_protocol.log.paths import identity
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.ports.files.named_files import NamingTable
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.data_files import DataFile
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.vacuum.logs import read_on
from tidegate_service.core.vacuum.orphans import other_names, portions
from tidegate_service.core.vacuum.spelled import spelled


class LateNames:
    """`table` and `clones` are as they were before the listing. Paths of the table's own that are
    as a listing has them are not among the names: the index is asked for each of those."""

    def __init__(
        self, context: Context, table: TableRecord, clones: Sequence[NamingTable], share: Share
    ) -> None:
        self._context = context
        self._table = table
        self._share = share
        self._own_version = table.latest_version
        self._clones = {clone.id: clone for clone in clones}
        self._names: set[str] = set()
        self._weight = 0
        self._most = context.limits.late_names

    def without(self, files: Sequence[DataFile]) -> list[DataFile]:
        """The files that have no such name."""
        return [file for file in files if file.path not in self._names]

    async def read_own(self, latest_version: int) -> None:
        """Up to the version that the table has come to. Raises `Unavailable` where there are too
        many names; so does `read_clones`."""
        if latest_version > self._own_version:
            await self._read(self._table.id, self._own_version)
            self._own_version = latest_version

    async def read_clones(self) -> None:
        """Of all that name files of the table now; of those that were known to, others' commits are
        read in before. Also raises as `core.vacuum.logs.read_on`."""
        await read_on(self._context, self._table, tuple(self._clones))
        prefix = f"{identity(self._table.location)}/"
        for clone in await self._context.index.tables_naming(prefix, but=self._table.id):
            known = self._clones.get(clone.id)
            if clone == known:
                continue
            is_same = known is not None and known.epoch == clone.epoch
            await self._read(clone.id, known.latest_version if known and is_same else -1)
            self._clones[clone.id] = clone

    async def _read(self, table_id: str, after: int) -> None:
        named = await self._context.index.named_otherwise(
            table_id,
            after=after,
            most=self._most + 1,
            # What else another table names is none of this one's, however much that is.
            prefix=None if table_id == self._table.id else f"{identity(self._table.location)}/",
        )
        names: set[str] = set()
        for some in portions(named):
            names |= await self._share.run(other_names, some, self._table.location)
        self._check(len(named.paths), names)
        async for rows in spelled(
            self._context.index,
            self._share,
            table_id,
            named,
            is_other=table_id != self._table.id,
        ):
            names |= await self._share.run(other_names, rows, self._table.location)
            self._check(0, names)
        self._names |= names
        self._weight += sum(map(_weight, names))

    def _check(self, rows: int, names: Collection[str]) -> None:
        if rows > self._most or self._weight + sum(map(_weight, names)) > self._most:
            raise Unavailable(
                f"more than {self._most} files of table {self._table.name} were named meanwhile; "
                "vacuum again"
            )


def _weight(name: str) -> int:
    """Of how many names of the usual length it takes the memory."""
    return 1 + len(name) // 1024
