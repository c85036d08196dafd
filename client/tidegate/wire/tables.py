"""Finding and making tables."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.answers import location_of
from tidegate.errors import TableNotFound
from tidegate.version import ENGINE_INFO
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Request, segment


def table_path(name: str) -> str:
    """The path of the table with this full name or id. Raises `TableNotFound` for an empty one."""
    if not name:
        raise TableNotFound("the table's name is empty", definite=True)
    return f"/tables/{segment(name)}"


def table_request(name: str) -> Request:
    """For the head of the table. Raises as `table_path`."""
    return Request(method="GET", path=table_path(name))


def default_location(connection: Connection, name: str) -> str:
    """Where the service puts a table to be. Raises `TableAlreadyExists` for a name that is
    taken, and `InvalidRequest` for what is none."""
    request = Request(method="GET", path="/tables/default-location", query={"name": name})
    return connection.call(request, location_of)


def first_commit(
    operation: str,
    *,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, str],
    user_metadata: str | None,
) -> dict[str, Any]:
    """What the request for a creation says of version 0, beside its content."""
    return {
        "operation": operation,
        "operation_parameters": dict(parameters),
        "operation_metrics": dict(metrics),
        "user_metadata": user_metadata,
        "engine_info": ENGINE_INFO,
    }


def creation_request(body: Mapping[str, Any]) -> Request:
    """A second copy would be told that the table exists: it is not to be repeated once it may have
    been executed."""
    return Request(method="POST", path="/tables", body=msgspec.json.encode(body))
