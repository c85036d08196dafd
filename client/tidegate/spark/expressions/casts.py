"""Values of a command's expressions as values of the table's columns, as Delta stores them in
UPDATE and MERGE: by `spark.sql.storeAssignmentPolicy`, and with structs by the names of their
fields.
"""

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, NumericType, StructType

from tidegate.spark.errors import marked
from tidegate.spark.expressions.errors import InvalidCommand, nested_mismatch
from tidegate.spark.tables.schemas import nullable
from tidegate.spark.tables.store_assignment import Policy, StoreAssignment, not_up_cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Casts:
    """How values are stored. `evolves` says that fields which a struct lacks become null; else the
    struct is refused."""

    storing: StoreAssignment
    evolves: bool

    @classmethod
    def of(cls, spark: SparkSession, *, evolves: bool = False) -> "Casts":
        """By the session's policy."""
        return cls(storing=StoreAssignment.of(spark), evolves=evolves)

    def stored(self, value: Column, source: DataType, target: DataType, *, name: str) -> Column:
        """The value of type `source` as one of type `target`, a column of the table or a part of
        it. Raises `InvalidCommand`; the column raises for a row whose value does not fit."""
        source, target = nullable(source), nullable(target)
        if source == target:
            return value
        match source, target:
            case NullType(), _:
                return F.lit(None).cast(target)
            case StructType(), StructType():
                return self._struct(value, source, target, name=name)
            case ArrayType(), ArrayType():
                return F.transform(
                    value,
                    lambda item: self.stored(
                        item, source.elementType, target.elementType, name=f"{name}.element"
                    ),
                )
            case MapType(), MapType():
                return self._map(value, source, target, name=name)
        return self._atomic(value, source, target, name=name)

    def _struct(
        self, value: Column, source: StructType, target: StructType, *, name: str
    ) -> Column:
        given = {field.name.lower(): field for field in source.fields}
        wanted = {field.name.lower() for field in target.fields}
        if given.keys() - wanted or (wanted - given.keys() and not self.evolves):
            raise nested_mismatch(name, source.simpleString(), target.simpleString())
        fields = []
        for field in target.fields:
            found = given.get(field.name.lower())
            if found is None:
                part = F.lit(None).cast(field.dataType)
            else:
                part = self.stored(
                    value.getField(found.name),
                    found.dataType,
                    field.dataType,
                    name=f"{name}.{field.name}",
                )
            fields.append(part.alias(field.name))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: Column, source: MapType, target: MapType, *, name: str) -> Column:
        if source.keyType != target.keyType:
            value = F.transform_keys(
                value,
                lambda key, _: self.stored(key, source.keyType, target.keyType, name=f"{name}.key"),
            )
        if source.valueType == target.valueType:
            return value
        return F.transform_values(
            value,
            lambda _, item: self.stored(
                item, source.valueType, target.valueType, name=f"{name}.value"
            ),
        )

    def _atomic(self, value: Column, source: DataType, target: DataType, *, name: str) -> Column:
        if self.storing.policy is Policy.STRICT:
            if not self.storing.is_up_cast(source, target):
                raise InvalidCommand(
                    "CANNOT_UP_CAST_DATATYPE", not_up_cast(source, target, name=name)
                )
            return value.cast(target)
        if self.storing.policy is Policy.LEGACY:
            return self.storing.cast(value, target)
        converted = value.try_cast(target)
        refusal = F.raise_error(F.lit(_unfit(source, target, name)))
        return F.when(value.isNotNull() & converted.isNull(), refusal).otherwise(converted)


def preserved(
    casts: Casts,
    value: Column,
    source: DataType,
    current: Column,
    target: DataType,
    *,
    name: str,
) -> Column:
    """A column by UPDATE * with schema evolution: fields of structs that the source lacks keep the
    value of `current`, which is of the type `target` already. Inside of lists and maps they become
    null."""
    if not (isinstance(source, StructType) and isinstance(target, StructType)):
        return casts.stored(value, source, target, name=name)
    given = {field.name.lower(): field for field in source.fields}
    fields = []
    for field in target.fields:
        found = given.get(field.name.lower())
        old = current.getField(field.name)
        part = old
        if found is not None:
            part = preserved(
                casts,
                value.getField(found.name),
                found.dataType,
                old,
                field.dataType,
                name=f"{name}.{field.name}",
            )
        fields.append(part.alias(field.name))
    is_there = value.isNotNull()
    if _keeps(source, target):
        is_there = is_there | current.isNotNull()
    return F.when(is_there, F.struct(*fields))


def _keeps(source: StructType, target: StructType) -> bool:
    """Whether the target has a field, at any depth of structs, that the source lacks."""
    given = {field.name.lower(): field.dataType for field in source.fields}
    for field in target.fields:
        found = given.get(field.name.lower())
        if found is None:
            return True
        if (
            isinstance(found, StructType)
            and isinstance(field.dataType, StructType)
            and _keeps(found, field.dataType)
        ):
            return True
    return False


def _unfit(source: DataType, target: DataType, name: str) -> str:
    wanted = target.simpleString().upper()
    if isinstance(source, NumericType) and isinstance(target, NumericType):
        return marked(
            f"Failed to write a value of {source.simpleString().upper()} type into the {wanted} "
            f"type column {name} due to an overflow",
            error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        )
    return marked(
        f"column {name} is given a value that is no {wanted}", error_class="CAST_INVALID_INPUT"
    )
