"""What clients of Unity Catalog's API know a table by: its id, and the tag of its metadata.

The id of a catalog-managed table stands in its log, as a property of its metaData, since these
clients read it there. A table that was made without it gets it by one commit, when it is loaded
through this API for the first time.
"""

import hashlib
from dataclasses import replace
from uuid import UUID, uuid5

from tidegate_protocol.features.known import UNITY_TABLE_ID
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import encode, with_fields
from tidegate_protocol.proposal.transaction import Invalid, Proposal
from tidegate_service.core.access.roles import SERVICE
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.records import TableRecord

_ADOPTIONS = UUID("c1b1d9a2-5a0c-4a53-9a35-4f5d7a0e6f23")


def table_uuid(table: TableRecord) -> str:
    """The id that these clients name the table by: that in its log, or else the service's own."""
    known = None if table.metadata is None else table.metadata.configuration.get(UNITY_TABLE_ID)
    return table.id if known is None else known


def is_managed(table: TableIdentity) -> bool:
    """Whether these clients see a managed table, and commit to it through their API. To them a
    plain table is an external one."""
    return table.catalog_managed


def etag(table: TableRecord) -> str:
    """Changes with the table's protocol and metadata, and with nothing else."""
    sha = hashlib.sha256(table.id.encode())
    for action in (table.protocol, table.metadata):
        if action is not None:
            sha.update(b"\n" + encode(action))
    return f"etag-{sha.hexdigest()[:32]}"


def lacks_id(table: TableRecord) -> bool:
    """Whether the log of a catalog-managed table does not say its id yet."""
    return (
        is_managed(table)
        and table.metadata is not None
        and UNITY_TABLE_ID not in table.metadata.configuration
    )


async def give_id(context: Context, table: TableRecord) -> None:
    """Commit the id into the metadata of a table that lacks it, in the service's own name. A
    conflict with somebody who changed the table meanwhile is no error: the caller looks again.

    Raises as `propose` does, and `Refused` for a table that cannot take the commit.
    """
    assert table.metadata is not None
    configuration = {**table.metadata.configuration, UNITY_TABLE_ID: table.id}
    service = replace(SERVICE, asked_by=context.caller.asked_by or context.caller.principal)
    outcome = await propose(
        context.called_by(service), table.id, _proposal(table, table.metadata, configuration)
    )
    if isinstance(outcome, Invalid):
        raise Refused(
            f"table {table.name} cannot be given the property {UNITY_TABLE_ID}: {outcome.detail}",
            code=outcome.code,
        )


def _proposal(table: TableRecord, metadata: Metadata, configuration: dict[str, str]) -> Proposal:
    return Proposal(
        transaction_id=str(uuid5(_ADOPTIONS, f"{table.id} {table.latest_version}")),
        operation="SET TBLPROPERTIES",
        operation_parameters={"properties": {UNITY_TABLE_ID: table.id}},
        read_version=table.latest_version,
        actions=(with_fields(metadata, {"configuration": configuration}),),
    )
