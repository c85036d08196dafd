"""Lengths of `char(n)` and `varchar(n)` columns, which the log has as strings.

As Spark's store assignment has it: spaces at the end that are too many are cut off, a `char` that
is too short is padded with them, and what is still too long is refused.
"""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField

from tidegate.spark.errors import marked
from tidegate_protocol.schema.data_types import LENGTH_KEY

_LIMITED = re.compile(r"(?P<kind>char|varchar)\((?P<most>[0-9]+)\)")


def within_length(value: Column, field: StructField) -> Column:
    """The value of a column as its declared type has it; as it is where that has no length. It
    raises for a row whose value is too long (`errors.refused_rows`)."""
    found = _LIMITED.fullmatch(field.metadata.get(LENGTH_KEY, ""))
    if found is None or not isinstance(field.dataType, StringType):
        return value
    most = int(found["most"])
    refusal = F.raise_error(
        F.lit(
            marked(
                f"column {field.name} holds a value that is too long for {found[0]}",
                error_class="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
            )
        )
    )
    fitting = F.rpad(value, most, " ") if found["kind"] == "char" else value
    return (
        F.when(F.length(value) <= most, fitting)
        .when(F.length(F.rtrim(value)) <= most, F.substring(value, 1, most))
        .when(value.isNotNull(), refusal)
    )
