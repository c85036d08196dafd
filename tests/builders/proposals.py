"""What writers propose, as values."""

import uuid
from typing import Any

from tidegate_protocol.log.actions import Action
from tidegate_protocol.proposal.transaction import Proposal, Reads


def reads(*predicates: str, **others: Any) -> Reads:
    """What was read: predicates, and by name `whole_table`, `files` and `app_ids`."""
    sets = {name: frozenset(others.pop(name, ())) for name in ("files", "app_ids")}
    return Reads(predicates=predicates, **sets, **others)


def proposal(
    *actions: Action,
    read_version: int | None = None,
    reads: Reads | None = None,
    operation: str = "WRITE",
    transaction_id: str | None = None,
    **fields: Any,
) -> Proposal:
    """A proposal with an id of its own. What was read is `reads`, or the fields of one."""
    by_name = {name: fields.pop(name) for name in Reads.__slots__ if name in fields}
    assert reads is None or not by_name
    return Proposal(
        transaction_id=transaction_id or str(uuid.uuid4()),
        operation=operation,
        actions=actions,
        read_version=read_version,
        reads=reads or Reads(**by_name),
        **fields,
    )
