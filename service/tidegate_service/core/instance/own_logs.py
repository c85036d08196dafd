"""What whoever publishes has seen of logs of catalog-managed tables, and has put there."""

from collections import OrderedDict
from typing import NamedTuple, TypeVar

from tidegate_service.core.instance.log_checks import TABLES
from tidegate_service.core.ports.records import TableHead

T = TypeVar("T")


class _Head(NamedTuple):
    database: str
    epoch: int
    version: int
    timestamp: int


class OwnLogs:
    """The tables whose logs were seen to be their own: for each, the database and the
    version that it was published to. A table that goes back behind that version is looked at
    again.

    Also the heads that were put into their logs, with all before them. The index is told of these
    later, by the publisher, who finds them there."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._put: OrderedDict[str, _Head] = OrderedDict()

    def has(self, table_id: str, through: int, *, database: str) -> bool:
        """Whether the log was seen to be the table's, at `through` or an earlier version."""
        seen = self._seen.get(table_id)
        return seen is not None and seen[0] == database and seen[1] <= through

    def remember(self, table_id: str, through: int, *, database: str) -> None:
        _keep(self._seen, table_id, (database, through))

    def put(self, table: TableHead, *, database: str) -> None:
        """The table's log has its head, as it is in this database, and all before it."""
        head = _Head(database, table.epoch, table.latest_version, table.latest_timestamp)
        _keep(self._put, table.id, head)

    def has_put(self, table_id: str, version: int) -> bool:
        """Whether it is worth a look if the log has the version already."""
        put = self._put.get(table_id)
        return put is not None and version <= put.version

    def lacks_only_head(self, table: TableHead, *, database: str) -> bool:
        """Whether the log is known to have all versions before the table's head."""
        before = table.latest_version - 1
        if table.published_version == before:
            return True
        put = self._put.get(table.id)
        return put is not None and put[:3] == (database, table.epoch, before)

    def database_of(self, table: TableHead) -> str | None:
        """The database whose head, this one, was put into the log; None where it was not."""
        put = self._put.get(table.id)
        head = (table.epoch, table.latest_version, table.latest_timestamp)
        return put.database if put is not None and put[1:] == head else None


def _keep(known: OrderedDict[str, T], table_id: str, value: T) -> None:
    known[table_id] = value
    known.move_to_end(table_id)
    while len(known) > TABLES:
        known.popitem(last=False)
