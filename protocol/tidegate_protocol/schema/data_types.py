"""The types of columns, and fields found by name.

Names are matched whatever their case, as the protocol demands of column names; paths lead
through structs only, because neither partition values nor statistics go into arrays and maps.
"""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

COLUMN_ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
TYPE_CHANGES = "delta.typeChanges"
LENGTH_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""A field's metadata: `char(n)` or `varchar(n)`, as a string column was declared."""
_CHAR = re.compile(r"char\(([0-9]{1,9})\)")


class InvalidSchema(ValueError):
    """The text is not a schema, or not one a table may have; the message says where and why."""


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters, by its name in the log. One of the constants below."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    """`precision` (1 to 38) digits in all, `scale` (0 to precision) of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise InvalidSchema(
                f"decimal({self.precision},{self.scale}) is not a type; expected a precision of "
                "1 to 38 and a scale of 0 to the precision"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    element: "DataType"
    contains_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    key: "DataType"
    value: "DataType"
    value_contains_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column or nested field; `metadata` is kept as it came."""

    name: str
    type: "DataType"
    nullable: bool = True
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A column or nested field; `path` as the schema spells it, `physical_path` as the files and
    their statistics do. `nullable` is False only where no struct on the way is nullable either."""

    path: tuple[str, ...]
    physical_path: tuple[str, ...]
    type: "DataType"
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StructType:
    fields: tuple[Field, ...]
    _by_name: Mapping[str, Field] = dataclasses.field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        # The first of two names that differ only in case is found; `validate_table_schema`
        # refuses such a table.
        by_name: dict[str, Field] = {}
        for field in self.fields:
            by_name.setdefault(field.name.lower(), field)
        object.__setattr__(self, "_by_name", by_name)

    def field(self, name: str) -> Field | None:
        """The top-level field of this name, whatever its case."""
        return self._by_name.get(name.lower())

    def leaf(self, path: Sequence[str]) -> Leaf | None:
        """The (nested) field at a path of names (`column_paths.parse`), whatever their case."""
        struct: DataType = self
        names: list[str] = []
        physical: list[str] = []
        nullable = False
        for name in path:
            found = struct.field(name) if isinstance(struct, StructType) else None
            if found is None:
                return None
            names.append(found.name)
            physical.append(physical_name(found))
            nullable = nullable or found.nullable
            struct = found.type
        if not names:
            return None
        return Leaf(
            path=tuple(names), physical_path=tuple(physical), type=struct, nullable=nullable
        )

    def leaves(self) -> Iterator[Leaf]:
        """Every field that is not a struct, depth first."""
        return _leaves(self, (), (), nullable=False)


DataType = PrimitiveType | DecimalType | ArrayType | MapType | StructType

BYTE = PrimitiveType("byte")
SHORT = PrimitiveType("short")
INTEGER = PrimitiveType("integer")
LONG = PrimitiveType("long")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
BOOLEAN = PrimitiveType("boolean")
STRING = PrimitiveType("string")
BINARY = PrimitiveType("binary")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")


def physical_name(field: Field) -> str:
    """The name that files, partition values and statistics know the field by."""
    name = field.metadata.get(PHYSICAL_NAME)
    return name if isinstance(name, str) else field.name


def _leaves(
    struct: StructType, path: tuple[str, ...], physical: tuple[str, ...], *, nullable: bool
) -> Iterator[Leaf]:
    for field in struct.fields:
        names = (*path, field.name)
        physical_names = (*physical, physical_name(field))
        may_be_null = nullable or field.nullable
        if isinstance(field.type, StructType):
            yield from _leaves(field.type, names, physical_names, nullable=may_be_null)
        else:
            yield Leaf(
                path=names, physical_path=physical_names, type=field.type, nullable=may_be_null
            )


def type_name(data_type: DataType) -> str:
    """The type for messages: `decimal(10,2)`, `array<integer>`."""
    match data_type:
        case PrimitiveType(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision},{scale})"
        case ArrayType(element=element):
            return f"array<{type_name(element)}>"
        case MapType(key=key, value=value):
            return f"map<{type_name(key)},{type_name(value)}>"
        case StructType(fields=fields):
            inside = ",".join(f"{field.name}:{type_name(field.type)}" for field in fields)
            return f"struct<{inside}>"


def without_metadata(schema: StructType, names: Collection[str]) -> StructType:
    """The schema without these entries of its fields' metadata, nested fields included."""

    def bare(data_type: DataType) -> DataType:
        match data_type:
            case StructType():
                return without_metadata(data_type, names)
            case ArrayType(element=element):
                return replace(data_type, element=bare(element))
            case MapType(key=key, value=value):
                return replace(data_type, key=bare(key), value=bare(value))
        return data_type

    return StructType(
        fields=tuple(
            replace(
                field,
                type=bare(field.type),
                metadata={name: v for name, v in field.metadata.items() if name not in names},
            )
            for field in schema.fields
        )
    )


def walk(
    data_type: DataType, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Field, StructType]]:
    """Every field at every depth, arrays and maps included, with its path and its struct."""
    match data_type:
        case StructType(fields=fields):
            for field in fields:
                yield (*path, field.name), field, data_type
                yield from walk(field.type, (*path, field.name))
        case ArrayType(element=element):
            yield from walk(element, (*path, "element"))
        case MapType(key=key, value=value):
            yield from walk(key, (*path, "key"))
            yield from walk(value, (*path, "value"))


def char_length(field: Field) -> int | None:
    """The characters to which readers pad the values of a CHAR column; None for other columns."""
    found = _CHAR.fullmatch(str(field.metadata.get(LENGTH_KEY, "")).lower())
    return None if found is None else int(found[1])
