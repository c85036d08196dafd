"""The SQL in a table's definition, shown to Spark before the service gets it."""

import sys
from collections.abc import Mapping

from tidegate_protocol.features.known import CURRENT_DEFAULT, GENERATION_EXPRESSION
from tidegate_protocol.features.properties import CONSTRAINT_PREFIX
from tidegate_protocol.log.actions import Metadata


def check_expressions(
    schema: str,
    properties: Mapping[str, str],
    *,
    known: Metadata | None = None,
    statement: str,
) -> None:
    """Raise `InvalidCommand` for SQL in a table's columns (a schema as JSON) or CHECK constraints
    that no row could satisfy or no writer evaluate, by what the Spark session of this process finds
    of its functions and types. SQL that the table has by what is `known` is let be. `statement` is
    what makes the definition, in SQL's words.

    A process without Spark leaves it to the service, which knows syntax and columns alone.
    """
    has_sql = any(key in schema for key in (CURRENT_DEFAULT, GENERATION_EXPRESSION)) or any(
        name.lower().startswith(CONSTRAINT_PREFIX) for name in properties
    )
    if not has_sql or "pyspark.sql" not in sys.modules:
        return
    from tidegate.spark.expressions import definitions  # noqa: PLC0415 - Spark is an extra

    definitions.check_in_session(schema, properties, known=known, statement=statement)
