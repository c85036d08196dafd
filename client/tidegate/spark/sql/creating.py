"""CREATE TABLE and REPLACE TABLE, with columns or AS SELECT, as Spark's own parser reads them."""

from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from tidegate.spark.alter.definitions import (
    as_stored,
    data_type_of,
    identity_metadata,
    plan_of,
    with_comment,
)
from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.commands.making import Making
from tidegate.spark.delta.finding import found_at, found_named
from tidegate.spark.delta.making import make_table, make_table_of
from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.sql.queries import with_views
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement
from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of
from tidegate.spark.storage.locations import place_url
from tidegate_protocol.features.known import CURRENT_DEFAULT, GENERATION_EXPRESSION

_DELTA = "delta"
_CREATE, _REPLACE = "CreateTable", "ReplaceTable"
_AS_SELECT = "AsSelect"
_CLUSTER_BY = "cluster_by"


def make(statement: Statement, session: Session) -> DataFrame:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table (column type, ...), and REPLACE TABLE, with
    USING delta, PARTITIONED BY or CLUSTER BY, COMMENT, LOCATION and TBLPROPERTIES; in the place of
    columns, AS and a query at the end."""
    with with_views(statement.text, session) as text:
        return _make(plan_of(session.spark, text), session)


def _make(plan: JavaObject, session: Session) -> DataFrame:
    kind = str(plan.getClass().getSimpleName())
    has_query = kind.endswith(_AS_SELECT)
    if kind.removesuffix(_AS_SELECT) not in (_CREATE, _REPLACE):
        raise _unsupported("CREATE TABLE or REPLACE TABLE with columns or AS SELECT", kind)
    spec = plan.tableSpec()
    _check_clauses(spec)
    if has_query and plan.writeOptions().size():
        raise _no_options()
    wanted = TableDefinition(
        schema=StructType() if has_query else _columns(plan.columns()),
        partition_by=tuple(_partition_columns(plan)),
        cluster_by=tuple(_clustering_columns(plan)),
        properties=dict(_entries(spec.properties())),
        comment=_given(spec.comment()),
    )
    making = _making(plan, kind.removesuffix(_AS_SELECT))
    name, place = _names(plan, _given(spec.location()))
    found = found_named(session.lake, name) if name else found_at(session.lake, place or "")
    if has_query:
        make_table_of(
            session.lake,
            making,
            lambda: _rows_of(session.spark, plan.query()),
            wanted,
            found=found,
            name=name,
            location=place,
            user_metadata=session.user_metadata,
        )
    else:
        make_table(
            session.lake,
            session.spark,
            making,
            wanted,
            found=found,
            name=name,
            location=place,
            user_metadata=session.user_metadata,
        )
    return session.nothing()


def _rows_of(spark: SparkSession, query: JavaObject) -> DataFrame:
    """The rows of a query that the parser has read. Raises `InvalidCommand`."""
    from pyspark.sql.classic.dataframe import (  # noqa: PLC0415 - not in Connect
        DataFrame as ClassicDataFrame,
    )

    frames = java_class(jvm_of(spark), "org.apache.spark.sql.classic.Dataset")
    try:
        return ClassicDataFrame(frames.ofRows(spark._jsparkSession, query), spark)
    except AnalysisException as error:
        raise of_spark(error) from error


def _columns(columns: JavaObject) -> StructType:
    return StructType([_column(columns.apply(i)) for i in range(columns.size())])


def _check_clauses(spec: JavaObject) -> None:
    """Raise `InvalidCommand` for a clause that no table of the service has anything of."""
    provider = _given(spec.provider())
    if provider is not None and provider.lower() != _DELTA:
        raise _unsupported("USING delta", f"USING {provider}")
    if spec.serde().isDefined():
        raise _unsupported("USING delta", "ROW FORMAT or STORED AS")
    if spec.optionExpression().options().size():
        raise _no_options()
    if spec.collation().isDefined():
        raise _unsupported("no DEFAULT COLLATION", str(spec.collation().get()))
    if spec.constraints().size():
        raise _unsupported("no constraints", "some", hint="add them by ALTER TABLE")


def _names(plan: JavaObject, location: str | None) -> tuple[str | None, str | None]:
    """The table's name, which ``delta.`place` `` has none of, and its place, if it is said."""
    names = plan.name().nameParts()
    parts = [str(names.apply(i)) for i in range(names.size())]
    if len(parts) == 2 and parts[0].lower() == _DELTA:
        if location is not None:
            raise _unsupported("no LOCATION beside delta.`place`", location)
        return None, place_url(parts[1])
    return ".".join(parts), None if location is None else place_url(location)


def _making(plan: JavaObject, kind: str) -> Making:
    if kind == _REPLACE:
        return Making.CREATE_OR_REPLACE if plan.orCreate() else Making.REPLACE
    return Making.CREATE_IF_NOT_EXISTS if plan.ignoreIfExists() else Making.CREATE


def _column(column: JavaObject) -> StructField:
    """A column as the log has it."""
    metadata: dict[str, Any] = {}
    if column.defaultValue().isDefined():
        metadata[CURRENT_DEFAULT] = str(column.defaultValue().get().originalSQL())
    if column.generationExpression().isDefined():
        expression = column.generationExpression().get()
        metadata[GENERATION_EXPRESSION] = str(expression.originalSQL())
    if column.identityColumnSpec().isDefined():
        counted = column.identityColumnSpec().get()
        metadata |= identity_metadata(
            int(counted.getStart()),
            int(counted.getStep()),
            by_default=bool(counted.isAllowExplicitInsert()),
        )
    data_type = data_type_of(column.dataType())
    field = StructField(str(column.name()), data_type, bool(column.nullable()), metadata)
    comment = _given(column.comment())
    return as_stored(field if comment is None else with_comment(field, comment))


def _partition_columns(plan: JavaObject) -> Iterator[str]:
    for transform in _transforms(plan):
        if str(transform.name()) not in ("identity", _CLUSTER_BY):
            raise _unsupported("PARTITIONED BY columns", str(transform.toString()))
        if str(transform.name()) != _CLUSTER_BY:
            yield ".".join(str(part) for part in transform.references()[0].fieldNames())


def _clustering_columns(plan: JavaObject) -> Iterator[str]:
    for transform in _transforms(plan):
        if str(transform.name()) == _CLUSTER_BY:
            for reference in transform.references():
                parts = (str(part).replace("`", "``") for part in reference.fieldNames())
                yield ".".join(f"`{part}`" for part in parts)


def _transforms(plan: JavaObject) -> Iterator[JavaObject]:
    transforms = plan.partitioning()
    for i in range(transforms.size()):
        yield transforms.apply(i)


def _entries(properties: JavaObject) -> Iterator[tuple[str, str]]:
    found = properties.iterator()
    while found.hasNext():
        entry = found.next()
        yield str(entry._1()), str(entry._2())


def _given(option: JavaObject) -> str | None:
    return str(option.get()) if option.isDefined() else None


def _no_options() -> InvalidCommand:
    return _unsupported("no OPTIONS but a path", "some", hint="say them as TBLPROPERTIES")


def _unsupported(expected: str, found: str, *, hint: str | None = None) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_OPERATION_NOT_ALLOWED", f"expected {expected}, found {found}", hint=hint
    )
