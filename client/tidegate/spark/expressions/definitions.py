"""The SQL in a table's definition, asked of Spark before a table has it: defaults, what generated
columns are computed by, and CHECK constraints. Whatever no writer could evaluate would close the
table to all of them."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidegate.spark.application import current_session
from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.expressions.instant import is_current
from tidegate.spark.expressions.parsing import parser_of
from tidegate.spark.expressions.resolution import has_subquery, has_user_function
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.tables.assignment import assign
from tidegate.spark.tables.schemas import as_nullable, nullable, with_only
from tidegate.spark.values.defaults import default_of
from tidegate_protocol.features.known import CURRENT_DEFAULT, GENERATION_EXPRESSION
from tidegate_protocol.features.properties import CONSTRAINT_PREFIX
from tidegate_protocol.log.actions import Metadata

_EMPTY = '{"type": "struct", "fields": []}'
_NOT_BOOLEAN = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
_GENERATED = "GENERATED_COLUMN"
_CHECK = "CHECK_CONSTRAINT"


def check_in_session(
    schema: str, properties: Mapping[str, str], *, known: Metadata | None, statement: str
) -> None:
    """`check_definition` by the session of this thread or process, of a schema as JSON. Nothing
    without one, and for what is no schema to Spark."""
    spark = current_session()
    if spark is None:
        return
    known_schema = _EMPTY if known is None else known.schema_string
    try:
        columns, had = (StructType.fromJson(json.loads(text)) for text in (schema, known_schema))
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    check_definition(
        spark,
        columns,
        properties,
        known_schema=had,
        known_properties={} if known is None else known.configuration,
        statement=statement,
    )


def check_definition(
    spark: SparkSession,
    schema: StructType,
    properties: Mapping[str, str],
    *,
    known_schema: StructType | None = None,
    known_properties: Mapping[str, str] = MappingProxyType({}),
    statement: str,
) -> None:
    """Raise `InvalidCommand` for a default that is no value of its column, for a generated column
    that is not computed from others of its row or is of another type, and for a CHECK constraint
    that is no condition over a row. Those that the table is known to have are let be. `statement`
    is what would make them, in SQL's words."""
    if not hasattr(spark, "_jsparkSession"):
        # Spark Connect shows no plans.
        return
    had = known_schema or StructType([])
    for field in _with_other(CURRENT_DEFAULT, schema, had):
        check_default(field, str(default_of(field)), spark, statement=statement)
    if generated := _with_other(GENERATION_EXPRESSION, schema, had):
        given = [f for f in schema.fields if GENERATION_EXPRESSION not in f.metadata]
        rows = spark.createDataFrame([], as_nullable(StructType(given)))
        for field in generated:
            _check_generated(field, str(field.metadata[GENERATION_EXPRESSION]), rows)
    for name, sql in properties.items():
        if name.lower().startswith(CONSTRAINT_PREFIX) and known_properties.get(name) != sql:
            check_condition(spark, schema, name[len(CONSTRAINT_PREFIX) :], sql)


def check_adds_no_constraint(
    properties: Mapping[str, str], known: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise `InvalidCommand` for properties that would make a CHECK constraint, which the `known`
    ones do not, of rows that the command does not look at."""
    for name, sql in properties.items():
        if name.lower().startswith(CONSTRAINT_PREFIX) and known.get(name) != sql:
            raise InvalidCommand(
                "DELTA_ADD_CONSTRAINTS",
                "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints",
                hint="alter().add_constraint(name, expression)",
            )


def check_default(field: StructField, sql: str, spark: SparkSession, *, statement: str) -> None:
    """Raise `InvalidCommand` where the expression is no value for the column. `statement` is what
    would have set it, in SQL's words."""
    # Over no columns: a default is the same for every row.
    nothing = spark.createDataFrame([], StructType([]))
    failed = f"Failed to execute {statement} because the column {field.name}"
    try:
        is_query = has_subquery(spark, _parsed(sql, spark))
        selected = nothing if is_query else _selected(sql, nothing)
    except (AnalysisException, ParseException) as error:
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION",
            f"{failed} has a DEFAULT value {sql}, which fails to resolve: {error.getMessage()}",
        ) from error
    if is_query:
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION",
            f"{failed} has a DEFAULT value {sql}, which contains subquery expressions",
        )
    value = _value(selected, nothing)
    if value is None or has_user_function(spark, value):
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.NOT_CONSTANT",
            f"{failed} has a DEFAULT value {sql}, which is not a constant expression whose "
            "equivalent value is known at query planning time",
        )
    if not value.deterministic():
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC",
            f"{failed} has a DEFAULT value {sql}, which contains a non-deterministic expression",
        )
    found = selected.schema.fields[0].dataType
    try:
        assign(F.expr(sql), found, field.dataType, name=field.name)
    except SchemaMismatch as error:
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.DATA_TYPE",
            f"{failed} of type {field.dataType.simpleString()} has a DEFAULT value {sql} of type "
            f"{found.simpleString()}",
        ) from error


def check_condition(spark: SparkSession, schema: StructType, name: str, sql: str) -> None:
    """Raise `InvalidCommand` for a CHECK constraint that is no condition which every writer can ask
    of a row of these columns."""
    owner = f"CHECK constraint {name}"
    rows = spark.createDataFrame([], as_nullable(schema))
    try:
        is_query = has_subquery(spark, _parsed(sql, spark))
        found = rows if is_query else rows.where(_column(sql))
    except (AnalysisException, ParseException) as error:
        if (error.getCondition() or "") == _NOT_BOOLEAN:
            raise InvalidCommand(
                "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
                f"CHECK constraint '{name}' ({sql}) should be a boolean expression",
            ) from error
        raise of_spark(error) from error
    if is_query:
        raise _unsupported(_CHECK, owner, sql)
    plan = found._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "Filter":
        # A function of a user's, written in SQL, has become a part of the plan.
        raise _of_a_user(_CHECK, owner, sql)
    _check_of_row(spark, plan.condition(), sql, kind=_CHECK, owner=owner)


def _check_generated(field: StructField, sql: str, rows: DataFrame) -> None:
    owner, spark = f"the generated column {field.name}", rows.sparkSession
    try:
        is_query = has_subquery(spark, _parsed(sql, spark))
        selected = rows if is_query else _selected(sql, rows)
    except (AnalysisException, ParseException) as error:
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise InvalidCommand(
                "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
                f"{owner} ({sql}) cannot use a non-existent column or another generated column",
            ) from error
        raise of_spark(error) from error
    plan = selected._jdf.queryExecution().analyzed()
    value = None if is_query else _value(selected, rows)
    if plan.getClass().getSimpleName() == "Aggregate":
        raise InvalidCommand(
            "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
            f"Found {sql}. A generated column cannot use an aggregate expression",
        )
    if value is None or is_current(spark, plan):
        raise _unsupported(_GENERATED, owner, sql)
    _check_of_row(spark, value, sql, kind=_GENERATED, owner=owner)
    found = selected.schema.fields[0].dataType
    if with_only(nullable(found), ()) != with_only(nullable(field.dataType), ()):
        raise InvalidCommand(
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            f"The expression type of the generated column {field.name} is "
            f"{found.simpleString().upper()}, but the column type is "
            f"{field.dataType.simpleString().upper()}",
        )


def _check_of_row(
    spark: SparkSession, value: JavaObject, sql: str, *, kind: str, owner: str
) -> None:
    """Raise `InvalidCommand` where the value is not one that everybody finds in the same row."""
    if has_user_function(spark, value):
        raise _of_a_user(kind, owner, sql)
    if not value.deterministic():
        raise InvalidCommand(
            f"DELTA_NON_DETERMINISTIC_EXPRESSION_IN_{kind}",
            f"Found a non-deterministic expression in {owner} ({sql})",
        )


def _unsupported(kind: str, owner: str, sql: str) -> InvalidCommand:
    return InvalidCommand(
        f"DELTA_UNSUPPORTED_EXPRESSION_{kind}", f"Found unsupported expression in {owner} ({sql})"
    )


def _of_a_user(kind: str, owner: str, sql: str) -> InvalidCommand:
    return InvalidCommand(
        f"DELTA_UDF_IN_{kind}", f"{owner} ({sql}) cannot use a user-defined function"
    )


def _with_other(key: str, schema: StructType, known: StructType) -> list[StructField]:
    """The columns that have something under the key of their metadata which those that are known
    by their names do not have."""
    had = {field.name: field.metadata.get(key) for field in known.fields}
    return [
        field
        for field in schema.fields
        if key in field.metadata and field.metadata[key] != had.get(field.name)
    ]


def _selected(sql: str, rows: DataFrame) -> DataFrame:
    return rows.select(_column(sql).alias("value"))


def _column(sql: str) -> Column:
    # In parentheses, because Spark takes a name behind an expression: `1 b` would be `1`.
    return F.expr(f"({sql}\n)")


def _parsed(sql: str, spark: SparkSession) -> JavaObject:
    """The expression, not resolved. Raises `ParseException`, also for what would be one only in the
    parentheses that it is read in."""
    with parser_of(spark) as parser:
        return parser.parseExpression(sql)


def _value(selected: DataFrame, rows: DataFrame) -> JavaObject | None:
    """The resolved expression; None where it is none of a single row, such as an aggregate, a
    window or a generator."""
    plan = selected._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "Project":
        return None
    named = plan.projectList().apply(0)
    columns = rows._jdf.queryExecution().analyzed().outputSet()
    # What Spark has below it, such as a window, it names as a column.
    is_of_row = named.references().subsetOf(columns)
    return named.child() if is_of_row else None
