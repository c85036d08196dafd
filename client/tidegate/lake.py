"""The way in: a service, and the tables it keeps."""

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec

from tidegate.errors import TableNotFound
from tidegate.models import DataFile, created, forgotten, table_head, table_page
from tidegate.new_table import check_new_table
from tidegate.schema_json import SchemaLike, schema_text
from tidegate.table import Table
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Request, segment
from tidegate.wire.flow import Repeat, RetryPolicy
from tidegate.wire.transport import HttpTransport
from tidegate_protocol.log.codec import encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

URL_VARIABLE = "TIDEGATE_URL"
TOKEN_VARIABLE = "TIDEGATE_TOKEN"
DEFAULT_TIMEOUT_S = 60.0

_TOKEN = re.compile(r"[\x21-\x7e]+")
_LIST_PAGE = 100


class Lake:
    """One Tidegate service. Safe to share between threads; close it, or use `with`."""

    def __init__(self, connection: Connection, *, url: str) -> None:
        """`url` is what the connection leads to, for the repr; `tidegate.connect` makes both."""
        self._connection = connection
        self.url = url

    def __repr__(self) -> str:
        return f"Lake({self.url!r})"

    def create_table(
        self,
        name: str,
        *,
        schema: SchemaLike | None = None,
        as_select: "DataFrame | None" = None,
        partition_by: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        location: str | None = None,
        catalog_managed: bool = False,
    ) -> Table:
        """Create a table `catalog.schema.table`; its creation is version 0. It is empty, of a
        `schema`, or has the columns and rows of a Spark DataFrame, `as_select`.

        The service chooses the location unless one is given, which `as_select` needs, since the
        rows are there before the table is. Properties that have no effect are
        named in a `UserWarning`. Raises `TableAlreadyExists` and
        `InvalidRequest` (or `InvalidProposal`, for what the table would need), and for `as_select`
        what `Table.append` raises (`tidegate.spark.write.as_select`; needs the `spark` extra).

        An answer that was lost is not asked for again, because a second copy would be told that
        the table exists: `ServiceUnavailable` with `definite` False leaves it open whether it
        was created, and `table(name)` tells.
        """
        columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)

        def create(
            schema: SchemaLike, properties: Mapping[str, str], files: Sequence[DataFile] = ()
        ) -> Table:
            text = schema_text(schema)
            check_new_table(text, columns)
            body: dict[str, Any] = {
                "name": name,
                "schema": msgspec.Raw(text.encode()),
                "partition_columns": columns,
                "properties": dict(properties),
                "catalog_managed": catalog_managed,
            }
            if comment is not None:
                body["comment"] = comment
            if location is not None:
                body["location"] = location
            if files:
                body["actions"] = [msgspec.Raw(encode(file)) for file in files]
            return self._created(body)

        if (schema is None) == (as_select is None):
            raise ValueError("expected a schema or as_select, found both or none")
        if schema is not None:
            return create(schema, properties or {})
        assert as_select is not None
        if location is None:
            raise ValueError("as_select writes the rows first; expected a location for them")
        from tidegate.spark.write import as_select as creating  # noqa: PLC0415 - Spark is an extra

        return creating.create_as_select(
            create,
            as_select,
            name=name,
            location=location,
            partition_by=columns,
            properties=properties or {},
        )

    def _created(self, body: Mapping[str, Any]) -> Table:
        request = Request(method="POST", path="/tables", body=msgspec.json.encode(body))
        head, told = self._connection.call(request, created, repeat=Repeat.NOT_EXECUTED)
        for warning in told:
            warnings.warn(warning, stacklevel=4)
        return Table(self._connection, head)

    def register_table(self, name: str, location: str) -> Table:
        """Adopt the Delta table at `location`, a URL that the service may use, as
        `catalog.schema.table`; its log is read as it is and nothing is written to it.

        Registering it again under the same name returns it. Raises `TableAlreadyExists` where the
        name or the location is another table's, `InvalidRequest` for a log that cannot be read
        and `InvalidProposal` for one that needs what the service cannot carry.

        Reading a large log may take longer than the `timeout` of the connection: it goes on, and
        the same call finds the table once it is done.
        """
        body = msgspec.json.encode({"name": name, "location": location})
        request = Request(method="POST", path="/tables/register", body=body)
        return Table(self._connection, self._connection.call(request, table_head))

    def table(self, name: str) -> Table:
        """The table with this full name (in any case) or id. Raises `TableNotFound`."""
        request = Request(method="GET", path=_path(name))
        return Table(self._connection, self._connection.call(request, table_head))

    def tables(self, prefix: str = "") -> Iterator[Table]:
        """The tables whose full name starts with `prefix`, in name order, asked for page by
        page as the iterator goes on."""
        cursor: str | None = None
        while True:
            query = {"prefix": prefix, "limit": str(_LIST_PAGE)}
            if cursor is not None:
                query["cursor"] = cursor
            request = Request(method="GET", path="/tables", query=query)
            page = self._connection.call(request, table_page)
            for head in page.tables:
                yield Table(self._connection, head)
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    def forget_table(self, name: str) -> None:
        """Make the service forget a table; its log and data files stay where they are.

        Raises `TableNotFound`. As with `create_table`, a lost answer is not asked for again.
        """
        request = Request(method="DELETE", path=_path(name))
        self._connection.call(request, forgotten, repeat=Repeat.NOT_EXECUTED)

    def last_commit_version(self, table: Table) -> int | None:
        """The latest version of a table that was committed through this lake, by any of its
        threads; None for none. A commit by the data source, whose processes have lakes of their
        own, is not among them. Nothing is asked of the service."""
        return self._connection.last_commits.of(table.id)

    def close(self) -> None:
        """Close the connections. Tables and transactions of this lake end with it."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    application_id: str | None = None,
) -> Lake:
    """The Tidegate service at `url`, else at `TIDEGATE_URL`; nothing is sent yet.

    `token` (else `TIDEGATE_TOKEN`) is sent as a bearer token and never shown. `timeout` in
    seconds bounds each call with its retries: no new attempt begins after it. `application_id`
    names the Spark application that calls; `Table.append` and its siblings know it by themselves.

    Raises `ValueError` for settings that cannot work.
    """
    address = _address(url if url is not None else os.environ.get(URL_VARIABLE, ""))
    secret = token if token is not None else os.environ.get(TOKEN_VARIABLE) or None
    if secret is not None and not _TOKEN.fullmatch(secret):
        raise ValueError(
            "the token is empty or holds a space, a control character or one beyond ASCII; "
            "expected it exactly as it was issued"
        )
    if not timeout > 0:
        raise ValueError(f"expected a timeout above 0 seconds, found {timeout}")
    transport = HttpTransport(address, token=secret)
    policy = RetryPolicy(deadline_s=timeout)
    return Lake(Connection(transport, policy=policy, application_id=application_id), url=address)


def _address(url: str) -> str:
    if not url:
        raise ValueError(
            "no service is named; expected a URL such as http://127.0.0.1:8720, "
            f"as argument or in {URL_VARIABLE}"
        )
    parts = urlsplit(url)
    # Not echoed: a URL that holds a password would put it into logs.
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL holds credentials; expected them as token, not in the URL")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"expected a URL that begins with http:// or https://, found {url!r}")
    if parts.query or parts.fragment:
        raise ValueError(f"expected a URL without query and fragment, found {url!r}")
    return url.rstrip("/")


def _path(name: str) -> str:
    if not name:
        raise TableNotFound("the table's name is empty", definite=True)
    return f"/tables/{segment(name)}"
