"""The way in: a service, and the tables it keeps."""

import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec

from tidegate.answers import created, forgotten, table_head, table_page
from tidegate.definition import check_expressions
from tidegate.new_table import (
    check_feed_columns,
    check_new_table,
    check_properties,
    new_clustering,
)
from tidegate.schema_json import SchemaLike, schema_text
from tidegate.table import Table
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Request
from tidegate.wire.flow import Repeat, RetryPolicy
from tidegate.wire.proposal import patience
from tidegate.wire.tables import (
    creation_request,
    default_location,
    table_path,
    table_request,
)
from tidegate.wire.transport import HttpTransport
from tidegate_protocol.log.actions import Action
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
        self.connection = connection
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
        cluster_by: str | Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
        location: str | None = None,
        catalog_managed: bool = False,
        user_metadata: str | None = None,
    ) -> Table:
        """Create a table `catalog.schema.table`; its creation is version 0. It is empty, of a
        `schema`, or has the columns and rows of a Spark DataFrame, `as_select`.

        The service chooses the location unless one is given. `cluster_by` are the columns, by SQL's
        names for them, that OPTIMIZE is to cluster rows by. `user_metadata` is kept in the history.
        Properties that have no effect are named in a `UserWarning`. Raises `TableAlreadyExists` and
        `InvalidRequest` (or `InvalidProposal`, for what the table would need), and for `as_select`
        what `Table.append` raises (`tidegate.spark.write.as_select`; needs the `spark` extra).

        An answer that was lost is not asked for again, because a second copy would be told that
        the table exists: `ServiceUnavailable` with `definite` False leaves it open whether it
        was created, and `table(name)` tells.
        """
        columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        clusters = [cluster_by] if isinstance(cluster_by, str) else list(cluster_by)

        def create(
            schema: SchemaLike,
            properties: Mapping[str, str],
            content: Sequence[Action] = (),
            commit: Mapping[str, Any] = MappingProxyType({}),
        ) -> Table:
            text = schema_text(schema)
            check_new_table(text, columns)
            check_properties(properties)
            check_feed_columns(text, properties)
            actions = list(content)
            wanted = dict(properties)
            if clusters:
                clustered = new_clustering(clusters, text, wanted, columns)
                text, wanted = clustered.schema, {**wanted, **clustered.properties}
                actions.append(clustered.domain)
            body: dict[str, Any] = {
                "name": name,
                "schema": msgspec.Raw(text.encode()),
                "partition_columns": columns,
                "properties": wanted,
                "catalog_managed": catalog_managed,
                **commit,
            }
            if user_metadata is not None:
                body["user_metadata"] = user_metadata
            if comment is not None:
                body["comment"] = comment
            if location is not None:
                body["location"] = location
            if actions:
                body["actions"] = [msgspec.Raw(encode(action)) for action in actions]
            return self._created(body)

        if (schema is None) == (as_select is None):
            raise ValueError("expected a schema or as_select, found both or none")
        if schema is not None:
            check_expressions(schema_text(schema), properties or {}, statement="CREATE TABLE")
            return create(schema, properties or {})
        assert as_select is not None
        from tidegate.spark.write import as_select as creating  # noqa: PLC0415 - Spark is an extra

        # Asked for at any location: a name that is taken is refused before rows are asked for.
        default = default_location(self.connection, name)
        return creating.create_as_select(
            create,
            as_select,
            name=name,
            # The rows are there before the table is.
            location=location or default,
            partition_by=columns,
            cluster_by=clusters,
            properties=properties or {},
            comment=comment,
            is_managed=location is None,
            catalog_managed=catalog_managed,
            user_metadata=user_metadata,
            clock_ms=self.connection.now_ms,
        )

    def _created(self, body: Mapping[str, Any]) -> Table:
        request = creation_request(body)
        head, told = self.connection.call(
            request,
            created,
            repeat=Repeat.NOT_EXECUTED,
            policy=patience(self.connection.policy, actions=len(body.get("actions", ()))),
        )
        for warning in told:
            warnings.warn(warning, stacklevel=4)
        return Table(self.connection, head)

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
        return Table(self.connection, self.connection.call(request, table_head))

    def table(self, name: str) -> Table:
        """The table with this full name (in any case) or id. Raises `TableNotFound`."""
        return Table(self.connection, self.connection.call(table_request(name), table_head))

    def tables(self, prefix: str = "") -> Iterator[Table]:
        """The tables whose full name starts with `prefix`, in name order, asked for page by
        page as the iterator goes on."""
        cursor: str | None = None
        while True:
            query = {"prefix": prefix, "limit": str(_LIST_PAGE)}
            if cursor is not None:
                query["cursor"] = cursor
            request = Request(method="GET", path="/tables", query=query)
            page = self.connection.call(request, table_page)
            for head in page.tables:
                yield Table(self.connection, head)
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    def forget_table(self, name: str) -> None:
        """Make the service forget a table; its log and data files stay where they are.

        Raises `TableNotFound`. As with `create_table`, a lost answer is not asked for again.
        """
        request = Request(method="DELETE", path=table_path(name))
        self.connection.call(request, forgotten, repeat=Repeat.NOT_EXECUTED)

    def last_commit_version(self, table: Table) -> int | None:
        """The latest version of a table that was committed through this lake, by any of its
        threads; None for none. A commit by the data source, whose processes have lakes of their
        own, is not among them. Nothing is asked of the service."""
        return self.connection.last_commits.of(table.id)

    def close(self) -> None:
        """Close the connections. Tables and transactions of this lake end with it."""
        self.connection.close()

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
    max_commit_attempts: int | None = None,
) -> Lake:
    """The Tidegate service at `url`, else at `TIDEGATE_URL`; nothing is sent yet.

    `token` (else `TIDEGATE_TOKEN`) is sent as a bearer token and never shown. `timeout` in
    seconds bounds each call with its retries: no new attempt begins after it. `application_id`
    names the Spark application that calls; `Table.append` and its siblings know it by themselves.
    `max_commit_attempts` is how often a proposal is sent at most, where the service does not take
    it; without it, `timeout` alone bounds that.

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
    if max_commit_attempts is not None and max_commit_attempts < 1:
        raise ValueError(f"expected at least 1 commit attempt, found {max_commit_attempts}")
    transport = HttpTransport(address, token=secret)
    policy = RetryPolicy(deadline_s=timeout, commit_attempts=max_commit_attempts)
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
