"""A handle on a table: what is asked of the service about it."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Self

import msgspec

from tidegate.answers import (
    aborted,
    app_transaction_version,
    content,
    domain_configuration,
    history_page,
    scan_of,
    table_head,
    transaction_status,
)
from tidegate.errors import InvalidRequest, VersionNotFound
from tidegate.models import Commit, Scan, TableHead, TableVersion, TransactionStatus
from tidegate.progress import progress
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import NDJSON, Request, segment
from tidegate.wire.manifests import Manifests, manifests_of, manifests_request
from tidegate.wire.proposal import abort_request
from tidegate.wire.vacuum import Vacuumed, vacuum_request, vacuumed
from tidegate_protocol.base.problems import Code
from tidegate_protocol.schema.table_schema import StructType

_HISTORY_PAGE = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TableHandle:
    """One table, by its `id`. Everything but id, name and location is asked of the service when it
    is wanted. `Transaction` and the Spark code stand on it; users hold a `Table`."""

    def __init__(self, connection: Connection, head: TableHead) -> None:
        self.connection = connection
        self.id = head.id
        self.name = head.name
        self.location = head.location

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, id={self.id!r}, location={self.location!r})"

    def for_application(self, application_id: str) -> Self:
        """This table, used by a Spark application: the service's log names it in every line, and
        the history has it as the tag `spark.app.id` of what it commits."""
        mine = copy.copy(self)
        mine.connection = self.connection.of_application(application_id)
        return mine

    def head(self) -> TableHead:
        """The table at its latest version, now."""
        return self.connection.call(self._get(""), table_head)

    def as_of(self, version: int) -> TableVersion:
        """The table at a version. Raises `VersionNotFound`."""
        # By a predicate that nothing can match: what is asked for is the version alone.
        scan = self.scan("false", version=version)
        return TableVersion(
            id=self.id,
            name=self.name,
            location=self.location,
            version=scan.version,
            timestamp=scan.timestamp,
            protocol=scan.protocol,
            metadata=scan.metadata,
        )

    @property
    def version(self) -> int:
        """The latest version, now."""
        return self.head().version

    @property
    def schema(self) -> StructType:
        """The schema at the latest version, now."""
        return self.head().schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns at the latest version, now."""
        return self.head().partition_columns

    def history(
        self,
        *,
        limit: int | None = None,
        from_version: int | None = None,
        to_version: int | None = None,
    ) -> list[Commit]:
        """Commits between two versions (both included; open where None), newest first; at most
        `limit` of them where it is given."""
        return list(self._history(limit, from_version, to_version))

    def _history(self, limit: int | None, first: int | None, last: int | None) -> Iterator[Commit]:
        left = limit
        while left is None or left > 0:
            size = _HISTORY_PAGE if left is None else min(left, _HISTORY_PAGE)
            query = {"limit": str(size)}
            if first is not None:
                query["from_version"] = str(first)
            if last is not None:
                query["to_version"] = str(last)
            page = self.connection.call(self._get("/commits", query), history_page)
            yield from page.commits
            if page.next_to_version is None:
                return
            last = page.next_to_version
            left = None if left is None else left - len(page.commits)

    def commit_bytes(self, version: int) -> bytes:
        """The bytes of `<version>.json`, published or not. Raises `VersionNotFound`."""
        request = Request(method="GET", path=self._path(f"/commits/{version}"), accept=NDJSON)
        return self.connection.call(request, content)

    def scan(
        self,
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Scan:
        """The files that may hold rows matching a Spark SQL predicate (all, without one), at a
        version, at the latest version not after a timestamp, or now.

        `timestamp` is an aware datetime, or milliseconds since the epoch. Raises
        `VersionNotFound`, and `InvalidRequest` (`invalid-predicate`).
        """
        if version is not None and timestamp is not None:
            raise InvalidRequest(
                f"expected a version or a timestamp, found {version} and {timestamp}",
                code=Code.INVALID_REQUEST,
                definite=True,
                error_class="DELTA_ONEOF_IN_TIMETRAVEL",
            )
        body: dict[str, object] = {}
        if where is not None:
            body["predicates"] = [where]
        if version is not None:
            body["version"] = version
        if timestamp is not None:
            body["timestamp"] = milliseconds(timestamp)
        request = Request(method="POST", path=self._path("/scan"), body=msgspec.json.encode(body))
        try:
            return self.connection.call(request, scan_of)
        except VersionNotFound as error:
            if timestamp is not None:
                error.error_class = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
            raise

    def txn_version(self, app_id: str) -> int:
        """The last version that an application recorded in this table, -1 for none."""
        path = f"/app-transactions/{segment(app_id)}"
        return self.connection.call(self._get(path), app_transaction_version)

    def domain(self, name: str) -> str | None:
        """The configuration of a metadata domain at the latest version. None where the table has no
        such domain."""
        path = f"/domains/{segment(name)}"
        return self.connection.call(self._get(path), domain_configuration)

    def transaction_status(self, transaction_id: str) -> TransactionStatus:
        """What has become of a transaction id. Raises `TransactionNotFound`, which does not rule
        out that a copy of it is on its way."""
        path = f"/transactions/{segment(transaction_id)}"
        return self.connection.call(self._get(path), transaction_status)

    def abort_transaction(self, transaction_id: str) -> None:
        """See to it that a transaction id never lands, not even by a copy still on its way.

        Raises `TransactionCommitted` with its `version` where it has landed.
        """
        self.connection.call(abort_request(self.id, transaction_id), aborted)

    def vacuum(
        self,
        *,
        retain: timedelta | None = None,
        allow_shorter: bool = False,
        dry_run: bool = False,
    ) -> Vacuumed:
        """Delete the data files that no version within the retention names: as long as the table's
        `delta.deletedFileRetentionDuration` says, or `retain`, which may be shorter only with
        `allow_shorter`. A dry run deletes nothing and says what would go.

        It takes as long as listing the table's folder does. Where it ends early, it can be called
        again. Raises `InvalidRequest` for a retention that is too short, `PermissionDenied` for
        anybody but the table's admins.
        """
        request = vacuum_request(
            self.id, retain=retain, allow_shorter=allow_shorter, dry_run=dry_run
        )
        with progress(lambda: f"VACUUM of {self.name}"):
            return self.connection.call(request, vacuumed)

    def generate_manifests(self) -> Manifests:
        """Write symlink manifests of the latest version, for readers that know nothing of Delta.

        Raises `InvalidRequest` for a table with mapped columns or deletion vectors."""
        return self.connection.call(manifests_request(self.id), manifests_of)

    def _get(self, path: str, query: dict[str, str] | None = None) -> Request:
        return Request(method="GET", path=self._path(path), query=query or {})

    def _path(self, path: str) -> str:
        return f"/tables/{segment(self.id)}{path}"


def milliseconds(timestamp: datetime | int) -> int:
    """Milliseconds since the epoch of an aware datetime, or of such a number. Raises `ValueError`
    for a datetime without a time zone."""
    if isinstance(timestamp, int):
        return timestamp
    if timestamp.utcoffset() is None:
        raise ValueError(
            f"expected a datetime with a time zone, found {timestamp!r}; "
            "add one, for example tzinfo=datetime.UTC"
        )
    # Down to the millisecond at or before it: rounding up could reach a later version.
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)
