"""The builder of Delta's Python API: what a table is to be, part by part."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Self, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from tidegate.spark.alter.definitions import as_stored, identity_metadata, type_of, with_comment
from tidegate.spark.columns.definition import TableDefinition
from tidegate_protocol.features.known import GENERATION_EXPRESSION

T = TypeVar("T")


@dataclass(frozen=True)
class IdentityGenerator:
    """How an identity column counts."""

    start: int = 1
    step: int = 1


class DeltaTableBuilder(Generic[T]):
    """What a table is to be; `execute` makes it. Arguments of other types raise `TypeError` and
    `ValueError`, as Delta's do."""

    def __init__(
        self,
        spark: SparkSession,
        make: Callable[[str | None, str | None, TableDefinition], T],
    ) -> None:
        """`make` is given name, location and definition."""
        self._spark = spark
        self._make = make
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._fields: list[StructField] = []
        self._partition_by: list[str] = []
        self._cluster_by: list[str] = []
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> Self:
        """`catalog.schema.table`."""
        self._name = _text(identifier, "Identifier must be str.")
        return self

    def location(self, location: str) -> Self:
        """Where the table's folder is; the service chooses one without it."""
        self._location = _text(location, "Location must be str.")
        return self

    def comment(self, comment: str) -> Self:
        """What the table is about."""
        self._comment = _text(comment, "Table comment must be str.")
        return self

    def addColumn(  # noqa: PLR0917 - as Delta has it
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """A column. `generatedAlwaysAs` is SQL over others, or has it count; so does
        `generatedByDefaultAs`, which lets writers give numbers, too."""
        _text(colName, "Column name must be str.")
        if not isinstance(dataType, str | DataType):
            _wrong("Column data type must be StructType or str.", dataType)
        if not isinstance(nullable, bool):
            _wrong("Column nullable must be bool.", nullable)
        found = type_of(self._spark, dataType) if isinstance(dataType, str) else dataType
        metadata = _generation(generatedAlwaysAs, generatedByDefaultAs)
        field = StructField(colName, found, nullable, metadata)
        if comment is not None:
            field = with_comment(field, _text(comment, "Column comment must be str."))
        self._fields.append(as_stored(field))
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> Self:
        """The columns of a schema."""
        fields = cols.fields if isinstance(cols, StructType) else cols
        if not isinstance(fields, list) or not all(isinstance(f, StructField) for f in fields):
            _wrong("The argument in addColumns must be StructType or a list of StructField.", cols)
        self._fields += [as_stored(field) for field in fields]
        return self

    def partitionedBy(self, *cols: str | Iterable[str]) -> Self:
        """The columns whose values have folders of their own."""
        given = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._partition_by += [_text(name, "Partitioning column must be str.") for name in given]
        return self

    def clusterBy(self, *cols: str | Iterable[str]) -> Self:
        """The columns that OPTIMIZE clusters rows by, by SQL's names for them."""
        given = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        self._cluster_by += [_text(name, "Clustering column must be str.") for name in given]
        return self

    def property(self, key: str, value: str) -> Self:
        """A table property."""
        _text(key, "Key of property must be str.")
        self._properties[key] = _text(value, "Value of property must be str.")
        return self

    def execute(self) -> T:
        """Make the table. Raises `InvalidCommand`, and what the service refuses."""
        definition = TableDefinition(
            schema=StructType(self._fields),
            partition_by=self._partition_by,
            cluster_by=self._cluster_by,
            properties=self._properties,
            comment=self._comment,
        )
        return self._make(self._name, self._location, definition)


def _generation(
    always: str | IdentityGenerator | None, by_default: IdentityGenerator | None
) -> dict[str, Any]:
    """What the log says of a column that is computed."""
    if always is not None and by_default is not None:
        raise ValueError("generatedByDefaultAs and generatedAlwaysAs cannot both be set.")
    if isinstance(always, str):
        return {GENERATION_EXPRESSION: always}
    if always is not None and not isinstance(always, IdentityGenerator):
        _wrong("Generated always as expression must be str or IdentityGenerator.", always)
    if by_default is not None and not isinstance(by_default, IdentityGenerator):
        _wrong("Generated by default expression must be IdentityGenerator.", by_default)
    counted = always or by_default
    if counted is None:
        return {}
    if counted.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    return identity_metadata(counted.start, counted.step, by_default=by_default is not None)


def _text(value: object, message: str) -> str:
    if not isinstance(value, str):
        _wrong(message, value)
    return value


def _wrong(message: str, value: object) -> NoReturn:
    raise TypeError(f"{message} Found {value} with type {type(value)}")
