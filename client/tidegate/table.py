"""A table, as the service knows it."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from tidegate.connection import Connection
from tidegate.exchange import NDJSON, Request, segment
from tidegate.models import (
    Commit,
    Receipt,
    Scan,
    TableHead,
    TransactionStatus,
    aborted,
    app_transaction_version,
    content,
    history_page,
    scan_of,
    table_head,
    transaction_status,
)
from tidegate.proposal import abort_request
from tidegate.transaction import Transaction
from tidegate_protocol.schema import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HISTORY_PAGE = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Table:
    """A handle on one table: its `id` and `location` never change, and everything else is asked
    of the service when it is wanted.

    Handles come from `Lake.table`, `Lake.tables` and `Lake.create_table`. Every method raises
    `TableNotFound` once the service has forgotten the table, even where a new one has its name.
    """

    def __init__(self, connection: Connection, head: TableHead) -> None:
        self._connection = connection
        self.id = head.id
        self.name = head.name
        self.location = head.location

    def __repr__(self) -> str:
        return f"Table({self.name!r}, id={self.id!r}, location={self.location!r})"

    def for_application(self, application_id: str) -> "Table":
        """This table, used by a Spark application: the service's log names it in every line, and
        the history has it as the tag `spark.app.id` of what it commits."""
        mine = copy.copy(self)
        mine._connection = self._connection.of_application(application_id)
        return mine

    def head(self) -> TableHead:
        """The table at its latest version, now."""
        return self._connection.call(self._get(""), table_head)

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
            page = self._connection.call(self._get("/commits", query), history_page)
            yield from page.commits
            if page.next_to_version is None:
                return
            last = page.next_to_version
            left = None if left is None else left - len(page.commits)

    def commit_bytes(self, version: int) -> bytes:
        """The bytes of `<version>.json`, published or not. Raises `VersionNotFound`."""
        request = Request(method="GET", path=self._path(f"/commits/{version}"), accept=NDJSON)
        return self._connection.call(request, content)

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
        body: dict[str, object] = {}
        if where is not None:
            body["predicates"] = [where]
        if version is not None:
            body["version"] = version
        if timestamp is not None:
            body["timestamp"] = _milliseconds(timestamp)
        request = Request(method="POST", path=self._path("/scan"), body=msgspec.json.encode(body))
        return self._connection.call(request, scan_of)

    def transaction(
        self, *, transaction_id: str | None = None, head: TableHead | None = None
    ) -> Transaction:
        """Begin a transaction at the latest version, or at the one that `head` has, of an
        earlier `head()` of this table: what has changed since then is judged as a conflict.

        A `transaction_id` of the caller's own names work that may be done again after a crash:
        it lands at most once, and as it may have been proposed before, its outcome counts as
        unknown until the service answers for this very id.
        """
        return Transaction(
            self,
            self._connection,
            head=self.head() if head is None else head,
            transaction_id=str(uuid4()) if transaction_id is None else transaction_id,
            in_doubt=transaction_id is not None,
        )

    def txn_version(self, app_id: str) -> int:
        """The last version that an application recorded in this table, -1 for none."""
        path = f"/app-transactions/{segment(app_id)}"
        return self._connection.call(self._get(path), app_transaction_version)

    def transaction_status(self, transaction_id: str) -> TransactionStatus:
        """What has become of a transaction id. Raises `TransactionNotFound`, which does not rule
        out that a copy of it is still on its way."""
        path = f"/transactions/{segment(transaction_id)}"
        return self._connection.call(self._get(path), transaction_status)

    def abort_transaction(self, transaction_id: str) -> None:
        """See to it that a transaction id never lands, not even by a copy still on its way.

        Raises `TransactionCommitted` with its `version` where it has landed.
        """
        self._connection.call(abort_request(self.id, transaction_id), aborted)

    def append(
        self,
        df: "DataFrame",
        *,
        user_metadata: str | None = None,
        txn: tuple[str, int] | None = None,
    ) -> Receipt | None:
        """Append a Spark DataFrame's rows in one commit; None where there was nothing to
        commit. See `tidegate.spark.write.append`. Needs the `spark` extra."""
        from tidegate.spark import write  # noqa: PLC0415 - the HTTP client works without Spark

        return write.append(self, df, user_metadata=user_metadata, txn=txn)

    def overwrite(
        self,
        df: "DataFrame",
        *,
        replace_where: str | None = None,
        user_metadata: str | None = None,
        transaction: Transaction | None = None,
    ) -> Receipt | None:
        """Replace all rows, or those matching `replace_where`, by a Spark DataFrame's, in one
        commit; None where there was nothing to commit. See `tidegate.spark.write.overwrite`.
        Needs the `spark` extra."""
        from tidegate.spark import write  # noqa: PLC0415 - the HTTP client works without Spark

        return write.overwrite(
            self,
            df,
            replace_where=replace_where,
            user_metadata=user_metadata,
            transaction=transaction,
        )

    def read(
        self,
        spark: "SparkSession",
        where: str | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | str | None = None,
    ) -> "DataFrame":
        """The rows matching a predicate (all, without one) as a Spark DataFrame, at a version or
        timestamp as `scan` has them; the timestamp may be ISO 8601 text with a time zone, too.
        Needs the `spark` extra."""
        from tidegate.spark import read  # noqa: PLC0415 - the HTTP client works without Spark

        return read.read(self, spark, where=where, version=version, timestamp=timestamp)

    def _get(self, path: str, query: dict[str, str] | None = None) -> Request:
        return Request(method="GET", path=self._path(path), query=query or {})

    def _path(self, path: str) -> str:
        return f"/tables/{segment(self.id)}{path}"


def _milliseconds(timestamp: datetime | int) -> int:
    if isinstance(timestamp, int):
        return timestamp
    if timestamp.utcoffset() is None:
        raise ValueError(
            f"expected a datetime with a time zone, found {timestamp!r}; "
            "add one, for example tzinfo=datetime.UTC"
        )
    # Down to the millisecond at or before it: rounding up could reach a later version.
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)
