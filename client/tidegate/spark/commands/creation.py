"""Tables that commands make by one commit: found by their names, and created with their files."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidegate.answers import created, table_head
from tidegate.errors import TableNotFound
from tidegate.models import TableHead
from tidegate.wire.connection import Connection
from tidegate.wire.flow import Repeat
from tidegate.wire.proposal import patience
from tidegate.wire.tables import creation_request, first_commit, table_request
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.codec import encode


def head_named(connection: Connection, name: str) -> TableHead | None:
    """The head of the table with this full name, if there is one."""
    try:
        return connection.call(table_request(name), table_head)
    except TableNotFound:
        return None


def create_by(
    connection: Connection,
    operation: str,
    definition: Mapping[str, Any],
    actions: Sequence[Action],
    *,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, str],
    user_metadata: str | None,
) -> tuple[TableHead, list[str]]:
    """Create a table whose version 0 is a commit of this operation with these actions, and return
    its head and what is to be told of it. `definition` is the rest of the request's body.

    Raises as `Lake.create_table` does. An answer that was lost is not asked for again.
    """
    body = {
        **definition,
        "actions": [msgspec.Raw(encode(action)) for action in actions],
        **first_commit(
            operation, parameters=parameters, metrics=metrics, user_metadata=user_metadata
        ),
    }
    return connection.call(
        creation_request(body),
        created,
        repeat=Repeat.NOT_EXECUTED,
        policy=patience(connection.policy, actions=len(actions)),
    )
