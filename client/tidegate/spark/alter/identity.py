"""SYNC IDENTITY: how far an identity column has come, by the rows that there are."""

from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration, as_json, shown_field
from tidegate.spark.alter.paths import resolved
from tidegate.spark.expressions.assignments import name_parts
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.values.identity import identity_columns
from tidegate_protocol.features.computed_columns import Identity
from tidegate_protocol.features.known import IDENTITY_HIGH_WATER_MARK

_MAY_LOWER = "spark.databricks.delta.identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled"


def sync_identity(alteration: Alteration, name: str) -> Receipt:
    """Have an identity column go on after the numbers that its rows have, which others gave them.
    It goes back only where the session allows it. One Spark job; who adds or removes rows meanwhile
    is a conflict.

    Raises `InvalidCommand`, `UnsupportedTable` for a table that the client does not read, and what
    `Transaction.commit` raises.
    """
    parts = name_parts(alteration.spark, name)
    path, field = resolved(alteration.schema, parts, alteration.key)
    numbers = identity_columns(alteration.layout).get(field.name) if len(path) == 1 else None
    if numbers is None:
        raise InvalidCommand(
            "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
            f"ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns "
            f"({name})",
        )
    furthest = (F.max if numbers.step > 0 else F.min)(quoted(field.name))
    (found,) = alteration.rows().agg(furthest).collect()[0]
    may_lower = str(alteration.spark.conf.get(_MAY_LOWER, "false")).lower() == "true"
    mark = _mark(numbers, found, may_lower=may_lower)
    metadata = dict(field.metadata)
    if mark is not None:
        metadata[IDENTITY_HIGH_WATER_MARK] = mark
    new = StructField(field.name, field.dataType, field.nullable, metadata)
    fields = [new if each is field else each for each in alteration.schema.fields]
    alteration.set_columns(type(alteration.schema)(fields))
    parameters = {"column": as_json(shown_field((), new))}
    return alteration.commit("CHANGE COLUMN", parameters)


def _mark(numbers: Identity, found: int | None, *, may_lower: bool) -> int | None:
    """The mark after a synchronization; numbers between two of the column's own count as the later
    one."""
    start, step, mark = numbers.start, numbers.step, numbers.mark
    if found is None or (found - start) * step < 0:
        return mark
    reached = start - (start - found) // step * step
    is_further = mark is None or (reached - mark) * step > 0
    return reached if is_further or may_lower else mark
