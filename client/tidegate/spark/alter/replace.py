"""REPLACE COLUMNS: a table's columns, one by one, as a list has them."""

from collections.abc import Sequence

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration, as_json, shown_field, shown_path
from tidegate.spark.alter.clustering import keep_clustering
from tidegate.spark.alter.columns import check_names
from tidegate.spark.alter.definitions import comment_of, plain_definitions, with_comment
from tidegate.spark.alter.dependents import check_independent
from tidegate.spark.alter.paths import recorded
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.values.identity import identity_columns
from tidegate_protocol.features.type_widening import is_widening
from tidegate_protocol.schema.data_types import LENGTH_KEY
from tidegate_protocol.schema.table_schema import parse_type


def replace_columns(alteration: Alteration, text: str) -> Receipt:
    """REPLACE COLUMNS: each `name type [COMMENT text]`. Columns that the table has keep their
    values; they may be in another order, have other comments and wider types, and become nullable.
    Further ones are null. Only mapped columns may be left out, and then none may be new beside
    them, which could be the same by another name.

    Raises `InvalidCommand`, and what `Transaction.commit` raises.
    """
    if identity_columns(alteration.layout):
        raise InvalidCommand(
            "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
            "ALTER TABLE REPLACE COLUMNS is not supported for table with IDENTITY columns",
        )
    wanted = plain_definitions(alteration.spark, text)
    replaced = _Replaced(alteration)
    schema = replaced.struct(alteration.schema, wanted, ())
    check_names(alteration, schema)
    if replaced.dropped:
        keep_clustering(alteration, replaced.dropped)
    alteration.set_columns(recorded(alteration.schema, schema))
    columns = [shown_field((), field) for field in wanted.fields]
    return alteration.commit("REPLACE COLUMNS", {"columns": as_json(columns)})


class _Replaced:
    """What columns become whose definition is another one. `dropped` are the paths of those that
    are left out."""

    def __init__(self, alteration: Alteration) -> None:
        self._alteration = alteration
        self.dropped: list[Sequence[str]] = []

    def struct(self, old: StructType, new: StructType, path: Sequence[str]) -> StructType:
        key = self._alteration.key
        known = {key(field.name): field for field in old.fields}
        names = [key(field.name) for field in new.fields]
        if len(set(names)) < len(names):
            raise InvalidCommand(
                "DELTA_DUPLICATE_COLUMNS_FOUND",
                f"Found duplicate column(s) in replacing columns: {sorted(names)}",
            )
        dropped = [field for name, field in known.items() if name not in names]
        added = [field for field in new.fields if key(field.name) not in known]
        self._check_dropped(dropped, added, path)
        for field in added:
            if not field.nullable:
                where = shown_path([*path, field.name])
                raise self._unsupported(f"adding non-nullable column '{where}'")
        return StructType(
            [
                field
                if key(field.name) not in known
                else self._field(known[key(field.name)], field, path)
                for field in new.fields
            ]
        )

    def _check_dropped(
        self, dropped: Sequence[StructField], added: Sequence[StructField], path: Sequence[str]
    ) -> None:
        if not dropped:
            return
        names = ", ".join(shown_path([*path, field.name]) for field in dropped)
        if not self._alteration.layout.is_mapped:
            raise self._unsupported(f"dropping column(s) [{names}]")
        if added:
            raise self._unsupported(
                f"ambiguous operation: column(s) [{names}] may be dropped or renamed"
            )
        self.dropped += [[*path, field.name] for field in dropped]
        for field in dropped:
            if field.name in self._alteration.layout.partition_columns and not path:
                raise self._unsupported(f"dropping partition column {field.name}")
            check_independent(self._alteration, [*path, field.name])

    def _field(self, old: StructField, new: StructField, path: Sequence[str]) -> StructField:
        inner = (*path, old.name)
        if old.nullable and not new.nullable:
            raise self._unsupported(f"tightening nullability of column {shown_path(inner)}")
        if old.metadata.get(LENGTH_KEY) != new.metadata.get(LENGTH_KEY):
            raise self._unsupported(f"changing the length of column {shown_path(inner)}")
        data_type = self._type(old.dataType, new.dataType, inner)
        found = StructField(old.name, data_type, new.nullable, old.metadata)
        comment = comment_of(new)
        return found if comment is None else with_comment(found, comment)

    def _type(self, old: DataType, new: DataType, path: Sequence[str]) -> DataType:
        match old, new:
            case StructType(), StructType():
                return self.struct(old, new, path)
            case ArrayType(), ArrayType():
                if old.containsNull and not new.containsNull:
                    raise self._unsupported(f"tightening nullability of {shown_path(path)}.element")
                element = self._type(old.elementType, new.elementType, (*path, "element"))
                return ArrayType(element, new.containsNull)
            case MapType(), MapType():
                if old.valueContainsNull and not new.valueContainsNull:
                    raise self._unsupported(f"tightening nullability of {shown_path(path)}.value")
                return MapType(
                    self._type(old.keyType, new.keyType, (*path, "key")),
                    self._type(old.valueType, new.valueType, (*path, "value")),
                    new.valueContainsNull,
                )
        if old == new:
            return old
        if isinstance(old.jsonValue(), str) and isinstance(new.jsonValue(), str):
            types = [parse_type(str(each.jsonValue())) for each in (old, new)]
            if self._alteration.layout.properties.type_widening and is_widening(*types):
                check_independent(self._alteration, path)
                return new
        raise self._unsupported(
            f"changing data type of {shown_path(path)} from {old.simpleString()} to "
            f"{new.simpleString()}"
        )

    def _unsupported(self, reason: str) -> InvalidCommand:
        return InvalidCommand(
            "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
            f"Unsupported ALTER TABLE REPLACE COLUMNS operation on {self._alteration.layout.name}. "
            f"Reason: {reason}",
        )
