"""Tables made of a definition or of a query: new ones, and those in the place of others."""

import dataclasses
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import TableAlreadyExists
from tidegate.lake import Lake
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.replace_table import replace_table
from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.commands.making import Making, check_place, exists, missing
from tidegate.spark.delta.finding import found_named
from tidegate.spark.expressions.definitions import check_definition
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.session_settings import metadata_of, new_properties
from tidegate.spark.write.as_select import replace
from tidegate.table import Table


def make_table(
    lake: Lake,
    spark: SparkSession,
    making: Making,
    wanted: TableDefinition,
    *,
    found: Table | None,
    name: str | None,
    location: str | None,
    user_metadata: str | None = None,
) -> Table:
    """The table of the definition, with the session's defaults for properties of new tables.
    `found` is the table that is there under the name, or at the location where no name is given;
    `user_metadata` is that of the commit, or else the session's.

    Raises `InvalidCommand`, and what `Lake.create_table` and `replace_table` raise.
    """
    if found is not None:
        if _takes_place(making, found, name=name, location=location):
            properties = new_properties(spark, wanted.properties)
            check_definition(spark, wanted.schema, properties, statement=making.value)
            alteration = Alteration.begin(found, spark, user_metadata=user_metadata)
            definition = dataclasses.replace(wanted, properties=properties)
            replace_table(alteration, definition, operation=making.value)
        return found

    def create(name: str) -> Table:
        return lake.create_table(
            name,
            schema=wanted.schema,
            partition_by=wanted.partition_by,
            cluster_by=wanted.cluster_by,
            properties=new_properties(spark, wanted.properties),
            comment=wanted.comment,
            location=location,
            user_metadata=metadata_of(user_metadata, spark),
        )

    return _made(lake, making, create, name=name, location=location)


def make_table_of(
    lake: Lake,
    making: Making,
    query: Callable[[], DataFrame],
    wanted: TableDefinition,
    *,
    found: Table | None,
    name: str | None,
    location: str | None,
    user_metadata: str | None = None,
) -> Table:
    """The table of the query's columns and rows; of the definition count partitioning, clustering,
    properties and comment. The rest is as in `make_table`. The query is not asked for where the
    table is there and stays.

    Raises `InvalidCommand`, and what `Lake.create_table` and `Table.replace` raise.
    """
    if found is not None:
        if _takes_place(making, found, name=name, location=location):
            replace(
                found,
                query(),
                partition_by=wanted.partition_by,
                cluster_by=wanted.cluster_by,
                properties=wanted.properties,
                comment=wanted.comment,
                operation=f"{making.value} AS SELECT",
                user_metadata=user_metadata,
            )
        return found

    def create(name: str) -> Table:
        return lake.create_table(
            name,
            as_select=query(),
            partition_by=wanted.partition_by,
            cluster_by=wanted.cluster_by,
            properties=wanted.properties,
            comment=wanted.comment,
            location=location,
            user_metadata=user_metadata,
        )

    return _made(lake, making, create, name=name, location=location)


def _takes_place(making: Making, found: Table, *, name: str | None, location: str | None) -> bool:
    """Whether the table that is there is replaced, and does not stay as it is. Raises
    `InvalidCommand` where it may do neither."""
    match making:
        case Making.CREATE:
            raise exists(name or location, found)
        case Making.CREATE_IF_NOT_EXISTS:
            return False
        case Making.REPLACE | Making.CREATE_OR_REPLACE:
            check_place(found, location)
            return True


def _made(
    lake: Lake,
    making: Making,
    create: Callable[[str], Table],
    *,
    name: str | None,
    location: str | None,
) -> Table:
    """The table that `create` makes under the name. Raises `InvalidCommand` where nothing may be
    made, and what `create` raises but `TableAlreadyExists`."""
    if making is Making.REPLACE:
        raise missing(name or location)
    if name is None:
        raise InvalidCommand(
            "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
            "a new table needs a name; expected tableName(...), found none",
            hint='tableName("catalog.schema.table")',
        )
    try:
        return create(name)
    except TableAlreadyExists as error:
        faster = found_named(lake, name)
        if making is Making.CREATE_IF_NOT_EXISTS and faster is not None:
            return faster
        raise exists(name, faster) from error
