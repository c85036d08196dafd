"""Tables made of a DataFrame: created with its rows (CREATE TABLE AS SELECT), or replaced by them.

A table that is created has its files in version 0, so that nobody ever sees it without its rows.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from tidegate.active import check_none_active
from tidegate.handle import TableHandle
from tidegate.models import Receipt
from tidegate.new_table import (
    check_columns,
    check_feed_columns,
    new_clustering,
    new_columns,
)
from tidegate.schema_json import schema_text
from tidegate.spark.columns.conform import conform
from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.columns.schema_change import new_column
from tidegate.spark.data_files.staging import (
    DataFiles,
    TransactionFolder,
    created_with_files,
    private_folder,
)
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.expressions.definitions import check_definition
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.session_settings import metadata_of, new_properties
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.tables.refusals import check_writable
from tidegate.spark.write import idempotence
from tidegate.spark.write.beginning import begun_for, check_repeatable
from tidegate.spark.write.clustering import replacing
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.protocol import protocol_in_place_of
from tidegate.spark.write.repeats import repeated
from tidegate.spark.write.rows import write_rows
from tidegate.spark.write.write import check_removable
from tidegate.wire.tables import first_commit
from tidegate_protocol.features.known import CLUSTERING, CURRENT_DEFAULT
from tidegate_protocol.features.properties import (
    FEATURE_PREFIX,
    IN_COMMIT_TIMESTAMPS,
    TableProperties,
    storable,
)
from tidegate_protocol.features.table_features import protocol_for, supports
from tidegate_protocol.log.actions import Action, Metadata, Txn
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.scan.clustering import physical_paths
from tidegate_protocol.schema.data_types import LENGTH_KEY

T = TypeVar("T")
_CREATE = "CREATE TABLE AS SELECT"
_DEFAULTS = "allowColumnDefaults"


def create_as_select(
    create: Callable[[str, Mapping[str, str], Sequence[Action], Mapping[str, Any]], T],
    df: DataFrame,
    *,
    name: str,
    location: str,
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    properties: Mapping[str, str],
    comment: str | None,
    is_managed: bool,
    catalog_managed: bool,
    user_metadata: str | None,
    clock_ms: Callable[[], int],
) -> T:
    """Write the DataFrame's rows below the location, and have `create` make a table of its columns,
    of the properties with the session's defaults for new tables, of the files and the session's
    `txnAppId` and `txnVersion`, and of what version 0 says of itself. `is_managed`: nobody but the
    service has chosen the location; `catalog_managed`: the table is to be.

    Raises as `Table.append` does before a table is asked for, and then what `create` raises; which
    files stay behind, `created_with_files` says.
    """
    spark = df.sparkSession
    txn = idempotence.txn_of(spark)
    wanted = new_properties(spark, properties)
    found = columns_of(df.schema, wanted)
    columns = schema_text(found)
    check_columns(columns, wanted, partition_by)
    check_feed_columns(columns, wanted)
    check_definition(spark, found, wanted, statement=_CREATE)
    schema, of_columns = new_columns(columns, wanted)
    clustering = None
    if cluster_by:
        clustering = new_clustering(cluster_by, schema, wanted, partition_by)
    layout = TableLayout.of(
        name=name,
        location=location,
        metadata=Metadata(
            id=name,
            schema_string=schema,
            partition_columns=tuple(partition_by),
            configuration=wanted,
        ),
    )
    protocol = protocol_for(layout.properties, layout.schema, catalog_managed=False)
    check_writable(layout, protocol)
    conformed = conform(df, layout)
    folder = TransactionFolder(layout, new_folder(str(uuid4())), store_at(location, spark))

    def write() -> tuple[DataFiles, dict[str, str]]:
        with Passes(spark, operation=_CREATE, table=name) as passes:
            passes.writes_rows()
            files = folder.write(conformed)
            return files, _metrics(files) | passes.metrics()

    # A catalog-managed table gets it from the service.
    of_kind = {IN_COMMIT_TIMESTAMPS: "true"} if catalog_managed else {}
    parameters = {
        "isManaged": "true" if is_managed else "false",
        "description": comment,
        "partitionBy": json.dumps(layout.partition_columns),
        **({} if clustering is None else {"clusterBy": json.dumps(clustering.columns)}),
        "properties": json.dumps(of_kind | storable(wanted) | of_columns),
    }

    def create_of(written: tuple[DataFiles, dict[str, str]]) -> T:
        files, metrics = written
        actions: list[Action] = list(files.adds)
        if txn is not None:
            actions.append(Txn(app_id=txn[0], version=txn[1], last_updated=clock_ms()))
        commit = first_commit(
            _CREATE,
            parameters=parameters,
            metrics=metrics,
            user_metadata=metadata_of(user_metadata, spark),
        )
        return create(schema, wanted, actions, commit)

    made = created_with_files(folder, write, create_of)
    idempotence.reset(spark, txn)
    return made


def replace(
    table: TableHandle,
    df: DataFrame,
    *,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    comment: str | None,
    cluster_by: Sequence[str] = (),
    operation: str = "REPLACE TABLE AS SELECT",
    user_metadata: str | None = None,
    retries: int = 0,
) -> Receipt | None:
    """Replace the table's rows, columns, partitioning, clustering, properties and comment in one
    commit (`operation` is Delta's name of it); its id, name, location and history stay. None where
    the table has recorded the session's `txnAppId` and `txnVersion`.

    `retries` are as in `Table.overwrite`, and so is what it raises.
    """
    if retries:
        check_repeatable(table, df)
    return repeated(
        lambda: _replace(
            table,
            df,
            partition_by=partition_by,
            properties=properties,
            comment=comment,
            cluster_by=cluster_by,
            operation=operation,
            user_metadata=user_metadata,
        ),
        retries=retries,
        clock_s=monotonic,
    )


def _replace(
    table: TableHandle,
    df: DataFrame,
    *,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    comment: str | None,
    cluster_by: Sequence[str],
    operation: str,
    user_metadata: str | None,
) -> Receipt | None:
    check_none_active(table.id)
    spark = df.sparkSession
    transaction = begun_for(table, df, removes=True)
    if idempotence.is_done(transaction, spark):
        return None
    wanted = new_properties(spark, properties)
    head = transaction.head
    before = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
    columns = columns_of(df.schema, wanted)
    check_columns(columns.json(), wanted, partition_by)
    check_definition(spark, columns, wanted, statement=operation)
    definition = TableDefinition(
        schema=columns,
        partition_by=partition_by,
        cluster_by=cluster_by,
        properties=wanted,
        comment=comment,
    )
    changes = definition.in_place_of(head.metadata, before)
    domain = replacing(
        cluster_by,
        was_clustered=supports(head.protocol, CLUSTERING),
        schema_text=changes["schemaString"],
        configuration=changes["configuration"],
        partition_by=changes["partitionColumns"],
    )
    protocol = protocol_in_place_of(head.protocol, definition, changes)
    if protocol != head.protocol:
        transaction.action(protocol)
    if domain is not None:
        transaction.action(domain)
    transaction.action(with_fields(head.metadata, changes))
    clustering = () if domain is None or domain.removed else physical_paths(domain.configuration)
    layout = dataclasses.replace(writable_layout(transaction), clustering=clustering)
    check_removable(layout)
    with (
        Passes(spark, operation=operation, table=layout.name) as passes,
        private_folder(transaction, layout, spark) as folder,
    ):
        removed = transaction.filter_files()
        passes.writes_rows()
        files = write_rows(transaction, folder, df)
        times = passes.metrics()
        passes.commits(len(files.adds) + len(removed))
        transaction.remove(removed)
        transaction.add(files.adds)
        txn = idempotence.record(transaction, spark)
        receipt = transaction.commit(
            operation,
            parameters={
                "isManaged": "false",
                "description": comment,
                "partitionBy": json.dumps(changes["partitionColumns"]),
                "clusterBy": json.dumps(list(cluster_by)),
                "properties": json.dumps(changes["configuration"]),
            },
            metrics={
                **_metrics(files),
                **times,
                "numRemovedFiles": str(len(removed)),
                "numRemovedBytes": str(sum(file.size for file in removed)),
            },
            user_metadata=metadata_of(user_metadata, spark),
        )
    idempotence.reset(spark, txn)
    return receipt


def columns_of(schema: StructType, properties: Mapping[str, str]) -> StructType:
    """The columns of a table that is made of a DataFrame: nullable, with their comments, lengths
    and defaults. Raises `UnsupportedTable` for defaults where the table is not to have them."""
    requested = TableProperties.parse(properties).requested_features
    has_defaults = _DEFAULTS.lower() in map(str.lower, requested)
    fields = []
    for field in schema.fields:
        found = new_column(field)
        metadata = dict(found.metadata)
        if LENGTH_KEY in field.metadata:
            metadata[LENGTH_KEY] = field.metadata[LENGTH_KEY]
        if CURRENT_DEFAULT in field.metadata:
            if not has_defaults:
                raise UnsupportedTable(
                    f"column {field.name} of the DataFrame has the default "
                    f"{field.metadata[CURRENT_DEFAULT]}, and the table is not to have defaults",
                    hint=f"set the property {FEATURE_PREFIX}{_DEFAULTS} to supported",
                    error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                )
            metadata[CURRENT_DEFAULT] = field.metadata[CURRENT_DEFAULT]
        fields.append(StructField(found.name, found.dataType, True, metadata))
    return StructType(fields)


def _metrics(files: DataFiles) -> dict[str, str]:
    """As Delta's history has them of what a write added."""
    return {
        "numFiles": str(len(files.adds)),
        "numOutputRows": str(files.rows),
        "numOutputBytes": str(files.size),
    }
