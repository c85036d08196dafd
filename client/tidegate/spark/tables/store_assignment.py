"""Which values of one type a session stores as such of another: `spark.sql.storeAssignmentPolicy`.

ANSI, the usual one, stands beside its users: they tell of a value that does not fit in words of
their own.
"""

from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType

from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of

_CAST = "org.apache.spark.sql.catalyst.expressions.Cast"
_MODES = "org.apache.spark.sql.catalyst.expressions.EvalMode"
_COLUMNS = "org.apache.spark.sql.classic.ExpressionUtils"


class Policy(Enum):
    """`spark.sql.storeAssignmentPolicy`."""

    ANSI = "ANSI"
    STRICT = "STRICT"
    LEGACY = "LEGACY"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAssignment:
    """A session's policy, and what Spark has of it."""

    spark: SparkSession
    policy: Policy

    @classmethod
    def of(cls, spark: SparkSession) -> "StoreAssignment":
        """As the session has it."""
        policy = Policy(str(spark.conf.get("spark.sql.storeAssignmentPolicy")).upper())
        return cls(spark=spark, policy=policy)

    def is_up_cast(self, source: DataType, target: DataType) -> bool:
        """Whether every value of the one type is one of the other, of which STRICT takes care."""
        return bool(self._class(_CAST).canUpCast(*map(self._type, (source, target))))

    def is_cast(self, source: DataType, target: DataType) -> bool:
        """Whether there is a cast, which is all that LEGACY asks for."""
        return bool(self._class(_CAST).canCast(*map(self._type, (source, target))))

    def cast(self, value: Column, target: DataType) -> Column:
        """What a cast gives whatever `spark.sql.ansi.enabled` says, as LEGACY stores it: numbers
        wrap, and what is no value of the type becomes null."""
        from pyspark.sql.classic.column import (  # noqa: PLC0415 - not in Connect
            Column as ClassicColumn,
        )

        columns = self._class(_COLUMNS)
        zone = self._class("scala.Option").empty()
        cast = self._class(_CAST)(
            columns.expression(value._jc), self._type(target), zone, self._class(_MODES).LEGACY()
        )
        return ClassicColumn(columns.column(cast))

    def _class(self, name: str) -> JavaObject:
        return java_class(jvm_of(self.spark), name)

    def _type(self, data_type: DataType) -> JavaObject:
        return self.spark._jsparkSession.parseDataType(data_type.json())


def not_up_cast(source: DataType, target: DataType, *, name: str) -> str:
    """What is said of a column whose type STRICT does not take."""
    return (
        f'Cannot up cast column {name} from "{source.simpleString().upper()}" to '
        f'"{target.simpleString().upper()}"'
    )
