"""REPLACE TABLE: another table in the place of this one, without rows, in one commit."""

from tidegate.models import Receipt
from tidegate.new_table import check_new_table
from tidegate.spark.alter.alteration import Alteration, as_json
from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.write.clustering import replacing
from tidegate.spark.write.protocol import protocol_in_place_of
from tidegate.spark.write.write import check_removable
from tidegate_protocol.features.known import CLUSTERING


def replace_table(alteration: Alteration, wanted: TableDefinition, *, operation: str) -> Receipt:
    """Replace rows, columns, partitioning, clustering, properties and comment by a definition; id,
    name, location and history stay, and so do features of the protocol. `operation` is Delta's
    name.

    Raises `InvalidRequest`, `InvalidProposal` for an append-only table, and what
    `Transaction.commit` raises.
    """
    check_removable(alteration.layout)
    check_new_table(wanted.schema.json(), wanted.partition_by)
    changes = wanted.in_place_of(alteration.metadata, alteration.layout)
    configuration = changes["configuration"]
    domain = replacing(
        wanted.cluster_by,
        was_clustered=alteration.supports(CLUSTERING),
        schema_text=changes["schemaString"],
        configuration=configuration,
        partition_by=changes["partitionColumns"],
    )
    protocol = protocol_in_place_of(alteration.protocol, wanted, changes)
    if protocol != alteration.protocol:
        alteration.set_protocol(protocol)
    removed = alteration.transaction.filter_files()
    alteration.set_metadata(changes)
    if domain is not None:
        alteration.transaction.action(domain)
    alteration.transaction.remove(removed)
    parameters = {
        "isManaged": "false",
        "description": wanted.comment,
        "partitionBy": as_json(changes["partitionColumns"]),
        "clusterBy": as_json(list(wanted.cluster_by)),
        "properties": as_json(configuration),
    }
    return alteration.commit(operation, parameters)
