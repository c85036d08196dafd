"""What columns that writers compute are computed by, checked for its type before a table has it."""

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.tables.assignment import assign
from tidegate.spark.tables.schemas import nullable
from tidegate.spark.values.defaults import default_of
from tidegate_protocol.features.known import GENERATION_EXPRESSION
from tidegate_protocol.scan.predicates import InvalidPredicate, check_expression
from tidegate_protocol.schema.table_schema import parse_schema


def check_computed(schema: StructType, spark: SparkSession, *, statement: str) -> None:
    """Raise `InvalidCommand` for a default that is no value of its column, and for a generated
    column of another type than its expression has. What else is wrong with that one, such as a
    column that the table does not have, or chance, is for the service to refuse."""
    for field in schema.fields:
        if (sql := default_of(field)) is not None:
            check_default(field, sql, spark, statement=statement)
    generated = [field for field in schema.fields if GENERATION_EXPRESSION in field.metadata]
    if not generated:
        return
    given = [StructField(f.name, f.dataType) for f in schema.fields if f not in generated]
    rows = spark.createDataFrame([], StructType(given))
    for field in generated:
        _check_generated(field, str(field.metadata[GENERATION_EXPRESSION]), rows)


def check_default(field: StructField, sql: str, spark: SparkSession, *, statement: str) -> None:
    """Raise `InvalidCommand` where the expression is no value for the column. `statement` is what
    would have set it, in SQL's words."""
    # Over no columns: a default is the same for every row.
    nothing = spark.createDataFrame([], StructType([]))
    failed = f"Failed to execute {statement} because the column {field.name}"
    try:
        found = _type_of(sql, nothing)
    except (AnalysisException, ParseException) as error:
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION",
            f"{failed} has a DEFAULT value {sql}, which fails to resolve: {error.getMessage()}",
        ) from error
    try:
        assign(F.expr(sql), found, field.dataType, name=field.name)
    except SchemaMismatch as error:
        raise InvalidCommand(
            "INVALID_DEFAULT_VALUE.DATA_TYPE",
            f"{failed} of type {field.dataType.simpleString()} has a DEFAULT value {sql} of type "
            f"{found.simpleString()}",
        ) from error


def _check_generated(field: StructField, sql: str, rows: DataFrame) -> None:
    try:
        check_expression(sql, parse_schema(rows.schema.json()), is_condition=False)
        found = _type_of(sql, rows)
    except (InvalidPredicate, AnalysisException, ParseException):
        return
    if nullable(found) != nullable(field.dataType):
        raise InvalidCommand(
            "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            f"The expression type of the generated column {field.name} is "
            f"{found.simpleString().upper()}, but the column type is "
            f"{field.dataType.simpleString().upper()}",
        )


def _type_of(sql: str, rows: DataFrame) -> DataType:
    # In parentheses, because Spark takes a name behind an expression: `1 b` would be `1`.
    (found,) = rows.select(F.expr(f"({sql}\n)")).schema.fields
    return found.dataType
